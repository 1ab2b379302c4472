import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newOrganism } from '../support/auth/organisms.js'
import { outcomeOf } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startServer, type TestServer } from '../support/server/server.js'

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
