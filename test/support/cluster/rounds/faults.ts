import { eventually } from '../../eventually.js'
import type { Direction } from '../tcp-proxy.js'
import { anyOf, type Fault, heal, leases, moment, type OfOne, ofOwner } from './fault.js'
import { linkFaults, withoutLinks } from './link-faults.js'
import { upgrade } from './upgrade.js'

/**
 * Waits, mostly until other nodes have taken the shards of this one and a moment longer; then it must know
 * that it does not own them.
 */
const lasting: OfOne = async (all, node, chance) => {
  await leases(chance)
  if (chance() < 0.3) return
  const others = all.nodes.filter((one) => one !== node)
  await eventually(() => all.haveTakenOver(others))
  await moment(chance)
}

const someLeases: OfOne = (_all, _node, chance) => leases(chance)

const cutOff =
  (until: OfOne, ...directions: Direction[]): OfOne =>
  async (all, node, chance) => {
    const { proxies } = node.proxied
    for (const proxy of proxies) proxy.hold(...directions)
    await until(all, node, chance)
    heal(proxies, chance)
  }

const cutOffOneWay =
  (until: OfOne): OfOne =>
  (all, node, chance) =>
    cutOff(until, anyOf(['requests', 'answers'], chance))(all, node, chance)

const stopped =
  (until: OfOne): OfOne =>
  async (all, node, chance) => {
    node.signal('SIGSTOP')
    await until(all, node, chance)
    node.signal('SIGCONT')
  }

const halted =
  (signal: NodeJS.Signals): OfOne =>
  async (_all, node) =>
    void (await node.halt(signal))

/** Faults of nodes, and between them and the database. */
const ofNodes: readonly Fault[] = [
  ofOwner('kill -9 of the owner', halted('SIGKILL')),
  {
    name: 'kill -9 of all',
    act: async ({ nodes }) => void (await Promise.all(nodes.map((node) => node.halt('SIGKILL')))),
  },
  ofOwner('a stopped owner', stopped(lasting)),
  {
    name: 'stopped standbys',
    // Each is in the middle of following a log, and finds out that it was expelled.
    async act(all, chance) {
      const owner = await all.owner()
      const others = all.nodes.filter((node) => node !== owner)
      await Promise.all(others.map((node) => stopped(someLeases)(all, node, chance)))
    },
  },
  ofOwner('an owner that is cut off', cutOff(lasting)),
  ofOwner('an owner that is cut off one way', cutOffOneWay(lasting)),
  {
    name: 'ended connections',
    async act({ rig }, chance) {
      for (let times = 0; times < 5; times++) {
        await rig.primary.query(endAll)
        await moment(chance)
      }
    },
  },
  ofOwner('an owner that stops in order', halted('SIGTERM')),
]

const endAll = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'strandfast-cluster'`

/** Faults of the database. */
const ofDatabase: readonly Fault[] = [
  {
    name: 'a primary that is killed, and a standby promoted',
    async act({ rig }) {
      await rig.killPrimary()
      await rig.promote()
      await rig.restore()
    },
  },
  {
    name: 'standbys cut off, waiting ended, the primary killed, and a standby promoted',
    async act({ rig }, chance) {
      await rig.cutOffStandbys()
      for (let looks = 0; looks < 100 && (await rig.waiting()) === 0; looks++);
      for (let times = 0; times < 4; times++) await rig.endWaiting(anyOf(cancellers, chance))
      await moment(chance)
      await rig.killPrimary()
      await rig.promote()
      await rig.restore()
    },
  },
]

const cancellers = ['pg_terminate_backend', 'pg_cancel_backend'] as const

/** Sets the time of day of a node wrong, by less than a cluster accepts: only records show it. */
const wrongClock: Fault = {
  name: 'a clock of the owner that jumps before a take-over',
  async act(nodes, chance) {
    const owner = await nodes.owner()
    owner.setClock(anyOf([8_000, -8_000], chance))
    await leases(chance)
    await owner.halt(anyOf(['SIGKILL', 'SIGTERM'], chance))
    owner.setClock(0)
  },
}

/** Faults that may affect several nodes together; `until` may wait for a take-over. */
const single = (until: OfOne, linked: boolean): OfOne[] => [
  halted('SIGKILL'),
  halted('SIGTERM'),
  stopped(until),
  cutOff(until),
  cutOffOneWay(until),
  ...(linked ? [withoutLinks] : []),
]

/** Two of these faults, on two nodes. */
const twoTogether: Fault = {
  name: 'two faults together',
  async act(all, chance) {
    const owner = await all.owner()
    const others = all.nodes.filter((node) => node !== owner)
    const two = [owner, anyOf(others, chance)]
    await Promise.all(two.map((node) => anyOf(single(lasting, all.linked), chance)(all, node, chance)))
  },
}

/** One of these faults on each node: none may serve while they last. */
const threeTogether: Fault = {
  name: 'three faults together',
  async act(all, chance) {
    await Promise.all(
      all.nodes.map((node) => anyOf(single(someLeases, all.linked), chance)(all, node, chance)),
    )
  },
}

/** All faults, in the order for short runs. */
export const faults: readonly Fault[] = [
  ...ofNodes,
  ...ofDatabase,
  ...linkFaults,
  twoTogether,
  threeTogether,
  upgrade,
  wrongClock,
]

/** A round without a fault. */
const nothing: Fault = { name: 'nothing', act: (_nodes, chance) => leases(chance) }

/** The faults with these names, in the same order. */
export function faultsNamed(wanted: readonly string[]): Fault[] {
  return wanted.map((name) => {
    const found = [...faults, nothing].find((fault) => fault.name === name)
    if (found === undefined) throw new Error(`Unknown fault "${name}"`)
    return found
  })
}
