import { describe, expect, it } from 'vitest'
import { transferShards } from '../support/cluster/transfer.js'
import { plantedBuild, plantedTransfers } from '../support/cluster/rounds/planted-build.js'
import { noPostgres } from '../support/postgres/postgres.js'

describe.skipIf(noPostgres)('a transfer of shards', () => {
  it.each(plantedTransfers)('reveals $name', async ({ changes }) => {
    const build = plantedBuild({ changes })
    try {
      const { wrong } = await transferShards(build.program)
      console.log(wrong[0])
      expect(wrong).not.toEqual([])
    } finally {
      build.remove()
    }
  })
})
