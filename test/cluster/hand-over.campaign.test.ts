import { describe, expect, it } from 'vitest'
import { handOver } from '../support/cluster/hand-over.js'
import { noPostgres } from '../support/postgres/postgres.js'

describe.skipIf(noPostgres)('shards that move from one node to another', () => {
  it('are waited for: no request fails, no stream ends or lacks anything, and who gave them up ends in order', async () => {
    const { wrong, longestMs } = await handOver()
    console.log(`The longest call took ${Math.round(longestMs)} ms`)
    expect(wrong).toEqual([])
  })
})
