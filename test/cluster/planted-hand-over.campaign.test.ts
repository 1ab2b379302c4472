import { describe, expect, it } from 'vitest'
import { handOver } from '../support/cluster/hand-over.js'
import { plantedBuild, type PlantedBug } from '../support/cluster/rounds/planted-build.js'
import { noPostgres } from '../support/postgres/postgres.js'

/** Rules of a hand-over (docs/adr/0048-owners-of-shards.md), each of them broken. */
const bugs: readonly Pick<PlantedBug, 'name' | 'changes'>[] = [
  {
    name: 'an owner that gives a shard up before others have stopped sending to it',
    changes: [['await leaving(shard);', '']],
  },
  {
    name: 'a front of another node that goes on sending',
    changes: [['if (end !== void 0) this.#parts.links[shard]?.leaving(end);', '']],
  },
  {
    name: 'commands that do not wait for the next owner',
    changes: [['this.#held = waits ? new HeldCommands() : void 0;', 'this.#held = void 0;']],
  },
  {
    name: 'callers that do not wait until it is known again who they are',
    changes: [['await handling.shards.untilCurrent(decidingShard(caller, handling));', '']],
  },
]

describe.skipIf(noPostgres)('shards that move from one node to another', () => {
  it.each(bugs)('show $name', async ({ changes }) => {
    const build = plantedBuild({ changes })
    try {
      const { wrong } = await handOver(build.program)
      console.log(wrong[0])
      expect(wrong).not.toEqual([])
    } finally {
      build.remove()
    }
  })
})
