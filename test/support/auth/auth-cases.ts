import { describe, expect, it } from 'vitest'
import { ask, headOf, leavesUnchanged, scopedKey } from '../http/answers.js'
import { startAuthServer } from '../server/auth-server.js'
import type { TestAnswer, TestCall, TestServer } from '../server/server.js'

/*
 * Cases that many auth routes have: bodies that are none, callers who may not, a disk that is full, audit records.
 */

/** A route with a call that it takes; the server is there when the tests run. */
export interface AuthCase {
  server: () => TestServer
  route: string | (() => string)
  /** The body that it takes. */
  body?: Record<string, unknown>
  /** The credential that it takes; none when absent. */
  key?: () => string
}

/**
 * Calls without a credential unless one is named. Holds the answer to `outcome`, such as `401 unauthorized`; of a failed
 * sign-in at most the trace is written.
 */
export async function refused(
  server: TestServer,
  route: string,
  { outcome, ...call }: TestCall & { outcome: string },
): Promise<TestAnswer> {
  const send = () => ask(server, route, { key: null, ...call })
  const isSignIn = /^401 (?:passkey_failed|invalid_token|refresh_)/.test(outcome)
  const answer = isSignIn ? await onlyTraced(server, send) : await leavesUnchanged(server, 'default', send)
  expect(`${answer.status} ${answer.body.code}`, answer.text).toBe(outcome)
  return answer
}

/** Calls, and holds what was written to the trace of a failed sign-in. */
async function onlyTraced(server: TestServer, send: () => Promise<TestAnswer>): Promise<TestAnswer> {
  const seq = async () => (await headOf(server, 'default'))?.seq ?? 0
  const before = await seq()
  const { result, types } = await auditsOf(server, send)
  expect(types.filter((type) => type !== 'auth/login_failed')).toEqual([])
  expect((await seq()) - before).toBe(types.length)
  return result
}

/** An audit record by its type and body. */
export interface Audited {
  type: string
  payload: Record<string, unknown>
}

/** What `action` had written on the default agent's strand, in order. */
export async function auditsOf<T>(
  server: TestServer,
  action: () => Promise<T>,
): Promise<{ result: T; records: Audited[]; types: string[] }> {
  const before = (await headOf(server, 'default'))?.seq ?? 0
  const result = await action()
  const added = ((await headOf(server, 'default'))?.seq ?? 0) - before
  if (added === 0) return { result, records: [], types: [] }
  const body = { type: 'latest', limit: added, types: ['auth/*', 'record'] }
  const { body: page } = await ask(server, 'POST /v1/agents/default/query', { body })
  const records: Audited[] = page.records.toReversed()
  return { result, records, types: records.map(({ type }) => type) }
}

/** Starts a server again, on the same data, while its disk counts as full. */
export async function restartedFull(server: TestServer): Promise<TestServer> {
  await server.halt()
  return startAuthServer({ dataDir: server.dataDir, env: { SERVICE_MIN_FREE_BYTES: String(2 ** 52) } })
}

/** Tests of bodies that a route does not take: each is refused and appends nothing. */
export function refusesOtherBodies({ server, route, body = {}, key }: AuthCase): void {
  const path = () => (typeof route === 'string' ? route : route())
  const call = () => ({ key: key?.() ?? null })
  describe('a body that it does not take', () => {
    it.each(otherBodies(body))('is refused with 400: %s', async (_what, raw) => {
      await refused(server(), path(), { ...call(), raw, outcome: '400 validation_failed' })
    })

    it('is refused with 413 when it is too large, and with 415 when it is no JSON by its type', async () => {
      const raw = JSON.stringify({ ...body, padding: 'x'.repeat(70_000) })
      await refused(server(), path(), { ...call(), raw, outcome: '413 too_large' })
      const headers = { 'content-type': 'text/plain' }
      await refused(server(), path(), { ...call(), body, headers, outcome: '415 unsupported_media_type' })
    })
  })
}

function otherBodies(body: Record<string, unknown>): [what: string, raw: string][] {
  const text = JSON.stringify(body)
  const [first = ''] = Object.keys(body)
  return [
    ['nothing', ''],
    ['half a value', text.slice(0, -1)],
    ['an array', `[${text}]`],
    ['null', 'null'],
    ['a key twice', text.replace('{', `{${JSON.stringify(first)}:"twice",`)],
    ['__proto__', text.replace('{', '{"__proto__":{},')],
    ['bytes that are no characters', text.replace('}', ',"x":"\\ud800"}')],
    ['a member that it does not have', JSON.stringify({ ...body, admin: true })],
    ...Object.keys(body).flatMap((name): [string, string][] => [
      [`no ${name}`, JSON.stringify({ ...body, [name]: undefined })],
      [`a number as ${name}`, JSON.stringify({ ...body, [name]: 1 })],
      [`null as ${name}`, JSON.stringify({ ...body, [name]: null })],
    ]),
  ]
}

/** Tests of callers whom a route of users does not take. */
export function takesUsersOnly({
  server,
  route,
  body,
  key,
}: Required<Omit<AuthCase, 'body'>> & AuthCase): void {
  const path = () => (typeof route === 'string' ? route : route())
  it('answers 401 to anyone but a user, and appends nothing', async () => {
    for (const other of [null, server().rootKey, 'nonsense', (await scopedKey(server(), ['admin:*'])).key]) {
      await refused(server(), path(), { key: other, body, outcome: '401 unauthorized' })
    }
    const [head, claims] = key().split('.')
    const forged = `${head}.${claims}.${Buffer.alloc(64, 1).toString('base64url')}`
    await refused(server(), path(), { key: forged, body, outcome: '401 invalid_token' })
  })
}

/** Tests of callers whom a route of the namespace's administrators does not take. `user` gives a user's token. */
export function takesAdminsOnly({ server, route, body, user }: AuthCase & { user: () => string }): void {
  const path = () => (typeof route === 'string' ? route : route())
  it('answers 401 to who has no key and 403 to who has a lesser one, and appends nothing', async () => {
    for (const other of [null, user(), 'nonsense']) {
      await refused(server(), path(), { key: other, body, outcome: '401 unauthorized' })
    }
    const lesser = [
      await scopedKey(server(), ['records:read', 'records:write', 'ingest', 'agents:admin']),
      await scopedKey(server(), ['admin:organisms', 'proposals:decide']),
      await scopedKey(server(), ['admin:*'], ['default']),
    ]
    for (const { key } of lesser) await refused(server(), path(), { key, body, outcome: '403 forbidden' })
  })
}
