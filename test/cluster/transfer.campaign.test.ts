import { describe, expect, it } from 'vitest'
import { transferShards } from '../support/cluster/transfer.js'
import { noPostgres } from '../support/postgres/postgres.js'

describe.skipIf(noPostgres)('shards that are transferred to another node', () => {
  it('are waited for: no request fails, no stream ends or misses an event, and the former owner ends in order', async () => {
    const { wrong, longestMs } = await transferShards()
    console.log(`The longest call took ${Math.round(longestMs)} ms`)
    expect(wrong).toEqual([])
  })
})
