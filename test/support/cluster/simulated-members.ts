import { setImmediate as turn } from 'node:timers/promises'
import { type Member, Membership, type MemberTable } from '../../../src/cluster/members/membership.js'
import { LeaseMemory } from '../../../src/protocol/lease-memory.js'

export const LEASE_MS = 1_000

/** What happens in a simulation. */
export interface SimulatedLives {
  /** By how much the clock of each node is slower than time: one a node. */
  rates: readonly number[]
  /** How long each way to the table and back takes, milliseconds, one after the other. */
  waysMs: readonly number[]
  /** Times in which a node stands still, or does not reach the table, or nobody does. */
  troubles: readonly {
    kind: 'stopped' | 'cutOff' | 'allCutOff'
    node: number
    fromMs: number
    forMs: number
  }[]
}

/** What came of it. */
export interface SimulatedEnd {
  /** Each expulsion: when it was, and until when, of the same clock, whoever was expelled believed to have a lease. */
  expulsions: { node: number; atMs: number; leaseUntilMs: number }[]
}

/** Rules of the table that may be broken by hand. */
export interface TableRules {
  expelsOnlyTheBeatSeen: boolean
}

/** Several memberships over one table in memory, in a time of their own: the same each time that it is run. */
export async function simulate(lives: SimulatedLives, rules: TableRules): Promise<SimulatedEnd> {
  const time = new SimulatedTime(lives)
  const rows = new Map<string, Member>()
  const end: SimulatedEnd = { expulsions: [] }
  const nodes = lives.rates.map((rate, node) => {
    const clock = () => time.nowMs / rate
    const lease = new LeaseMemory(undefined, clock)
    const table = tableOf({ time, rows, node, rules })
    const membership = new Membership({
      about: { node: `${node}`, address: '', formatMax: 1, settingsDigest: '' },
      leaseMs: LEASE_MS,
      leaseMsOf: () => LEASE_MS,
      lease,
      nowMs: clock,
      connect: async () => table,
      changed() {},
      answers: () => false,
      trouble() {},
      distrusts() {},
      expelled() {},
    })
    return { membership, lease, rate }
  })
  time.afterEach = () => {
    for (const [node, { lease, rate }] of nodes.entries()) {
      const row = rows.get(`${node}`)
      const own = end.expulsions.find((one) => one.node === node)
      if (row?.alive === false && own === undefined)
        end.expulsions.push({ node, atMs: time.nowMs, leaseUntilMs: -Infinity })
      const expulsion = end.expulsions.find((one) => one.node === node)
      // An answer that came late may lengthen the lease even now.
      if (expulsion !== undefined)
        expulsion.leaseUntilMs = Math.max(expulsion.leaseUntilMs, lease.untilMs * rate)
    }
  }
  const lived = nodes.map(async ({ membership }, node) => {
    await membership.join().catch(() => {})
    while (time.nowMs < time.endMs && rows.get(`${node}`)?.alive === true) {
      await membership.step().catch(() => {})
      await time.pass(node, LEASE_MS / 5)
    }
  })
  await time.run()
  await Promise.all(lived)
  return end
}

interface Place {
  time: SimulatedTime
  rows: Map<string, Member>
  node: number
  rules: TableRules
}

/** The table as one node reaches it: what it asks takes effect halfway. */
function tableOf({ time, rows, node, rules }: Place): MemberTable {
  const asked = async <T>(work: () => T): Promise<T> => {
    await time.travel(node, 'there')
    const found = work()
    await time.travel(node, 'back')
    return found
  }
  return {
    all: () => asked(() => ({ members: [...rows.values()].map((row) => ({ ...row })), faults: [] })),
    join: (about) =>
      asked(() => {
        const row = { ...about, incarnation: 1, ended: 0, beat: 0, alive: true, owns: '{}' }
        rows.set(about.node, { ...row })
        return row
      }),
    beat: (last, next) =>
      asked(() => {
        const row = rows.get(last.node)
        if (row?.alive !== true || row.beat !== last.beat) return 'missed'
        row.beat = next.beat
        return 'counted'
      }),
    expel: (seen) =>
      asked(() => {
        const row = rows.get(seen.node)
        if (row?.alive !== true || (rules.expelsOnlyTheBeatSeen && row.beat !== seen.beat)) return false
        row.alive = false
        return true
      }),
    drop() {},
  }
}

/** A time that goes on when everybody waits for it. */
class SimulatedTime {
  readonly endMs = 12 * LEASE_MS
  nowMs = 0
  afterEach = () => {}
  readonly #lives: SimulatedLives
  #ways = 0
  #waiting: { atMs: number; wake: () => void }[] = []

  constructor(lives: SimulatedLives) {
    this.#lives = lives
  }

  /** Lets a node wait, and for longer where it is stopped then. */
  pass(node: number, ms: number): Promise<void> {
    let atMs = this.nowMs + ms
    for (const { kind, node: whose, fromMs, forMs } of this.#lives.troubles)
      if (kind === 'stopped' && whose === node && atMs >= fromMs && atMs < fromMs + forMs)
        atMs = fromMs + forMs
    return this.#until(atMs)
  }

  #until(atMs: number): Promise<void> {
    return new Promise((wake) => void this.#waiting.push({ atMs, wake }))
  }

  /** One way between a node and the table. @throws Error where the node is cut off meanwhile */
  async travel(node: number, way: 'there' | 'back'): Promise<void> {
    const { waysMs, troubles } = this.#lives
    const ms = waysMs[(this.#ways += 1) % waysMs.length] ?? 1
    // What is on its way there arrives, whoever sent it.
    if (way === 'there') await this.#until(this.nowMs + ms)
    else await this.pass(node, ms)
    const isCut = troubles.some(
      ({ kind, node: whose, fromMs, forMs }) =>
        (kind === 'allCutOff' || (kind === 'cutOff' && whose === node)) &&
        this.nowMs >= fromMs &&
        this.nowMs < fromMs + forMs,
    )
    if (isCut) throw new Error('The database cannot be reached')
  }

  async run(): Promise<void> {
    for (;;) {
      await turn()
      this.afterEach()
      const [next] = this.#waiting.sort((one, other) => one.atMs - other.atMs).splice(0, 1)
      if (next === undefined) return
      this.nowMs = Math.max(this.nowMs, next.atMs)
      next.wake()
    }
  }
}
