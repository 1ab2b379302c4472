import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newOrganism } from '../support/auth/organisms.js'
import { outcomeOf } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { callAs } from '../support/http/call-as.js'
import { startServer, type TestServer } from '../support/server/server.js'

describe('a server whose data is open', () => {
  let open: TestServer

  beforeAll(async () => {
    open = await startServer({ env: { SERVICE_ENV: 'development', SERVICE_DATA_OPEN: 'true' } })
  })
  afterAll(() => open.stop())

  it('reports that it requires no credential', async () => {
    const { body } = await checkedCall(open, 'GET /readyz', { key: null })
    expect(body).toEqual({ status: 'ready', data_open: true })
    expect(open.stderr()).toContain('can read and write all data')
    const { body: server } = await checkedCall(open, 'GET /v1/server')
    expect(server.open_modes).toEqual([expect.stringContaining('SERVICE_DATA_OPEN=true')])
    const call = (headers: Record<string, string>) => callAs(open, { path: '/v1/agents', headers })
    for (const headers of [
      { host: 'rebound.example.org' },
      { host: '' },
      { 'sec-fetch-site': 'cross-site' },
    ]) {
      const refused = await call(headers)
      expect([refused.status, refused.body.code]).toEqual([403, 'foreign_request'])
      expect((await call({ ...headers, authorization: `Bearer ${open.rootKey}` })).status).toBe(200)
    }
    expect((await call({ host: 'localhost', 'sec-fetch-site': 'same-site' })).status).toBe(200)
  })

  it('reports an open principal', async () => {
    const { body } = await checkedCall(open, 'GET /v1/whoami', { key: null })
    expect(body).toMatchObject({ principal: 'open', kind: 'open' })
  })

  it('accepts writes without a credential, but not with a wrong one, and warns', async () => {
    const options = { key: null, body: { data: { n: 1 } } }
    expect((await checkedCall(open, 'POST /v1/agents/default/records', options)).status).toBe(201)
    expect((await checkedCall(open, 'GET /v1/agents', { key: 'wrong' })).status).toBe(401)
    expect(open.stderr()).toContain('SERVICE_DATA_OPEN')
  })
})

describe('a server without the log of heads and without the add-on', () => {
  let plain: TestServer

  beforeAll(async () => {
    plain = await startServer({ env: { SERVICE_SHARDS: '2', SERVICE_LOG_INTERVAL_SECS: '0' } })
  })
  afterAll(() => plain.stop())

  it('answers 404 for the log of heads', async () => {
    for (const path of ['proof?agent=default', 'checkpoint', 'consistency?from=1']) {
      const refused = await checkedCall(plain, `GET /v1/log/${path}`)
      expect([refused.status, refused.body.code]).toEqual([404, 'not_found'])
    }
    expect((await checkedCall(plain, 'GET /metrics', { key: null })).text).not.toContain(
      'strandfast_log_size',
    )
  })

  it('serves organisms, but refuses init', async () => {
    await newOrganism(plain, 'plain', { agents: ['a'], auth: false })
    expect(await outcomeOf(checkedCall(plain, 'POST /v1/organisms/plain/auth/init'))).toBe(
      '404 auth_disabled',
    )
    expect((await checkedCall(plain, 'GET /v1/organisms/plain')).body.auth).toBe(false)
  })
})
