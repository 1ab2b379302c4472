import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mailPageRoutes } from '../../src/front/routes/mail-pages.js'
import { checkedCall, headOf } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { linkToken, register } from '../support/auth/accounts.js'
import type { TestServer } from '../support/server/server.js'

describe('the pages of mailed links', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer()
  })

  afterAll(() => server?.stop())

  it.each(mailPageRoutes.map(({ path }) => path))(
    'serves %s without a credential, isolated from other sites',
    async (path) => {
      const page = await checkedCall(server, `GET ${path}?token=x`, { key: null })
      expect(page.status).toBe(200)
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      expect(page.headers.get('referrer-policy')).toBe('no-referrer')
      expect(page.headers.get('cache-control')).toBe('no-store')
      // The query is only for the script: no page repeats it.
      expect(page.text).not.toContain('token=x')
    },
  )

  it('uses up no link and writes nothing when a page is opened', async () => {
    const { email } = await register(server, 'opened@example.com')
    const token = await linkToken(server, 'magic-link/send', email)
    const before = await headOf(server, 'default')
    for (let count = 0; count < 3; count++)
      await checkedCall(server, `GET /magic-link?token=${token}`, { key: null })
    expect(await headOf(server, 'default')).toEqual(before)
    const verified = await checkedCall(server, 'POST /v1/auth/magic-link/verify', {
      key: null,
      body: { token },
    })
    expect(verified.status).toBe(200)
  })

  it('answers 405 to other methods', async () => {
    expect((await checkedCall(server, 'POST /magic-link', { key: null })).body.code).toBe(
      'method_not_allowed',
    )
  })
})
