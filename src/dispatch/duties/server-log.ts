import { limits } from '../../base/limits/limits.js'
import { logAgent } from '../../strand/organism-id.js'
import type { LoggedHead } from '../../strand/server-log.js'
import type { Command, Outcome } from '../../protocol/messages.js'
import type { ServerLogCommand } from '../../protocol/server-log-messages.js'
import type { Shards } from '../links/shards.js'

type LogAppend = Extract<ServerLogCommand, { kind: 'logAppend' }>
type Clock = LogAppend['clocks'][number]
type Head = Reply<'heads'>['heads'][number]
type Reply<K extends Outcome['kind']> = Extract<Outcome, { kind: K }>

export interface ServerLogParts {
  shards: Shards
  /** Commits of a shard's thread, so that idle shards are skipped; undefined for a shard of another node. */
  committed(shard: number): number | undefined
  intervalMs: number
  readOnly(): boolean
  nowMs(): number
  /** An update failed; the next one retries. */
  failed(reason: string): void
  /** These strands lack records that the log names. Their heads are not logged any more. */
  forked(strands: readonly string[]): void
}

export interface ServerLogFigures {
  size: number
  /**
   * All heads from before this time are in the log, Unix milliseconds; 0 before the first complete update.
   */
  completeAtMs: number
}

/**
 * Maintains the server log (docs/adr/0023-server-log.md): reads heads that moved from the shards and appends
 * them to the log. The log stores one clock for each shard as its progress, so a crash loses nothing.
 */
export class ServerLog {
  readonly #parts: ServerLogParts
  #timer: NodeJS.Timeout | undefined
  /** Commits of each shard when its last update began. A shard with the same number is skipped. */
  readonly #seen: number[]
  #clocks: Clock[] | undefined
  /**
   * For each shard, the clock before the first damage that was found. The log never claims progress beyond
   * this clock, so the next start reads that part again.
   */
  readonly #damagedAfter: (Clock | undefined)[]
  #heads = new Map<string, Head>()
  #updating: Promise<boolean> | undefined
  #stopping = false
  #isPaused = false
  readonly figures: ServerLogFigures = { size: 0, completeAtMs: 0 }

  constructor(parts: ServerLogParts) {
    this.#parts = parts
    this.#seen = Array.from({ length: parts.shards.count }, () => UNSEEN)
    this.#damagedAfter = this.#seen.map(() => undefined)
  }

  /** Updates the log immediately and then at each interval. */
  start(): void {
    this.#timer = setInterval(() => void this.update(), this.#parts.intervalMs)
    void this.update()
  }

  /**
   * Appends heads that moved to the log. Only one update runs at a time; calls during it return its promise.
   * @returns whether the update completed
   */
  update(): Promise<boolean> {
    this.#updating ??= this.#update().finally(() => (this.#updating = undefined))
    return this.#updating
  }

  /**
   * Logs the head of a strand that was imported with clocks of the past, which no update finds.
   * @returns whether the head is in the log; if not, the import must be repeated
   */
  async logHead(head: Head): Promise<boolean> {
    await this.#updating
    this.#heads.set(head.strand, head)
    return this.update()
  }

  /**
   * Stops updates because another node maintains the log from now on. Resolves when a running update has
   * ended.
   */
  async pause(): Promise<void> {
    this.#isPaused = true
    await this.#updating
  }

  /** Allows updates again: this node maintains the log. */
  resume(): void {
    this.#isPaused = false
  }

  /** The thread of a shard was restarted and counts its commits from 0. */
  restarted(shard: number): void {
    this.#seen[shard] = UNSEEN
  }

  /** Logs the last heads, for at most `graceMs`; the next start logs the rest. */
  async finish(graceMs: number): Promise<void> {
    const timer = setTimeout(() => (this.#stopping = true), graceMs)
    // A running update may have begun before the last writes.
    await this.#updating
    await this.update()
    clearTimeout(timer)
  }

  /** Stops updates. Resolves when a running update has ended. */
  async stop(): Promise<void> {
    this.#stopping = true
    clearInterval(this.#timer)
    await this.#updating
  }

  async #update(): Promise<boolean> {
    if (this.#parts.readOnly() || this.#isPaused) return false
    const beganMs = this.#parts.nowMs()
    try {
      const clocks = this.#clocks ?? (await this.#open())
      this.#clocks = clocks
      for (let shard = 0; shard < clocks.length; shard++) await this.#updateShard(shard, clocks)
      await this.#append(clocks)
      if (this.#damagedAfter.every((damage) => damage === undefined)) this.figures.completeAtMs = beganMs
      return true
    } catch (error) {
      // The next update reads these heads again, from the clocks in the last record of the log.
      this.#heads.clear()
      this.#clocks = undefined
      this.#seen.fill(UNSEEN)
      if (!this.#stopping && !this.#isPaused)
        this.#parts.failed(error instanceof Error ? error.message : String(error))
      return false
    }
  }

  /** Returns the clocks of the log. If the number of shards has changed, all heads are logged first. */
  async #open(): Promise<Clock[]> {
    const { shards } = this.#parts
    for (;;) {
      const opened = await this.#request('logOpened', { kind: 'logOpen', agent: logAgent, options: {} })
      this.figures.size = opened.size
      if (opened.left) continue
      return opened.clocks.length === shards.count ? [...opened.clocks] : this.#appendAll(opened.clocks)
    }
  }

  /** Clocks are read before heads, so that heads that move in the meantime are read again. */
  async #appendAll(before: readonly Clock[]): Promise<Clock[]> {
    const clocks: Clock[] = []
    for (let shard = 0; shard < this.#parts.shards.count; shard++) {
      let fromNo = 0
      for (let end = false; !end;) {
        const found = await this.#request('heads', { kind: 'headsAll', fromNo }, shard)
        clocks[shard] ??= found.reached
        this.#collect(found.heads)
        if (this.#heads.size >= limits.logHeadsMax) await this.#append(before)
        fromNo = found.nextNo
        end = found.end
      }
    }
    await this.#append(clocks)
    return clocks
  }

  async #updateShard(shard: number, clocks: Clock[]): Promise<void> {
    const committed = this.#parts.committed(shard)
    if (committed !== undefined && committed === this.#seen[shard]) return
    for (let end = false; !end;) {
      const after = clocks[shard] ?? START
      const found = await this.#request('heads', { kind: 'headsMoved', after }, shard)
      if (found.damagedAfter !== undefined) this.#damaged(shard, found.damagedAfter)
      this.#collect(found.heads)
      clocks[shard] = found.reached
      if (this.#heads.size >= limits.logHeadsMax) await this.#append(clocks)
      end = found.end
    }
    this.#seen[shard] = committed ?? UNSEEN
  }

  /**
   * Reports damage once per shard. The log is incomplete until the damage is repaired, which requires a
   * restart.
   */
  #damaged(shard: number, after: Clock): void {
    if (this.#damagedAfter[shard] !== undefined) return
    this.#damagedAfter[shard] = after
    this.#parts.failed(
      `A record of shard ${shard} does not match its checksum: run strandfast doctor to find it`,
    )
  }

  #collect(heads: readonly Head[]): void {
    for (const head of heads) this.#heads.set(head.strand, head)
  }

  /** Appends the collected heads with the clocks that are reached. */
  async #append(clocks: readonly Clock[]): Promise<void> {
    if (this.#heads.size === 0) return
    const found = [...this.#heads.values()]
    const changed = await this.#changed(found)
    const heads = found
      .filter(({ strand }) => !changed.has(strand))
      .map(({ strand, size, hash }): LoggedHead => ({ strand, size, hash }))
    const safeClocks = clocks.map((clock, shard) => this.#damagedAfter[shard] ?? clock)
    const command: LogAppend = { kind: 'logAppend', agent: logAgent, clocks: safeClocks, heads, options: {} }
    const { size, forked } = await this.#request('logAppended', command)
    this.#heads.clear()
    this.figures.size = size
    const all = [...changed, ...forked]
    if (all.length > 0) this.#parts.forked(all)
  }

  /** Returns the strands that lack the record which the log named last: their history has changed. */
  async #changed(found: readonly Head[]): Promise<Set<string>> {
    const { shards } = this.#parts
    const changed = new Set<string>()
    for (let from = 0; from < found.length; from += limits.logRecordHeadsMax) {
      const part = new Map(found.slice(from, from + limits.logRecordHeadsMax).map((one) => [one.strand, one]))
      const strands = [...part.keys()]
      const { heads: logged } = await this.#request('logHeads', {
        kind: 'logHeads',
        agent: logAgent,
        strands,
      })
      const byShard = new Map<number, Head[]>()
      for (const head of logged) {
        const one = part.get(head.strand)
        // The shard compares heads of the same size when it appends them.
        if (one === undefined || one.size === head.size) continue
        const shard = shards.shardOf(one.agent)
        byShard.set(shard, [...(byShard.get(shard) ?? []), { ...head, agent: one.agent }])
      }
      for (const [shard, heads] of byShard) {
        const { forked } = await this.#request('headsChecked', { kind: 'headsCheck', heads }, shard)
        for (const strand of forked) changed.add(strand)
      }
    }
    return changed
  }

  /** @throws Error when the outcome is of another kind, or the server is stopping */
  async #request<K extends Outcome['kind']>(kind: K, command: Command, shard?: number): Promise<Reply<K>> {
    if (this.#stopping || this.#isPaused)
      throw new Error('The server is stopping, or another node maintains the log')
    const { shards } = this.#parts
    const outcome = await (shard === undefined
      ? shards.request(logAgent, command)
      : shards.requestShard(shard, command))
    if (isOfKind(outcome, kind)) return outcome
    throw new Error('code' in outcome ? outcome.detail : `Unexpected outcome ${outcome.kind}`)
  }
}

/** Stands for an unknown number of commits. */
const UNSEEN = -1

const START: Clock = { ms: 0, counter: 0 }

function isOfKind<K extends Outcome['kind']>(outcome: Outcome, kind: K): outcome is Reply<K> {
  return outcome.kind === kind
}
