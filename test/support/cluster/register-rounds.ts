import { createHash } from 'node:crypto'
import {
  type AppendOutcome,
  SegmentRegister,
  type StoredSegment,
} from '../../../src/cluster/database/register.js'
import type { ClusterStatements } from '../../../src/cluster/database/statements.js'
import { eventually } from '../eventually.js'
import type { Rig, ProxiedServers } from './rig.js'
import type { AnswerFilter } from './tcp-proxy.js'

/** The subject of a test: the statements of the register, and a filter for the answers that it receives. */
export interface Subject {
  statements: ClusterStatements
  filter?: AnswerFilter
}

/** Broken guarantees: empty if all is well. */
export type Breaches = string[]

/** A segment whose hash depends on its content. */
export function segmentOf(shard: number, number: number, header: string): StoredSegment {
  const hash = createHash('sha256').update(`${shard} ${number} ${header}`).digest()
  return { shard, number, hash, header, parts: [{ blocks: Buffer.from(header), state: null }] }
}

let shards = 0

/** Registers of one rig, each with separate proxied connections, and unused shards. */
export class RegisterRound {
  readonly rig: Rig
  readonly #subject: Subject
  readonly #registers: SegmentRegister[] = []
  #reader: SegmentRegister | undefined

  constructor(rig: Rig, subject: Subject) {
    this.rig = rig
    this.#subject = subject
  }

  async register(): Promise<{ log: SegmentRegister; proxied: ProxiedServers }> {
    const ways = await this.rig.proxied(this.#subject.filter)
    return { log: this.over(ways.urls), proxied: ways }
  }

  /** @param nowMs clock of the time limit */
  over(urls: readonly string[], nowMs = () => performance.now()): SegmentRegister {
    const { statements } = this.#subject
    const log = new SegmentRegister({ urls, statements, nowMs, chance: () => 0.1 })
    this.#registers.push(log)
    return log
  }

  /** Begins the log of another shard. @returns its segment 0 */
  async begin(): Promise<StoredSegment> {
    const base = segmentOf((shards += 1), 0, 'base')
    await this.over(this.rig.urls).begin(base)
    return base
  }

  /** The headers of a shard's log in the primary, in order. */
  async headers(shard: number): Promise<string[]> {
    this.#reader ??= this.over(this.rig.urls)
    const reader = this.#reader
    const read = () => reader.read(shard, { segment: -1, part: 0 }, { rows: 100_000, bytes: 2 ** 40 })
    // The connection may lead to a former primary.
    const rows = await read().catch(read)
    rows.forEach(({ segment }, index) => {
      if (segment !== index) throw new Error(`Shard ${shard} has segment ${segment} instead of ${index}`)
    })
    return rows.map(({ header }) => header)
  }

  async close(): Promise<void> {
    await Promise.all(this.#registers.map((register) => register.close().catch(() => {})))
  }
}

/** Several writers compete for one number: exactly one wins, and its segment stays. */
export async function race(round: RegisterRound, segments = 10): Promise<Breaches> {
  const breaches: Breaches = []
  const logs = await Promise.all(Array.from({ length: 4 }, () => round.register()))
  const base = await round.begin()
  let before = base
  for (let number = 1; number <= segments; number++) {
    const rivals = logs.map((_log, rival) => segmentOf(base.shard, number, `${number} by ${rival}`))
    const outcomes = await Promise.all(
      logs.map(({ log }, rival) => log.append(before, rivals[rival] ?? base)),
    )
    const winners = rivals.filter((_rival, nth) => outcomes[nth]?.kind === 'durable')
    if (winners.length !== 1) breaches.push(`${winners.length} writers won segment ${number}`)
    const there = (await round.headers(base.shard))[number]
    if (winners.some(({ header }) => header !== there))
      breaches.push(`Segment ${number} was replaced by ${there}`)
    before = winners.find(({ header }) => header === there) ?? before
  }
  return breaches
}

/** A segment after a missing one is refused, and the log has no gap. */
export async function gap(round: RegisterRound): Promise<Breaches> {
  const base = await round.begin()
  const { log } = await round.register()
  const missing = segmentOf(base.shard, 1, 'never written')
  const outcome = await log.append(missing, segmentOf(base.shard, 2, 'behind it'))
  return outcome.kind === 'lost' ? [] : [`A segment after a missing one was ${outcome.kind}`]
}

/** A segment chained to another history is refused. */
export async function anotherHistory(round: RegisterRound): Promise<Breaches> {
  const base = await round.begin()
  const { log } = await round.register()
  await log.append(base, segmentOf(base.shard, 1, 'one history'))
  const other = segmentOf(base.shard, 1, 'another history')
  const outcome = await log.append(other, segmentOf(base.shard, 2, 'behind it'))
  return outcome.kind === 'lost' ? [] : [`A segment after one of another history was ${outcome.kind}`]
}

/** How waits for a standby are ended; with `nothing` they last until the primary dies. */
export type EndWaiting = 'pg_cancel_backend' | 'pg_terminate_backend' | 'nothing'

const SHARDS = 4

/**
 * Appends wait for standbys that are cut off; the waits are ended, the primary is killed, and a standby is
 * promoted. Whatever was acknowledged must be in the new primary, where the registers continue.
 */
export async function unreplicated(round: RegisterRound, by: EndWaiting): Promise<Breaches> {
  const { rig } = round
  const shards = await Promise.all(
    Array.from({ length: SHARDS }, async () => ({ base: await round.begin(), ...(await round.register()) })),
  )
  const acknowledged = new Map<string, StoredSegment>()
  const append = async (
    log: SegmentRegister,
    before: StoredSegment,
    header: string,
  ): Promise<AppendOutcome> => {
    const next = segmentOf(before.shard, before.number + 1, header)
    const outcome = await log.append(before, next)
    if (outcome.kind === 'durable') acknowledged.set(`${next.shard} ${next.number}`, next)
    return outcome
  }
  await Promise.all(shards.map(({ log, base }) => append(log, base, 'replicated')))
  await rig.cutOffStandbys()
  let [settled, ended] = [0, 0]
  const appends = shards.map(async ({ log, base }) => {
    const outcome = await append(log, segmentOf(base.shard, 1, 'replicated'), 'alone')
    settled += 1
    return outcome
  })
  // Twice for each, to interrupt the confirmation of a commit as well.
  if (by === 'nothing') await eventually(async () => settled + (await rig.waiting()) >= SHARDS)
  else
    await eventually(async () => {
      ended += await rig.endWaiting(by)
      return settled === SHARDS || ended >= 2 * SHARDS
    })
  await rig.killPrimary()
  await rig.promote()
  const outcomes = await Promise.all(appends)
  const breaches = outcomes.flatMap(({ kind }, nth) =>
    kind === 'durable' ? [] : [`Append ${nth} was ${kind}`],
  )
  for (const { shard, number, header } of acknowledged.values()) {
    const headers = await round.headers(shard)
    if (headers[number] !== header)
      breaches.push(`Segment ${number} of shard ${shard} was acknowledged and lost`)
  }
  return breaches
}
