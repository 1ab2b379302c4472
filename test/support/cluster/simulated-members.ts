import { setImmediate as turn } from 'node:timers/promises'
import type { Member } from '../../../src/cluster/members/member.js'
import {
  Membership,
  type MembershipParts,
  type MemberTable,
} from '../../../src/cluster/members/membership.js'
import { LeaseMemory } from '../../../src/protocol/lease-memory.js'

export const LEASE_MS = 1_000

/** The course of a simulation. */
export interface Simulation {
  /** How much slower the clock of each node is than real time. */
  rates: readonly number[]
  /** Durations of trips to the table and back, used one after another by all nodes, milliseconds. */
  tripMs: readonly number[]
  /** Times in which a node is stopped or cut off from the table, or all nodes are cut off. */
  troubles: readonly {
    kind: 'stopped' | 'cutOff' | 'allCutOff'
    node: number
    fromMs: number
    forMs: number
  }[]
}

/** The result of a simulation. */
export interface SimulatedEnd {
  /**
   * Each expulsion: its time, and until when the expelled node believed to hold a lease, by the same clock.
   */
  expulsions: { node: number; atMs: number; leaseUntilMs: number }[]
}

/** Rules of the table that a test may break. */
export interface TableRules {
  expelsOnlyTheHeartbeatSeen: boolean
}

/** A membership whose changes are not reported. */
export function membershipOf(
  node: string,
  parts: Pick<MembershipParts, 'lease' | 'nowMs' | 'connect'>,
): Membership {
  return new Membership({
    about: { node, address: '', formatMax: 1, settingsDigest: '' },
    leaseMs: LEASE_MS,
    leaseMsOf: () => LEASE_MS,
    ...parts,
    changed() {},
    answers: () => false,
    trouble() {},
    faultsChanged() {},
    expelled() {},
  })
}

/** Runs several memberships on one table in memory, in simulated time; deterministic. */
export async function simulate(lives: Simulation, rules: TableRules): Promise<SimulatedEnd> {
  const time = new SimulatedTime(lives)
  const rows = new Map<string, Member>()
  const end: SimulatedEnd = { expulsions: [] }
  const nodes = lives.rates.map((rate, node) => {
    const clock = () => time.nowMs / rate
    const lease = new LeaseMemory(undefined, clock)
    const table = tableOf({ time, rows, node, rules })
    const membership = membershipOf(`${node}`, { lease, nowMs: clock, connect: async () => table })
    return { membership, lease, rate }
  })
  time.afterEach = () => {
    for (const [node, { lease, rate }] of nodes.entries()) {
      const row = rows.get(`${node}`)
      const own = end.expulsions.find((one) => one.node === node)
      if (row?.alive === false && own === undefined)
        end.expulsions.push({ node, atMs: time.nowMs, leaseUntilMs: -Infinity })
      const expulsion = end.expulsions.find((one) => one.node === node)
      // A late answer may still extend the lease.
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

interface TableAccess {
  time: SimulatedTime
  rows: Map<string, Member>
  node: number
  rules: TableRules
}

/** The table as one node reaches it: a request takes effect half-way. */
function tableOf({ time, rows, node, rules }: TableAccess): MemberTable {
  const request = async <T>(work: () => T): Promise<T> => {
    await time.travel(node, 'there')
    const found = work()
    await time.travel(node, 'back')
    return found
  }
  return {
    all: () => request(() => ({ members: [...rows.values()].map((row) => ({ ...row })), faults: [] })),
    join: (about) =>
      request(() => {
        const row: Member = { ...about, incarnation: 1, ended: 0, heartbeat: 0, alive: true, report: '{}' }
        rows.set(about.node, { ...row })
        return row
      }),
    heartbeat: (last, next) =>
      request(() => {
        const row = rows.get(last.node)
        if (row?.alive !== true || row.heartbeat !== last.heartbeat) return 'missed'
        row.heartbeat = next.heartbeat
        return 'counted'
      }),
    expel: (seen) =>
      request(() => {
        const row = rows.get(seen.node)
        if (row?.alive !== true || (rules.expelsOnlyTheHeartbeatSeen && row.heartbeat !== seen.heartbeat))
          return false
        row.alive = false
        return true
      }),
    drop() {},
  }
}

/** A clock that advances when all nodes wait for it. */
class SimulatedTime {
  readonly endMs = 12 * LEASE_MS
  nowMs = 0
  afterEach = () => {}
  readonly #lives: Simulation
  #trips = 0
  #sleepers: { atMs: number; wake: () => void }[] = []

  constructor(lives: Simulation) {
    this.#lives = lives
  }

  /** Makes a node wait, longer if it is stopped at that time. */
  pass(node: number, ms: number): Promise<void> {
    let atMs = this.nowMs + ms
    for (const { kind, node: whose, fromMs, forMs } of this.#lives.troubles)
      if (kind === 'stopped' && whose === node && atMs >= fromMs && atMs < fromMs + forMs)
        atMs = fromMs + forMs
    return this.#until(atMs)
  }

  #until(atMs: number): Promise<void> {
    return new Promise((wake) => void this.#sleepers.push({ atMs, wake }))
  }

  /** A trip between a node and the table. @throws Error if the node is cut off at the end */
  async travel(node: number, direction: 'there' | 'back'): Promise<void> {
    const { tripMs: waysMs, troubles } = this.#lives
    const ms = waysMs[(this.#trips += 1) % waysMs.length] ?? 1
    // A request that was sent arrives, even if its sender was stopped.
    if (direction === 'there') await this.#until(this.nowMs + ms)
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
      const [next] = this.#sleepers.sort((one, other) => one.atMs - other.atMs).splice(0, 1)
      if (next === undefined) return
      this.nowMs = Math.max(this.nowMs, next.atMs)
      next.wake()
    }
  }
}
