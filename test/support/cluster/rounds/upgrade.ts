import { eventually } from '../../eventually.js'
import { type Fault, shuffled } from './fault.js'
import type { SupervisedNode } from './supervised-node.js'
import type { ThreeNodes } from './three-nodes.js'

/**
 * Each node is stopped in order and started as another version; the next time they go back. Meanwhile who runs another version
 * than the owner stands by, and says why it has no link; it takes over where the owner leaves.
 */
export const upgrade: Fault = {
  name: 'an upgrade, node by node',
  async act(all, chance) {
    const owner = await all.owner()
    const others = shuffled(all.nodes, chance).filter((node) => node !== owner)
    // The owner last, as docs/CLUSTER.md says; or any.
    const order = chance() < 0.6 ? [...others, owner] : shuffled(all.nodes, chance)
    const program = all.otherThan(owner.program)
    for (const node of order) {
      node.program = program
      await node.restart()
      await takesPart(all, node)
    }
  },
}

/** Resolves when a node answers, or has said that another one runs another version. */
async function takesPart(all: ThreeNodes, node: SupervisedNode): Promise<void> {
  await eventually(async () => !all.linked || (await node.answers()) || node.says('runs version'))
}
