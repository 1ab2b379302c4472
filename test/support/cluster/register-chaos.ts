import type { SegmentRegister, StoredSegment } from '../../../src/cluster/database/register.js'
import { eventually } from '../eventually.js'
import { type Breaches, type RegisterRound, segmentOf } from './register-rounds.js'
import type { Ways } from './rig.js'

/** Chance from 0 to 1, of a seed. */
export type Chance = () => number

const SHARDS = 3
/** Segments that each shard gets through between two faults. */
const PROGRESS = 3

/** Two nodes that take one shard over from each other, and what they were told. */
class ContestedShard {
  readonly shard: number
  readonly breaches: Breaches = []
  readonly acknowledged = new Map<number, string>()
  readonly #round: RegisterRound
  readonly #chance: Chance
  #opens = 0
  #isOver = false

  constructor(round: RegisterRound, shard: number, chance: Chance) {
    this.#round = round
    this.shard = shard
    this.#chance = chance
  }

  stop(): void {
    this.#isOver = true
  }

  /** Takes the shard over and writes until another one has it, again and again. */
  async live(log: SegmentRegister, node: string): Promise<void> {
    while (!this.#isOver) {
      const end = await this.#end(log)
      if (end !== undefined) await this.#own(log, end, `${node} ${(this.#opens += 1)}`)
      // The other one comes to write as well.
      await new Promise((resolve) => setTimeout(resolve, this.#chance() * 100))
    }
  }

  /** What was acknowledged and is not there, or is another one. */
  async lost(): Promise<Breaches> {
    // What is acknowledged while the log is read need not be in what was read.
    const acknowledged = [...this.acknowledged]
    const headers = await this.#round.headers(this.shard)
    const lost = acknowledged.filter(([number, header]) => headers[number] !== header)
    return lost.map(
      ([number, header]) => `Shard ${this.shard} has ${headers[number]} for ${number}: ${header}`,
    )
  }

  async #own(log: SegmentRegister, end: StoredSegment, name: string): Promise<void> {
    let before = end
    let next = segmentOf(this.shard, before.number + 1, `${name} opens`)
    while (!this.#isOver) {
      const outcome = await log.append(before, next)
      if (outcome.kind === 'durable') {
        const known = this.acknowledged.get(next.number)
        if (known !== undefined && known !== next.header)
          this.breaches.push(`Segment ${next.number} is told to be ${known} and ${next.header}`)
        this.acknowledged.set(next.number, next.header)
        before = next
        next = segmentOf(this.shard, before.number + 1, `${name} writes ${before.number}`)
      } else if (outcome.kind === 'lost' && this.acknowledged.get(before.number) === before.header) {
        this.breaches.push(`Segment ${before.number} of shard ${this.shard} was acknowledged and is lost`)
        return
      } else if (outcome.kind !== 'unknown') return
    }
  }

  async #end(log: SegmentRegister): Promise<StoredSegment | undefined> {
    const acknowledged = Math.max(0, ...this.acknowledged.keys())
    let end: StoredSegment | undefined
    try {
      for (;;) {
        const rows = await log.read(
          this.shard,
          { segment: end?.number ?? acknowledged - 1, part: 0 },
          { rows: 100 },
        )
        const last = rows.at(-1)
        if (last === undefined) break
        end = segmentOf(this.shard, last.segment, last.header)
      }
      if (end === undefined) this.breaches.push(`Shard ${this.shard} has nothing from ${acknowledged} on`)
      return end
    } catch {
      // The database is away: that is what is done to it.
      return undefined
    }
  }
}

/** Faults of all kinds, one after another, under writers that take shards over from each other. */
export async function chaos(round: RegisterRound, faults: number, chance: Chance): Promise<Breaches> {
  const nodes = [await round.register(), await round.register()]
  const shards: ContestedShard[] = []
  for (let nth = 0; nth < SHARDS; nth++)
    shards.push(new ContestedShard(round, (await round.begin()).shard, chance))
  const ways: Ways[] = nodes.map((node) => node.ways)
  const lives: Promise<void>[] = []
  for (const shard of shards)
    for (const [nth, { urls }] of ways.entries()) lives.push(shard.live(round.over(urls), `${'ab'[nth]}`))
  const breaches: Breaches = []
  for (let fault = 0; fault < faults; fault++) {
    await progress(shards)
    const name = await FAULTS[Math.floor(chance() * FAULTS.length)]?.(round, ways, chance)
    await progress(shards)
    for (const shard of shards)
      for (const text of [...shard.breaches, ...(await shard.lost())]) breaches.push(`After ${name}: ${text}`)
    if (breaches.length > 0) break
  }
  for (const shard of shards) shard.stop()
  await Promise.all(lives)
  for (const shard of shards) breaches.push(...(await shard.lost()))
  return breaches
}

/** Resolves when each shard got further. */
async function progress(shards: readonly ContestedShard[]): Promise<void> {
  const before = shards.map(({ acknowledged }) => acknowledged.size)
  await eventually(() =>
    shards.every(
      ({ acknowledged, breaches }, nth) =>
        breaches.length > 0 || acknowledged.size >= (before[nth] ?? 0) + PROGRESS,
    ),
  )
}

type Fault = (round: RegisterRound, ways: readonly Ways[], chance: Chance) => Promise<string>

/** Some time in which the fault is there. */
const last = (chance: Chance) => new Promise((resolve) => setTimeout(resolve, 20 + chance() * 300))

const onOneNode =
  (name: string, act: (proxy: Ways['proxies'][number], chance: Chance) => void): Fault =>
  async (_round, ways, chance) => {
    const { proxies } = ways[Math.floor(chance() * ways.length)] ?? { proxies: [] }
    for (const proxy of proxies) act(proxy, chance)
    await last(chance)
    for (const proxy of proxies) {
      if (chance() < 0.5) proxy.break()
      proxy.heal()
    }
    return name
  }

const FAULTS: readonly Fault[] = [
  onOneNode('answers that are held', (proxy) => proxy.hold('answers')),
  onOneNode('requests that are held', (proxy) => proxy.hold('requests')),
  onOneNode('delays', (proxy, chance) => proxy.delay(chance() * 40)),
  onOneNode('a cut in an answer', (proxy, chance) => void proxy.cutAfter(Math.floor(chance() * 120))),
  onOneNode('broken connections', (proxy) => proxy.break()),
  async ({ rig }, _ways, chance) => {
    rig.primary.pause()
    await last(chance)
    rig.primary.resume()
    return 'a primary that stood still'
  },
  async ({ rig }, _ways, chance) => {
    await rig.cutOffStandbys()
    // Who does not wait for a standby is found out later.
    for (let looks = 0; looks < 50 && (await rig.waiting()) === 0; looks++);
    const by = chance() < 0.5 ? 'pg_cancel_backend' : 'pg_terminate_backend'
    for (let ended = 0; ended < 4; ended++) await rig.endWaiting(by)
    const isLost = chance() < 0.6
    if (isLost) {
      await rig.killPrimary()
      await rig.promote()
    }
    await rig.restore()
    return `${by}${isLost ? ', and a new primary' : ''}`
  },
  async ({ rig }) => {
    await rig.killPrimary()
    await rig.promote()
    await rig.restore()
    return 'a new primary'
  },
]
