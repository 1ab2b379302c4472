import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../../eventually.js'
import type { Chance } from '../register-chaos.js'
import type { Direction } from '../tcp-proxy.js'
import { type LoadRequest, posting, requestNode } from './cluster-client.js'
import { erasedAgent } from './erasures.js'
import { anyOf, type Fault, heal, leases, moment, type OfOne, shuffled } from './fault.js'
import type { ThreeNodes } from './three-nodes.js'

/**
 * Waits for less than a node may answer without receiving from the owner, which is half a second here; or for
 * longer.
 */
const lapse = (chance: Chance) => pause(chance() < 0.4 ? 50 + chance() * 350 : 700 + chance() * 2_500)

const cutOffFromOthers =
  (...directions: Direction[]): OfOne =>
  async (all, node, chance) => {
    const proxies = all.links.between([node.name])
    for (const proxy of proxies) proxy.hold(...directions)
    await lapse(chance)
    heal(proxies, chance)
  }

/** An erasure takes half a second then; the link ends after two. */
const ERASURE_MS = 1_300
const MOMENT_MS = 200
const READ_MS = 2_000

const onAll = ({ urls }: ThreeNodes, request: LoadRequest, timeoutMs: number) =>
  Promise.all(urls.map((url) => requestNode(url, request, timeoutMs)))

/** The path of a new record which every node has in its memory. */
async function recordKnownTo(all: ThreeNodes): Promise<string> {
  const records = `/v1/agents/${erasedAgent}/records`
  const { body } = await all.client.insist(posting(records, { data: { known: true } }))
  const path = `${records}/${body.content_hash}`
  await eventually(async () =>
    (await onAll(all, { method: 'GET', path }, READ_MS)).every((answer) => answer?.status === 200),
  )
  return path
}

/** Cuts all links of one node, in both directions or one. */
export const withoutLinks: OfOne = (all, node, chance) => {
  const kinds: Direction[][] = [[], [], ['requests'], ['answers']]
  return cutOffFromOthers(...anyOf(kinds, chance))(all, node, chance)
}

/** Faults between nodes. */
export const linkFaults: readonly Fault[] = [
  {
    name: 'an owner that is cut off from the other nodes',
    needsLinks: true,
    act: async (all, chance) => cutOffFromOthers()(all, await all.owner(), chance),
  },
  {
    name: 'an owner that is cut off from the other nodes one way',
    needsLinks: true,
    async act(all, chance) {
      const direction = anyOf<Direction>(['requests', 'answers'], chance)
      await cutOffFromOthers(direction)(all, await all.owner(), chance)
    },
  },
  {
    name: 'a record that is erased while a node is cut off from the others',
    needsLinks: true,
    async act(all, chance) {
      const path = await recordKnownTo(all)
      const proxies = all.links.between([anyOf(all.nodes, chance).name])
      for (const proxy of proxies) proxy.hold()
      // The owner can do so once that node cannot answer any more, unless it is that node.
      const erased = await onAll(all, posting(`${path}/erase`, {}), ERASURE_MS)
      const isErased = erased.some((answer) => answer?.status === 200)
      const answers = isErased ? await onAll(all, { method: 'GET', path }, MOMENT_MS) : []
      heal(proxies, chance)
      return answers.flatMap((answer) =>
        answer?.status === 200 && answer.body.erased !== true
          ? ['A node showed a record that was erased']
          : [],
      )
    },
  },
  {
    name: 'two nodes that are cut off from each other, and perhaps the owner is killed',
    needsLinks: true,
    async act(all, chance) {
      const [one, other] = shuffled(all.nodes, chance)
      if (one === undefined || other === undefined) throw new Error('A cluster needs two nodes')
      const proxies = all.links.between([one.name], [other.name])
      for (const proxy of proxies) proxy.hold()
      await lapse(chance)
      if (chance() < 0.5) {
        await (await all.owner()).halt('SIGKILL')
        await all.owner()
        await moment(chance)
      }
      heal(proxies, chance)
    },
  },
  {
    name: 'broken links',
    needsLinks: true,
    async act(all, chance) {
      for (let times = 0; times < 5; times++) {
        for (const { name } of all.nodes) for (const proxy of all.links.between([name])) proxy.break()
        await moment(chance)
      }
    },
  },
  {
    name: 'broken links to an owner whose database is slow, and perhaps it is killed',
    needsLinks: true,
    async act(all, chance) {
      const owner = await all.owner()
      for (const proxy of owner.proxied.proxies) proxy.delay(110 + chance() * 40)
      for (const proxy of all.links.between([owner.name])) proxy.break()
      await moment(chance)
      // The node then reads, over the slow connection, what another one writes over a fast one, and must
      // catch up nevertheless.
      if (chance() < 0.5) await owner.halt('SIGKILL')
      // Checking the membership in the database takes longer than the time limit between two messages.
      await eventually(async () =>
        (await Promise.all(all.nodes.map((node) => node.answers()))).every(Boolean),
      )
      for (const proxy of owner.proxied.proxies) proxy.heal()
    },
  },
  {
    name: 'slow links',
    needsLinks: true,
    async act(all, chance) {
      const proxies = all.links.between(all.nodes.map(({ name }) => name))
      for (const proxy of proxies) proxy.delay(10 + chance() * 190)
      await leases(chance)
      for (const proxy of proxies) proxy.heal()
    },
  },
]
