import { eventually } from '../../eventually.js'
import { type Fault, shuffled } from './fault.js'
import type { SupervisedNode } from './supervised-node.js'
import type { ThreeNodes } from './three-nodes.js'

/**
 * Each node is stopped in order and started with another version; the next time with the first one again. A
 * node whose version differs from the owner's is a standby, reports why it has no link, and takes over when
 * the owner leaves.
 */
export const upgrade: Fault = {
  name: 'an upgrade, node by node',
  async act(all, chance) {
    const owner = await all.owner()
    const others = shuffled(all.nodes, chance).filter((node) => node !== owner)
    // The owner last, as docs/CLUSTER.md recommends; or in any order.
    const order = chance() < 0.6 ? [...others, owner] : shuffled(all.nodes, chance)
    const program = all.otherThan(owner.program)
    for (const node of order) {
      node.program = program
      await node.restart()
      await isBack(all, node)
    }
  },
}

/** Resolves when a node answers, or has logged that another node runs another version. */
async function isBack(all: ThreeNodes, node: SupervisedNode): Promise<void> {
  await eventually(async () => !all.linked || (await node.answers()) || node.hasLogged('runs version'))
}
