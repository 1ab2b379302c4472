import { createHash } from 'node:crypto'
import {
  type AppendOutcome,
  SegmentRegister,
  type StoredSegment,
} from '../../../src/cluster/database/register.js'
import type { ClusterStatements } from '../../../src/cluster/database/statements.js'
import { eventually } from '../eventually.js'
import type { Rig, Ways } from './rig.js'
import type { AnswerFilter } from './tcp-proxy.js'

/** What is put to the test: the statements that the register is given, and what becomes of the answers on their way to it. */
export interface Subject {
  statements: ClusterStatements
  filter?: AnswerFilter
}

/** What a round found that must not be: nothing where all is well. */
export type Breaches = string[]

/** A segment with a hash of what it says. */
export function segmentOf(shard: number, number: number, header: string): StoredSegment {
  const hash = createHash('sha256').update(`${shard} ${number} ${header}`).digest()
  return { shard, number, hash, header, parts: [{ blocks: Buffer.from(header), state: null }] }
}

let shards = 0

/** Registers of one rig, each with ways of its own, and shards that nobody has used. */
export class RegisterRound {
  readonly rig: Rig
  readonly #subject: Subject
  readonly #registers: SegmentRegister[] = []
  #reader: SegmentRegister | undefined

  constructor(rig: Rig, subject: Subject) {
    this.rig = rig
    this.#subject = subject
  }

  async register(): Promise<{ log: SegmentRegister; ways: Ways }> {
    const ways = await this.rig.ways(this.#subject.filter)
    return { log: this.over(ways.urls), ways }
  }

  /** @param nowMs its clock, by which it gives up */
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

  /** The headers of a shard's log as the primary has it, in order. */
  async headers(shard: number): Promise<string[]> {
    this.#reader ??= this.over(this.rig.urls)
    const reader = this.#reader
    const read = () => reader.read(shard, { segment: -1, part: 0 }, { rows: 100_000, bytes: 2 ** 40 })
    // Its connection may be one to a primary of before.
    const rows = await read().catch(read)
    rows.forEach(({ segment }, index) => {
      if (segment !== index) throw new Error(`Shard ${shard} has segment ${segment} where ${index} should be`)
    })
    return rows.map(({ header }) => header)
  }

  async close(): Promise<void> {
    await Promise.all(this.#registers.map((register) => register.close().catch(() => {})))
  }
}

/** Writers that meet at one number: exactly one of them gets through, and it stays. */
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
    if (winners.length !== 1)
      breaches.push(`${winners.length} writers were told that segment ${number} is theirs`)
    const there = (await round.headers(base.shard))[number]
    if (winners.some(({ header }) => header !== there))
      breaches.push(`Segment ${number} was replaced by ${there}`)
    before = winners.find(({ header }) => header === there) ?? before
  }
  return breaches
}

/** A segment behind one that is not there: it is refused, and the log has no gap. */
export async function gap(round: RegisterRound): Promise<Breaches> {
  const base = await round.begin()
  const { log } = await round.register()
  const never = segmentOf(base.shard, 1, 'never written')
  const outcome = await log.append(never, segmentOf(base.shard, 2, 'behind it'))
  return outcome.kind === 'lost' ? [] : [`A segment behind none was ${outcome.kind}`]
}

/** A log of which another one was made at the same number: who chains to the other hash is refused. */
export async function anotherHistory(round: RegisterRound): Promise<Breaches> {
  const base = await round.begin()
  const { log } = await round.register()
  await log.append(base, segmentOf(base.shard, 1, 'one history'))
  const other = segmentOf(base.shard, 1, 'another history')
  const outcome = await log.append(other, segmentOf(base.shard, 2, 'behind it'))
  return outcome.kind === 'lost' ? [] : [`A segment behind one of another history was ${outcome.kind}`]
}

/** What ends the waiting of the primary's sessions for a standby; `nothing` lets them wait until they die. */
export type EndWaiting = 'pg_cancel_backend' | 'pg_terminate_backend' | 'nothing'

const SHARDS = 4

/**
 * Appends wait for standbys that are cut off, the waiting is ended, the primary is killed, and a standby promoted: what
 * was acknowledged, before or after, is in the new primary, and the registers go on there.
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
  // Twice each, so that what confirms a commit is interrupted as well.
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
