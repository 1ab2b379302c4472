import { describe, expect, it } from 'vitest'
import { handOver } from '../support/cluster/hand-over.js'
import { plantedBuild, plantedHandOvers } from '../support/cluster/rounds/planted-build.js'
import { noPostgres } from '../support/postgres/postgres.js'

describe.skipIf(noPostgres)('shards that move from one node to another', () => {
  it.each(plantedHandOvers)('show $name', async ({ changes }) => {
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
