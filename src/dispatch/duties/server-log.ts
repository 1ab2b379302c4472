import { limits } from '../../base/limits/limits.js'
import { logAgent } from '../../strand/organism-id.js'
import type { Command, Outcome } from '../../protocol/messages.js'
import type { ServerLogCommand } from '../../protocol/server-log-messages.js'
import type { Shards } from '../links/shards.js'

type LogAppend = Extract<ServerLogCommand, { kind: 'logAppend' }>
type Clock = LogAppend['clocks'][number]
type Told = LogAppend['heads'][number]
type Head = Reply<'heads'>['heads'][number]
type Reply<K extends Outcome['kind']> = Extract<Outcome, { kind: K }>

/** What keeping the server log needs. */
export interface ServerLogParts {
  shards: Shards
  /** Records that the thread of a shard has committed: an idle shard is not asked. Undefined for one of another node. */
  committed(shard: number): number | undefined
  /** Milliseconds between looks. */
  intervalMs: number
  /** True while nothing may be written. */
  readOnly(): boolean
  nowMs(): number
  /** A look has failed; the next one tries again. */
  failed(reason: string): void
  /** The strands do not have the records that the log names; their heads are not written to the log any more. */
  forked(strands: readonly string[]): void
}

/** Figures of the server log, for metrics. */
export interface ServerLogFigures {
  /** Records of the log. */
  size: number
  /** Every head from before this time is in the log, Unix milliseconds; 0 before the first complete look. */
  completeAtMs: number
}

/**
 * Keeps the server log (docs/adr/0023-server-log.md): asks the shards for heads that moved, and writes them to the log.
 * The log itself says how far it has come, with one clock for each shard, so that a crash loses nothing.
 */
export class ServerLog {
  readonly #parts: ServerLogParts
  #timer: NodeJS.Timeout | undefined
  /** Commits of each shard when its last look began: an idle shard is not asked. */
  readonly #seen: number[]
  #clocks: Clock[] | undefined
  /**
   * For each shard, the clock before the first damage that a look found. The log never says that all heads up to a
   * later clock are in it, so that the next start looks there again.
   */
  readonly #damagedAfter: (Clock | undefined)[]
  #heads = new Map<string, Head>()
  #looking: Promise<boolean> | undefined
  #stopping = false
  #isPaused = false
  readonly figures: ServerLogFigures = { size: 0, completeAtMs: 0 }

  constructor(parts: ServerLogParts) {
    this.#parts = parts
    this.#seen = Array.from({ length: parts.shards.count }, () => UNSEEN)
    this.#damagedAfter = this.#seen.map(() => undefined)
  }

  /** Looks now, and then at each interval. */
  start(): void {
    this.#timer = setInterval(() => void this.look(), this.#parts.intervalMs)
    void this.look()
  }

  /**
   * Looks for heads that moved and writes them to the log. Only one look runs at a time: while one does, this returns
   * it.
   * @returns whether it was completed
   */
  look(): Promise<boolean> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined))
    return this.#looking
  }

  /**
   * Writes a head that no look finds to the log: that of a strand that was imported with clocks of the past.
   * @returns whether it is in the log; if not, the import has to be repeated
   */
  async tell(head: Head): Promise<boolean> {
    await this.#looking
    this.#heads.set(head.strand, head)
    return this.look()
  }

  /** Another node keeps the log from now on: resolves when this one writes nothing more to it. */
  async pause(): Promise<void> {
    this.#isPaused = true
    await this.#looking
  }

  /** This node keeps the log. */
  resume(): void {
    this.#isPaused = false
  }

  /** A shard's thread was started again, and counts its commits from 0. */
  restarted(shard: number): void {
    this.#seen[shard] = UNSEEN
  }

  /** Writes the last heads to the log, for at most this long; the next start does the rest. */
  async finish(graceMs: number): Promise<void> {
    const timer = setTimeout(() => (this.#stopping = true), graceMs)
    // A running look may have begun before the last writes.
    await this.#looking
    await this.look()
    clearTimeout(timer)
  }

  /** Stops. Resolves when nothing runs any more. */
  async stop(): Promise<void> {
    this.#stopping = true
    clearInterval(this.#timer)
    await this.#looking
  }

  async #look(): Promise<boolean> {
    if (this.#parts.readOnly() || this.#isPaused) return false
    const beganMs = this.#parts.nowMs()
    try {
      const clocks = this.#clocks ?? (await this.#open())
      this.#clocks = clocks
      for (let shard = 0; shard < clocks.length; shard++) await this.#lookAt(shard, clocks)
      await this.#tell(clocks)
      if (this.#damagedAfter.every((damage) => damage === undefined)) this.figures.completeAtMs = beganMs
      return true
    } catch (error) {
      // These heads are found again, from the clocks of the log's last record.
      this.#heads.clear()
      this.#clocks = undefined
      this.#seen.fill(UNSEEN)
      if (!this.#stopping && !this.#isPaused)
        this.#parts.failed(error instanceof Error ? error.message : String(error))
      return false
    }
  }

  /** How far the log has come; if that is for another number of shards, after writing every head to it. */
  async #open(): Promise<Clock[]> {
    const { shards } = this.#parts
    for (;;) {
      const opened = await this.#ask('logOpened', { kind: 'logOpen', agent: logAgent, options: {} })
      this.figures.size = opened.size
      if (opened.left) continue
      return opened.clocks.length === shards.count ? [...opened.clocks] : this.#tellAll(opened.clocks)
    }
  }

  /** The clocks are read before the heads, so that heads that move meanwhile are found again. */
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
    const committed = this.#parts.committed(shard)
    if (committed !== undefined && committed === this.#seen[shard]) return
    for (let end = false; !end;) {
      const after = clocks[shard] ?? START
      const found = await this.#ask('heads', { kind: 'headsMoved', after }, shard)
      if (found.damagedAfter !== undefined) this.#damaged(shard, found.damagedAfter)
      this.#take(found.heads)
      clocks[shard] = found.reached
      if (this.#heads.size >= limits.logHeadsMax) await this.#tell(clocks)
      end = found.end
    }
    this.#seen[shard] = committed ?? UNSEEN
  }

  /** Reports it once: the log is not complete until the damage is repaired, which requires a restart. */
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

  /** Writes the heads found so far, after which the log has come to `clocks`. */
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
   * The strands that do not have the record any more that the log named last. With a head of another history, the log
   * would vouch for both histories.
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
        // A head of the same size is compared when it is written.
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
    if (this.#stopping || this.#isPaused) throw new Error('The server stops, or another node keeps the log')
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
