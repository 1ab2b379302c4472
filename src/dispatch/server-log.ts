import { limits } from '../base/limits.js'
import { logAgent } from '../base/organism-id.js'
import type { Command, Outcome } from '../protocol/messages.js'
import type { ServerLogCommand } from '../protocol/server-log-messages.js'
import type { Shards } from './shards.js'

type LogAppend = Extract<ServerLogCommand, { kind: 'logAppend' }>
type Clock = LogAppend['clocks'][number]
type Told = LogAppend['heads'][number]
type Head = Reply<'heads'>['heads'][number]
type Reply<K extends Outcome['kind']> = Extract<Outcome, { kind: K }>

/** What the server log is kept with. */
export interface ServerLogParts {
  shards: Shards
  /** Milliseconds between looks. */
  intervalMs: number
  /** True while nothing may be written. */
  readOnly(): boolean
  nowMs(): number
  /** A look has failed, and is taken up again by the next one. */
  failed(reason: string): void
  /** The strands have not got the records that the log has told of; nothing more is told of them. */
  forked(strands: readonly string[]): void
}

/** What metrics tell of the server log. */
export interface ServerLogFigures {
  /** Records of the log. */
  size: number
  /** When a look began after which every head from before it is in the log, Unix milliseconds; 0 for never. */
  completeAtMs: number
}

/**
 * Keeps the server log (docs/adr/0023-server-log.md): has the shards look for heads that moved, and tells of them in the
 * log. Where it has come to stands in the log itself, one clock a shard, so that a crash loses nothing.
 */
export class ServerLog {
  readonly #parts: ServerLogParts
  #timer: NodeJS.Timeout | undefined
  /** What was committed, by shard, when its last look began: an idle shard is not asked. */
  readonly #seen: number[]
  #clocks: Clock[] | undefined
  /**
   * By shard: the clock before the first damage that a look met. The log says of no later clock that all heads are told, so
   * that the next start looks there again.
   */
  readonly #damagedAfter: (Clock | undefined)[]
  #heads = new Map<string, Head>()
  #looking: Promise<boolean> | undefined
  #stopping = false
  readonly figures: ServerLogFigures = { size: 0, completeAtMs: 0 }

  constructor(parts: ServerLogParts) {
    this.#parts = parts
    this.#seen = Array.from({ length: parts.shards.count }, () => UNSEEN)
    this.#damagedAfter = this.#seen.map(() => undefined)
  }

  /** Looks now, and from now on at each interval. */
  start(): void {
    this.#timer = setInterval(() => void this.look(), this.#parts.intervalMs)
    void this.look()
  }

  /**
   * Looks for heads that moved and tells of them. One look at a time: while one is under way, that is the one.
   * @returns whether it got through
   */
  look(): Promise<boolean> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined))
    return this.#looking
  }

  /**
   * Tells of a head that no look finds: of a strand that came in with clocks of the past.
   * @returns whether it is in the log; until then whoever brought the strand in has to bring it again
   */
  async tell(head: Head): Promise<boolean> {
    await this.#looking
    this.#heads.set(head.strand, head)
    return this.look()
  }

  /** A shard's thread is new, and counts its commits from 0 again. */
  restarted(shard: number): void {
    this.#seen[shard] = UNSEEN
  }

  /** Tells of what moved last, for so long at most; the next start takes up the rest. */
  async finish(graceMs: number): Promise<void> {
    const timer = setTimeout(() => (this.#stopping = true), graceMs)
    // One that is under way may have begun before the last writes.
    await this.#looking
    await this.look()
    clearTimeout(timer)
  }

  /** Resolves when nothing of it is under way. */
  async stop(): Promise<void> {
    this.#stopping = true
    clearInterval(this.#timer)
    await this.#looking
  }

  async #look(): Promise<boolean> {
    if (this.#parts.readOnly()) return false
    const beganMs = this.#parts.nowMs()
    try {
      const clocks = this.#clocks ?? (await this.#open())
      this.#clocks = clocks
      for (let shard = 0; shard < clocks.length; shard++) await this.#lookAt(shard, clocks)
      await this.#tell(clocks)
      if (this.#damagedAfter.every((damage) => damage === undefined)) this.figures.completeAtMs = beganMs
      return true
    } catch (error) {
      // What was found is found again, from the clocks of the log's last record on.
      this.#heads.clear()
      this.#clocks = undefined
      this.#seen.fill(UNSEEN)
      if (!this.#stopping) this.#parts.failed(error instanceof Error ? error.message : String(error))
      return false
    }
  }

  /** Where the log has come to; where that is of other shards than there are, after telling of every head. */
  async #open(): Promise<Clock[]> {
    const { shards } = this.#parts
    for (;;) {
      const opened = await this.#ask('logOpened', { kind: 'logOpen', agent: logAgent, options: {} })
      this.figures.size = opened.size
      if (opened.left) continue
      return opened.clocks.length === shards.count ? [...opened.clocks] : this.#tellAll(opened.clocks)
    }
  }

  /** The clocks are taken before the heads, so that what moves meanwhile is looked for again. */
  async #tellAll(before: readonly Clock[]): Promise<Clock[]> {
    const clocks: Clock[] = []
    for (let shard = 0; shard < this.#parts.shards.count; shard++) {
      let fromNo = 0
      for (let end = false; !end;) {
        const found = await this.#ask('heads', { kind: 'headsAll', fromNo }, shard)
        clocks[shard] ??= found.reached
        this.#take(found.heads)
        if (this.#heads.size >= limits.logHeadsMax) await this.#tell(before)
        fromNo = found.nextNo
        end = found.end
      }
    }
    await this.#tell(clocks)
    return clocks
  }

  async #lookAt(shard: number, clocks: Clock[]): Promise<void> {
    const committed = this.#parts.shards.figures()[shard]?.records ?? UNSEEN
    if (committed === this.#seen[shard]) return
    for (let end = false; !end;) {
      const after = clocks[shard] ?? START
      const found = await this.#ask('heads', { kind: 'headsMoved', after }, shard)
      if (found.damagedAfter !== undefined) this.#damaged(shard, found.damagedAfter)
      this.#take(found.heads)
      clocks[shard] = found.reached
      if (this.#heads.size >= limits.logHeadsMax) await this.#tell(clocks)
      end = found.end
    }
    this.#seen[shard] = committed
  }

  /** Says so once: the log is not complete until the damage is mended, which takes a start. */
  #damaged(shard: number, after: Clock): void {
    if (this.#damagedAfter[shard] !== undefined) return
    this.#damagedAfter[shard] = after
    this.#parts.failed(
      `A record of shard ${shard} does not match its checksum: strandfast doctor tells which`,
    )
  }

  #take(heads: readonly Head[]): void {
    for (const head of heads) this.#heads.set(head.strand, head)
  }

  /** Tells of the heads found so far, by which the log has come to `clocks`. */
  async #tell(clocks: readonly Clock[]): Promise<void> {
    if (this.#heads.size === 0) return
    const found = [...this.#heads.values()]
    const changed = await this.#changed(found)
    const heads = found
      .filter(({ strand }) => !changed.has(strand))
      .map(({ strand, size, hash }): Told => ({ strand, size, hash }))
    const settled = clocks.map((clock, shard) => this.#damagedAfter[shard] ?? clock)
    const command: LogAppend = { kind: 'logAppend', agent: logAgent, clocks: settled, heads, options: {} }
    const { size, forked } = await this.#ask('logAppended', command)
    this.#heads.clear()
    this.figures.size = size
    const all = [...changed, ...forked]
    if (all.length > 0) this.#parts.forked(all)
  }

  /**
   * The strands that have not got the record any more which the log told of last: told on with a head of another history,
   * the log would speak for both.
   */
  async #changed(found: readonly Head[]): Promise<Set<string>> {
    const { shards } = this.#parts
    const changed = new Set<string>()
    for (let from = 0; from < found.length; from += limits.logRecordHeadsMax) {
      const part = new Map(found.slice(from, from + limits.logRecordHeadsMax).map((one) => [one.strand, one]))
      const strands = [...part.keys()]
      const { heads: told } = await this.#ask('headsTold', { kind: 'logTold', agent: logAgent, strands })
      const byShard = new Map<number, Head[]>()
      for (const head of told) {
        const one = part.get(head.strand)
        // One of the same size is compared where it would be told.
        if (one === undefined || one.size === head.size) continue
        const shard = shards.shardOf(one.agent)
        byShard.set(shard, [...(byShard.get(shard) ?? []), { ...head, agent: one.agent }])
      }
      for (const [shard, heads] of byShard) {
        const { forked } = await this.#ask('headsHeld', { kind: 'headsHold', heads }, shard)
        for (const strand of forked) changed.add(strand)
      }
    }
    return changed
  }

  /** @throws Error when the outcome is another, or the server stops */
  async #ask<K extends Outcome['kind']>(kind: K, command: Command, shard?: number): Promise<Reply<K>> {
    if (this.#stopping) throw new Error('The server stops')
    const { shards } = this.#parts
    const outcome = await (shard === undefined
      ? shards.ask(logAgent, command)
      : shards.askOne(shard, command))
    if (isOfKind(outcome, kind)) return outcome
    throw new Error('code' in outcome ? outcome.detail : `Got ${outcome.kind}`)
  }
}

/** No count of commits. */
const UNSEEN = -1

/** The clock before every other. */
const START: Clock = { ms: 0, counter: 0 }

function isOfKind<K extends Outcome['kind']>(outcome: Outcome, kind: K): outcome is Reply<K> {
  return outcome.kind === kind
}
