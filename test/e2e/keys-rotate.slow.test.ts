import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { register } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { newOrganism } from '../support/auth/organisms.js'
import type { TestServer } from '../support/server/server.js'

describe('strandfast keys rotate', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer()
    await newOrganism(server, 'acme')
  })

  afterAll(() => server?.stop())

  const rotate = (...more: string[]) => rotateAt(server.url, ...more)
  const rotateAt = (url: string, ...more: string[]) => {
    const env = { PATH: process.env['PATH'] }
    const args = ['dist/program/strandfast.js', 'keys', 'rotate', '--url', url, ...more]
    return spawnSync(process.execPath, args, { env, encoding: 'utf8' })
  }
  const kids = async (base: string): Promise<string[]> => {
    const { body } = await checkedCall(server, `GET ${base}/jwks`, { key: null })
    return body.keys.map(({ kid }: { kid: string }) => kid)
  }

  it.each([
    ['/v1/auth', []],
    ['/v1/organisms/acme/auth', ['--organism', 'acme']],
  ])('makes the server of %s sign with the key that was published as the next one', async (base, more) => {
    const [old, next] = await kids(base)
    const { status, stdout } = rotate('--api-key', server.rootKey, ...more)
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ kid: next })
    const after = await kids(base)
    expect(after[0]).toBe(next)
    expect(after).toContain(old)
  })

  it('does not invalidate issued tokens', async () => {
    const { token } = await register(server, 'ada@example.com')
    expect(rotate('--api-key', server.rootKey).status).toBe(0)
    expect((await checkedCall(server, 'GET /v1/auth/me', { key: token })).status).toBe(200)
  })

  it('prints an error and rotates nothing with a wrong key, no server or wrong usage', async () => {
    const before = await kids('/v1/auth')
    const refused = rotate('--api-key', 'no such key')
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('401')])
    const unreachable = rotateAt('http://127.0.0.1:1', '--api-key', server.rootKey)
    expect([unreachable.status, unreachable.stderr]).toEqual([1, expect.stringContaining('not rotated')])
    expect(rotate('--api-key', server.rootKey, '--nonsense').status).toBe(78)
    expect(await kids('/v1/auth')).toEqual(before)
  })
})
