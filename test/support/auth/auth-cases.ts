import { describe, expect, it } from 'vitest'
import { checkedCall, headOf, expectUnchanged, scopedKey } from '../http/answers.js'
import { startAuthServer } from '../server/auth-server.js'
import type { TestAnswer, TestCall, TestServer } from '../server/server.js'

/* Test cases of many auth routes: invalid bodies, callers without permission, a full disk, audit records. */

/** A route with a valid call; the server is available when the tests run. */
export interface AuthCase {
  server: () => TestServer
  route: string | (() => string)
  /** A valid body. */
  body?: Record<string, unknown>
  /** A valid credential; absent if the route needs none. */
  key?: () => string
}

/**
 * Makes a call, by default without a credential, and expects the `outcome`, such as `401 unauthorized`. A
 * refused call must not append records, except the audit record of a failed sign-in.
 */
export async function refused(
  server: TestServer,
  route: string,
  { outcome, ...call }: TestCall & { outcome: string },
): Promise<TestAnswer> {
  const send = () => checkedCall(server, route, { key: null, ...call })
  const isSignIn = /^(?:401 (?:passkey_failed|refresh_)|40[01] invalid_token|409 passkey_exists)/.test(
    outcome,
  )
  const answer = isSignIn ? await onlyAudited(server, send) : await expectUnchanged(server, 'default', send)
  expect(`${answer.status} ${answer.body.code}`, answer.text).toBe(outcome)
  return answer
}

/** Makes a call, and expects no new records except those of a failed sign-in. */
async function onlyAudited(server: TestServer, send: () => Promise<TestAnswer>): Promise<TestAnswer> {
  const seq = async () => (await headOf(server, 'default'))?.seq ?? 0
  const before = await seq()
  const { result, types } = await auditsOf(server, send)
  expect(types.filter((type) => type !== 'auth/login_failed')).toEqual([])
  expect((await seq()) - before).toBe(types.length)
  return result
}

/** The type and body of an audit record. */
export interface Audited {
  type: string
  payload: Record<string, unknown>
}

/** Runs `action`. @returns the records that it caused on the strand of the default agent, in order */
export async function auditsOf<T>(
  server: TestServer,
  action: () => Promise<T>,
): Promise<{ result: T; records: Audited[]; types: string[] }> {
  const before = (await headOf(server, 'default'))?.seq ?? 0
  const result = await action()
  const added = ((await headOf(server, 'default'))?.seq ?? 0) - before
  if (added === 0) return { result, records: [], types: [] }
  const body = { type: 'latest', limit: added, types: ['auth/*', 'record'] }
  const { body: page } = await checkedCall(server, 'POST /v1/agents/default/query', { body })
  const records: Audited[] = page.records.toReversed()
  return { result, records, types: records.map(({ type }) => type) }
}

/** Restarts a server on the same data with a disk that counts as full. */
export async function restartWithFullDisk(server: TestServer): Promise<TestServer> {
  await server.halt()
  return startAuthServer({ dataDir: server.dataDir, env: { SERVICE_MIN_FREE_BYTES: String(2 ** 52) } })
}

/** Tests that invalid bodies are refused and append nothing. */
export function refusesInvalidBodies({ server, route, body = {}, key }: AuthCase): void {
  const path = () => (typeof route === 'string' ? route : route())
  const call = () => ({ key: key?.() ?? null })
  describe('an invalid body', () => {
    it.each(otherBodies(body))('is refused with 400: %s', async (_name, raw) => {
      await refused(server(), path(), { ...call(), raw, outcome: '400 validation_failed' })
    })

    it('is refused with 413 when it is too large, and with 415 when its type is not JSON', async () => {
      const raw = JSON.stringify({ ...body, padding: 'x'.repeat(70_000) })
      await refused(server(), path(), { ...call(), raw, outcome: '413 too_large' })
      const headers = { 'content-type': 'text/plain' }
      await refused(server(), path(), { ...call(), body, headers, outcome: '415 unsupported_media_type' })
    })
  })
}

function otherBodies(body: Record<string, unknown>): [name: string, raw: string][] {
  const text = JSON.stringify(body)
  const [first = ''] = Object.keys(body)
  return [
    ['nothing', ''],
    ['half a value', text.slice(0, -1)],
    ['an array', `[${text}]`],
    ['null', 'null'],
    ['a key twice', text.replace('{', `{${JSON.stringify(first)}:"twice",`)],
    ['__proto__', text.replace('{', '{"__proto__":{},')],
    ['a lone surrogate', text.replace('}', ',"x":"\\ud800"}')],
    ['an unknown member', JSON.stringify({ ...body, admin: true })],
    ...Object.keys(body).flatMap((name): [string, string][] => [
      [`no ${name}`, JSON.stringify({ ...body, [name]: undefined })],
      [`a number as ${name}`, JSON.stringify({ ...body, [name]: 1 })],
      [`null as ${name}`, JSON.stringify({ ...body, [name]: null })],
    ]),
  ]
}

/** Tests that a route for users refuses other callers. */
export function acceptsUsersOnly({
  server,
  route,
  body,
  key,
}: Required<Omit<AuthCase, 'body'>> & AuthCase): void {
  const path = () => (typeof route === 'string' ? route : route())
  it('returns 401 for callers other than users, and appends nothing', async () => {
    for (const other of [null, server().rootKey, 'nonsense', (await scopedKey(server(), ['admin:*'])).key]) {
      await refused(server(), path(), { key: other, body, outcome: '401 unauthorized' })
    }
    const [head, claims] = key().split('.')
    const forged = `${head}.${claims}.${Buffer.alloc(64, 1).toString('base64url')}`
    await refused(server(), path(), { key: forged, body, outcome: '401 invalid_token' })
  })
}

/**
 * Tests that a route for administrators of the namespace refuses other callers. `user` returns the token of a
 * user.
 */
export function acceptsAdminsOnly({ server, route, body, user }: AuthCase & { user: () => string }): void {
  const path = () => (typeof route === 'string' ? route : route())
  it('returns 401 without a key and 403 for a key without the permission, and appends nothing', async () => {
    for (const other of [null, user(), 'nonsense']) {
      await refused(server(), path(), { key: other, body, outcome: '401 unauthorized' })
    }
    const keys = [
      await scopedKey(server(), ['records:read', 'records:write', 'ingest', 'agents:admin']),
      await scopedKey(server(), ['admin:organisms', 'proposals:decide']),
      await scopedKey(server(), ['admin:*'], ['default']),
    ]
    for (const { key } of keys) await refused(server(), path(), { key, body, outcome: '403 forbidden' })
  })
}
