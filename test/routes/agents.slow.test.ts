import { expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { checkedCall } from '../support/http/answers.js'
import { startServer } from '../support/server/server.js'

it('a search for a part of a name examines a limited number of names at a time, and finds all of them', async () => {
  const server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  const count = limits.agentNamesExaminedMax * 3
  const names = Array.from({ length: count }, (_none, n) => `fleet-${String(n).padStart(6, '0')}`)
  // In each third of the names, so that some pages have no match.
  const rare = ['fleet-000000-Rare', `fleet-${String(count - 1).padStart(6, '0')}-rare`]
  const lines = [...names, ...rare].map((agent) => JSON.stringify({ agent, data: {} }))
  for (let from = 0; from < lines.length; from += 8_192) {
    const { body } = await checkedCall(server, 'POST /v1/ingest', {
      raw: lines.slice(from, from + 8_192).join('\n'),
      headers: { 'content-type': 'application/x-ndjson' },
    })
    expect(body.rejected).toBe(0)
  }
  for (const include of ['', '&include=status']) {
    const found: string[] = []
    let pages = 0
    for (let cursor: string | null = ''; cursor !== null; pages += 1) {
      const after: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { body } = await checkedCall(server, `GET /v1/agents?contains=RARE&limit=50${include}${after}`)
      found.push(...body.agents)
      cursor = body.next_cursor
    }
    expect(found).toEqual(rare)
    expect(pages).toBeGreaterThan(1)
  }
  // A full page ends with its last name, however far the shards have examined names.
  const { body } = await checkedCall(server, 'GET /v1/agents?contains=fleet&limit=3')
  expect(body.agents).toEqual(['fleet-000000', 'fleet-000000-Rare', 'fleet-000001'])
  const next = await checkedCall(server, `GET /v1/agents?contains=fleet&limit=2&cursor=${body.next_cursor}`)
  expect(next.body.agents).toEqual(['fleet-000002', 'fleet-000003'])
  await server.stop()
})
