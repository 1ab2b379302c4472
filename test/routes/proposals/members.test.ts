import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, scopedKey } from '../../support/http/answers.js'
import { run } from '../../support/server/command.js'
import { proposeEverything, valuesIn, type SignedProposal } from '../../support/server/every-proposal.js'
import { startServer, type TestServer } from '../../support/server/server.js'

/* What is approved is what is shown: every member of the signed record of a proposal. */

let server: TestServer
let proposals: SignedProposal[]

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  proposals = await proposeEverything(server)
})
afterAll(() => server.stop())

/** The values of the body that a view does not have. */
function missingFrom(view: unknown, body: Record<string, unknown>): unknown[] {
  const shown = new Set(valuesIn(view))
  return valuesIn(body).filter((value) => !shown.has(value))
}

describe('the members of the signed record of each proposal', () => {
  it('are all in the list of proposals', async () => {
    for (const { id, agent, action, body } of proposals) {
      const { body: page } = await checkedCall(server, `GET /v1/proposals?agent=${agent}`)
      const view = page.proposals.find((one: { proposal_id: string }) => one.proposal_id === id)
      expect({ action, missing: missingFrom(view, body) }).toEqual({ action, missing: [] })
    }
  })

  it('include the expiry of a proposed key, which differs from that of its proposal', () => {
    const key = proposals.find(({ action }) => action === 'make_api_key')?.body
    expect(Number(key?.['expires_at_ms']) - Number(key?.['key_expires_at_ms'])).toBeGreaterThan(
      6 * 86_400_000,
    )
  })

  it('are all in the output of the command line', async () => {
    const env = { SERVICE_ROOT_API_KEY: server.rootKey }
    const text = await run(['proposals', 'list', '--url', server.url, '--format', 'text'], env)
    expect(text.status, text.stderr).toBe(0)
    const json = await run(['proposals', 'list', '--url', server.url, '--format', 'json'], env)
    expect(json.status, json.stderr).toBe(0)
    const views = json.stdout
      .trim()
      .split('\n')
      .map((line): { proposal_id: string } => JSON.parse(line))
    for (const { id, action, body } of proposals) {
      const view = views.find(({ proposal_id: one }) => one === id)
      expect({ action, missing: missingFrom(view, body) }).toEqual({ action, missing: [] })
      const row = text.stdout.split('\n').find((line) => line.includes(id)) ?? ''
      const { line: _line, effective_at_ms: _effective, expires_at_ms: _expires, ...changed } = body
      const missing = valuesIn(changed).filter((value) => !row.includes(String(value)))
      expect({ action, missing }).toEqual({ action, missing: [] })
    }
  })

  it('are all in the answer to a vote', async () => {
    const { key } = await scopedKey(server, ['admin:*'])
    for (const { id, action, body } of proposals) {
      const { body: view } = await checkedCall(server, `POST /v1/proposals/${id}/reject`, { key })
      expect(view.state).toBe('rejected')
      expect({ action, missing: missingFrom(view, body) }).toEqual({ action, missing: [] })
    }
  })
})
