import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mailPageRoutes } from '../../src/front/routes/mail-pages.js'
import { ask, headOf } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { linkToken, register } from '../support/auth/accounts.js'
import type { TestServer } from '../support/server/server.js'

describe('the pages behind mailed links', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer()
  })

  afterAll(() => server?.stop())

  it.each(mailPageRoutes.map(({ path }) => path))(
    'serves %s to anyone, out of reach of other sites',
    async (path) => {
      const page = await ask(server, `GET ${path}?token=x`, { key: null })
      expect(page.status).toBe(200)
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      expect(page.headers.get('referrer-policy')).toBe('no-referrer')
      expect(page.headers.get('cache-control')).toBe('no-store')
      // What is in the address is for the script alone: no page repeats it.
      expect(page.text).not.toContain('token=x')
    },
  )

  it('consumes no link and writes nothing when a page is opened', async () => {
    const { email } = await register(server, 'opened@example.com')
    const token = await linkToken(server, 'magic-link/send', email)
    const before = await headOf(server, 'default')
    for (let count = 0; count < 3; count++) await ask(server, `GET /magic-link?token=${token}`, { key: null })
    expect(await headOf(server, 'default')).toEqual(before)
    const verified = await ask(server, 'POST /v1/auth/magic-link/verify', { key: null, body: { token } })
    expect(verified.status).toBe(200)
  })

  it('takes no other method', async () => {
    expect((await ask(server, 'POST /magic-link', { key: null })).body.code).toBe('method_not_allowed')
  })
})
