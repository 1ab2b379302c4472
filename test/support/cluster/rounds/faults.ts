import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../../eventually.js'
import type { Chance } from '../register-chaos.js'
import type { Direction } from '../tcp-proxy.js'
import type { SupervisedNode } from './supervised-node.js'
import type { ThreeNodes } from './three-nodes.js'

/** Something that happens to a cluster under load, and is over when it resolves. */
export interface Fault {
  name: string
  act(nodes: ThreeNodes, chance: Chance): Promise<void>
}

/** What a fault of one node may last, in leases of a second. */
const leases = (chance: Chance) => pause(1_500 + chance() * 2_500)

/** A shorter one, over before anybody is expelled. */
const moment = (chance: Chance) => pause(50 + chance() * 500)

/** Mostly until another node serves, and a moment longer: then this one must know that it does not. */
async function lasting(all: ThreeNodes, node: SupervisedNode, chance: Chance): Promise<void> {
  await leases(chance)
  if (chance() < 0.3) return
  const others = all.nodes.filter((one) => one !== node)
  await eventually(async () => (await Promise.all(others.map((one) => one.serves()))).includes(true))
  await moment(chance)
}

const cutOff =
  (...ways: Direction[]): OfOne =>
  async (all, node, chance) => {
    const { proxies } = node.ways
    for (const proxy of proxies) proxy.hold(...ways)
    await lasting(all, node, chance)
    for (const proxy of proxies) {
      if (chance() < 0.5) proxy.break()
      proxy.heal()
    }
  }

const cutOffOneWay: OfOne = (all, node, chance) =>
  cutOff(anyOf(['requests', 'answers'], chance))(all, node, chance)

const stopped: OfOne = async (all, node, chance) => {
  node.signal('SIGSTOP')
  await lasting(all, node, chance)
  node.signal('SIGCONT')
}

const halted =
  (signal: NodeJS.Signals): OfOne =>
  async (_all, node) =>
    void (await node.halt(signal))

/** Something that happens to one node. */
type OfOne = (all: ThreeNodes, node: SupervisedNode, chance: Chance) => Promise<void>

const ofOwner = (name: string, act: OfOne): Fault => ({
  name,
  act: async (nodes, chance) => act(nodes, await nodes.owner(), chance),
})

function anyOf<Item>(items: readonly Item[], chance: Chance): Item {
  const item = items[Math.floor(chance() * items.length)]
  if (item === undefined) throw new Error('Expected one of some')
  return item
}

/** What happens to nodes, or between them and the database. */
const ofNodes: readonly Fault[] = [
  ofOwner('kill -9 of the owner', halted('SIGKILL')),
  {
    name: 'kill -9 of all',
    act: async ({ nodes }) => void (await Promise.all(nodes.map((node) => node.halt('SIGKILL')))),
  },
  ofOwner('a stopped owner', stopped),
  ofOwner('an owner that is cut off', cutOff()),
  ofOwner('an owner that is cut off one way', cutOffOneWay),
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

/** Two of these at once, on two nodes. */
const twoAtOnce: Fault = {
  name: 'two at once',
  async act(all, chance) {
    const owner = await all.owner()
    const others = all.nodes.filter((node) => node !== owner)
    const two = [owner, anyOf(others, chance)]
    await Promise.all(two.map((node) => anyOf(single, chance)(all, node, chance)))
  },
}

const single: readonly OfOne[] = [halted('SIGKILL'), halted('SIGTERM'), stopped, cutOff(), cutOffOneWay]

/** All faults, in the order in which short runs have them. */
export const faults: readonly Fault[] = [...ofNodes, ...ofDatabase, twoAtOnce, wrongClock]

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
