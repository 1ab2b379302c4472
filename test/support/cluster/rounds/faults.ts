import { eventually } from '../../eventually.js'
import type { Direction } from '../tcp-proxy.js'
import { anyOf, type Fault, heal, leases, moment, type OfOne, ofOwner } from './fault.js'
import { linkFaults, withoutLinks } from './link-faults.js'
import { upgrade } from './upgrade.js'

/** Mostly until other nodes have taken the shards of this one, and a moment longer: then it must know that it does not own them. */
const lasting: OfOne = async (all, node, chance) => {
  await leases(chance)
  if (chance() < 0.3) return
  const others = all.nodes.filter((one) => one !== node)
  await eventually(() => all.haveTaken(others))
  await moment(chance)
}

const aWhile: OfOne = (_all, _node, chance) => leases(chance)

const cutOff =
  (until: OfOne, ...ways: Direction[]): OfOne =>
  async (all, node, chance) => {
    const { proxies } = node.ways
    for (const proxy of proxies) proxy.hold(...ways)
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

/** What happens to nodes, or between them and the database. */
const ofNodes: readonly Fault[] = [
  ofOwner('kill -9 of the owner', halted('SIGKILL')),
  {
    name: 'kill -9 of all',
    act: async ({ nodes }) => void (await Promise.all(nodes.map((node) => node.halt('SIGKILL')))),
  },
  ofOwner('a stopped owner', stopped(lasting)),
  {
    name: 'stopped nodes that stand by',
    // Each is in the midst of what it follows, and learns that it was expelled.
    async act(all, chance) {
      const owner = await all.owner()
      const others = all.nodes.filter((node) => node !== owner)
      await Promise.all(others.map((node) => stopped(aWhile)(all, node, chance)))
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

/** What happens to the database. */
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
      for (let times = 0; times < 4; times++) await rig.endWaiting(anyOf(ways, chance))
      await moment(chance)
      await rig.killPrimary()
      await rig.promote()
      await rig.restore()
    },
  },
]

const ways = ['pg_terminate_backend', 'pg_cancel_backend'] as const

/** The time of day of a node is wrong, by less than the shard's clock may run ahead: nobody but records tells it. */
const wrongClock: Fault = {
  name: 'a clock of the owner that jumps, and another one takes over',
  async act(nodes, chance) {
    const owner = await nodes.owner()
    owner.setClock(anyOf([30_000, -25_000], chance))
    await leases(chance)
    await owner.halt(anyOf(['SIGKILL', 'SIGTERM'], chance))
    owner.setClock(0)
  },
}

/** What may happen to several nodes at once; until another one serves where `until` says so. */
const single = (until: OfOne, linked: boolean): OfOne[] => [
  halted('SIGKILL'),
  halted('SIGTERM'),
  stopped(until),
  cutOff(until),
  cutOffOneWay(until),
  ...(linked ? [withoutLinks] : []),
]

/** Two of these at once, on two nodes. */
const twoAtOnce: Fault = {
  name: 'two at once',
  async act(all, chance) {
    const owner = await all.owner()
    const others = all.nodes.filter((node) => node !== owner)
    const two = [owner, anyOf(others, chance)]
    await Promise.all(two.map((node) => anyOf(single(lasting, all.linked), chance)(all, node, chance)))
  },
}

/** On all nodes: there may be none that serves meanwhile. */
const threeAtOnce: Fault = {
  name: 'three at once',
  async act(all, chance) {
    await Promise.all(all.nodes.map((node) => anyOf(single(aWhile, all.linked), chance)(all, node, chance)))
  },
}

/** All faults, in the order in which short runs have them. */
export const faults: readonly Fault[] = [
  ...ofNodes,
  ...ofDatabase,
  ...linkFaults,
  twoAtOnce,
  threeAtOnce,
  upgrade,
  wrongClock,
]

/** A round in which nothing happens. */
const nothing: Fault = { name: 'nothing', act: (_nodes, chance) => leases(chance) }

/** The faults of these names, in their order. */
export function faultsNamed(wanted: readonly string[]): Fault[] {
  return wanted.map((name) => {
    const found = [...faults, nothing].find((fault) => fault.name === name)
    if (found === undefined) throw new Error(`Expected a fault to be called ${name}`)
    return found
  })
}
