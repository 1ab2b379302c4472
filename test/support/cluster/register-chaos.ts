import type { SegmentRegister, StoredSegment } from '../../../src/cluster/database/register.js'
import { eventually } from '../eventually.js'
import { type Breaches, type RegisterRound, segmentOf } from './register-rounds.js'
import type { ProxiedServers } from './rig.js'

/** A random number from 0 to 1, from a seed. */
export type Chance = () => number

const SHARDS = 3
/** Segments that each shard gains between two faults. */
const PROGRESS = 3

/** A shard that two nodes take over from each other, and their acknowledged segments. */
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

  /** Takes the shard over and writes until another node owns it, repeatedly. */
  async compete(log: SegmentRegister, node: string): Promise<void> {
    while (!this.#isOver) {
      const end = await this.#end(log)
      if (end !== undefined) await this.#own(log, end, `${node} ${(this.#opens += 1)}`)
      // Gives the other node a chance to write.
      await new Promise((resolve) => setTimeout(resolve, this.#chance() * 100))
    }
  }

  /** Acknowledged segments that are missing or different. */
  async lost(): Promise<Breaches> {
    // Segments acknowledged during the read need not be in its result.
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
          this.breaches.push(`Segment ${next.number} was acknowledged as ${known} and as ${next.header}`)
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
        const lastRow = rows.at(-1)
        if (lastRow === undefined) break
        end = segmentOf(this.shard, lastRow.segment, lastRow.header)
      }
      if (end === undefined) this.breaches.push(`Shard ${this.shard} has nothing from ${acknowledged} on`)
      return end
    } catch {
      // The database is down, as intended by the fault.
      return undefined
    }
  }
}

/** Random faults, one after another, under writers that take shards over from each other. */
export async function chaos(round: RegisterRound, faults: number, chance: Chance): Promise<Breaches> {
  const nodes = [await round.register(), await round.register()]
  const shards: ContestedShard[] = []
  for (let nth = 0; nth < SHARDS; nth++)
    shards.push(new ContestedShard(round, (await round.begin()).shard, chance))
  const ways: ProxiedServers[] = nodes.map((node) => node.proxied)
  const writers: Promise<void>[] = []
  for (const shard of shards)
    for (const [nth, { urls }] of ways.entries())
      writers.push(shard.compete(round.over(urls), `${'ab'[nth]}`))
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
  await Promise.all(writers)
  for (const shard of shards) breaches.push(...(await shard.lost()))
  return breaches
}

/** Resolves when each shard has gained segments. */
async function progress(shards: readonly ContestedShard[]): Promise<void> {
  const before = shards.map(({ acknowledged }) => acknowledged.size)
  await eventually(() =>
    shards.every(
      ({ acknowledged, breaches }, nth) =>
        breaches.length > 0 || acknowledged.size >= (before[nth] ?? 0) + PROGRESS,
    ),
  )
}

type Fault = (round: RegisterRound, ways: readonly ProxiedServers[], chance: Chance) => Promise<string>

/** Waits while a fault lasts. */
const pauseFor = (chance: Chance) => new Promise((resolve) => setTimeout(resolve, 20 + chance() * 300))

const onOneNode =
  (name: string, act: (proxy: ProxiedServers['proxies'][number], chance: Chance) => void): Fault =>
  async (_round, ways, chance) => {
    const { proxies } = ways[Math.floor(chance() * ways.length)] ?? { proxies: [] }
    for (const proxy of proxies) act(proxy, chance)
    await pauseFor(chance)
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
    await pauseFor(chance)
    rig.primary.resume()
    return 'a primary that was stopped'
  },
  async ({ rig }, _ways, chance) => {
    await rig.cutOffStandbys()
    // A register that does not wait for a standby is detected later.
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
