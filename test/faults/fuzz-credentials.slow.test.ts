import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JwtKey } from '../../src/auth/jwt-key.js'
import { linkToken, type Account, ownedAgent, register } from '../support/auth/accounts.js'
import { checkedCall, scopedKey } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { runSeed } from '../support/run-seed.js'
import { encoded, partsOf, serverKey, signedToken, type TokenParts } from '../support/proof/forging.js'
import {
  changedText,
  changes,
  expectNoFailure,
  fuzz,
  headerText,
  oddText,
  rawAsk,
  type Change,
} from '../support/faults/fuzzing.js'
import { jsonText, spoiled, spoilings } from '../support/faults/odd-json.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * Credentials that are almost valid. None of them is accepted, changes a strand, or affects the valid one
 * from which it was derived. The test knows the server's master seed, so it can sign odd tokens with the
 * server's key.
 */

const seed = runSeed('fuzz-credentials')
const masterSeed = '5a'.repeat(32)

let server: TestServer
let account: Account
let agent = ''
let key: JwtKey
let good: TokenParts

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2', SERVICE_MASTER_SEED: masterSeed } })
  account = await register(server, 'ann@example.org')
  agent = await ownedAgent(server, 'notes')
  key = await serverKey(masterSeed)
  good = partsOf(account.token)
})
afterAll(() => server.stop())

/**
 * Requests to try with a credential: a route of users, a read, a write, a stream and a route of
 * administrators.
 */
const requests: [method: string, path: string, body?: string][] = [
  ['GET', '/v1/auth/me'],
  ['GET', '/v1/agents/notes/head'],
  ['POST', '/v1/agents/notes/records', '{"data":{"owner":"unknown"}}'],
  ['GET', '/v1/agents/notes/stream'],
  ['POST', '/v1/stream/tickets'],
  ['GET', '/v1/admin/api-keys'],
]

async function headOf(name: string): Promise<unknown> {
  return (await checkedCall(server, `GET /v1/agents/${name}/head`)).body
}

/** Expects that all requests return 401 and that no strand has changed. */
async function expectRefused(authorization: string): Promise<void> {
  const before = await headOf(agent)
  for (const [method, path, body] of requests) {
    const headers = { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) }
    const answer = await rawAsk(server, { method, path, headers, ...(body !== undefined && { body }) })
    const isText = !/[\x80-\xff]/.test(authorization)
    expect(answer.status, `${method} ${path} ${answer.text}`).toBe(isText ? 401 : 400)
  }
  expect(await headOf(agent)).toEqual(before)
}

/** The credential in a header (RFC 9110, 11.1: scheme in any case, then blanks). */
function credentialOf(authorization: string): string | undefined {
  const value = authorization.replaceAll(/^[\t ]+|[\t ]+$/g, '')
  return /^bearer +(.*)$/is.exec(value)?.[1]
}

/** Whether a token is the account's, or a spelling of it: the last of 86 characters has unused bits. */
function isAccountToken(token: string | undefined): boolean {
  return token?.length === account.token.length && token.slice(0, -1) === account.token.slice(0, -1)
}

describe('the token of a user', () => {
  it('is refused when any of its bytes is changed', async () => {
    const draw = fc.tuple(fc.boolean(), changes)
    await fuzz({ seed, runs: 13, draw }, async ([withScheme, by]) => {
      const authorization = withScheme
        ? changedText(`Bearer ${account.token}`, by)
        : `Bearer ${changedText(account.token, by)}`
      const sent = headerText(authorization)
      if (!isAccountToken(credentialOf(sent))) await expectRefused(sent)
    })
  })

  it('is refused or that of its owner, with any header and claims that the server’s key has signed', async () => {
    const draw = fc.record({
      where: fc.constantFrom('header', 'claims'),
      spoiling: spoilings,
      whole: fc.option(jsonText, { freq: 8 }),
    })
    await fuzz({ seed, runs: 15, draw }, async ({ where, spoiling, whole }) => {
      const odd = whole ?? spoiled(where === 'header' ? good.header : good.claims, spoiling)
      const token =
        where === 'header' ? signedToken(odd, good.claims, key) : signedToken(good.header, odd, key)
      if (token.length > 12_000) return
      const before = await headOf(agent)
      for (const [method, path, body] of requests.slice(0, 3)) {
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
        const answer = await rawAsk(server, { method, path, headers, ...(body !== undefined && { body }) })
        if (path === '/v1/auth/me' && answer.status === 200) expect(answer.body.user_id).toBe(account.userId)
      }
      // The record to write has no owner, so no policy allows it.
      expect(await headOf(agent)).toEqual(before)
    })
  })

  it('is refused when it consists of random parts', async () => {
    const part = fc.oneof(
      oddText.map(encoded),
      jsonText.map(encoded),
      fc.constantFrom('header', 'claims').map((name) => () => encoded(good[name])),
      fc.string(),
      fc
        .uint8Array({ minLength: 64, maxLength: 64 })
        .map((bytes) => Buffer.from(bytes).toString('base64url')),
    )
    const draw = fc.array(part, { minLength: 1, maxLength: 4 })
    await fuzz({ seed, runs: 8, draw }, async (parts) => {
      const token = headerText(parts.map((one) => (typeof one === 'string' ? one : one())).join('.'))
      if (token.length < 12_000) await expectRefused(`Bearer ${token}`)
    })
  })
})

describe('an API key', () => {
  it('is refused when any of its bytes is changed', async () => {
    const scoped = await scopedKey(server, ['admin:*'])
    const draw = fc.tuple(fc.constantFrom(scoped.key, server.rootKey), fc.boolean(), changes)
    await fuzz({ seed, runs: 13, draw }, async ([credential, withScheme, by]) => {
      const authorization = withScheme
        ? changedText(`Bearer ${credential}`, by)
        : `Bearer ${changedText(credential, by)}`
      const sent = headerText(authorization)
      if (credentialOf(sent) !== credential) await expectRefused(sent)
    })
  })
})

/** A secret in the query or body of a request. */
interface RequestSecret {
  secret(): Promise<string>
  show(secret: string): ReturnType<typeof call>
  /** Answers to a wrong secret. */
  refusals: string[]
}

const inBody =
  (path: string, body: (secret: string) => object): RequestSecret['show'] =>
  async (secret) => {
    const answer = await checkedCall(server, `POST /v1/auth/${path}`, { key: null, body: body(secret) })
    expectNoFailure(answer)
    return answer
  }

const tokenOnly = (token: string) => ({ token })

const requestSecrets: Record<string, RequestSecret> = {
  'a refresh token': {
    secret: async () => account.refreshToken,
    show: inBody('refresh', (secret) => ({ refresh_token: secret })),
    refusals: ['401 refresh_invalid'],
  },
  'a magic link': {
    secret: () => linkToken(server, 'magic-link/send', account.email),
    show: inBody('magic-link/verify', tokenOnly),
    refusals: ['401 invalid_token'],
  },
  'a link that verifies an e-mail': {
    secret: () => linkToken(server, 'verify-email/send', account.email),
    show: inBody('verify-email', tokenOnly),
    refusals: ['400 invalid_token'],
  },
  'a link that resets a password': {
    secret: () => linkToken(server, 'password/reset-request', account.email),
    show: inBody('password/reset', (token) => ({ token, password: 'another long phrase of mine' })),
    refusals: ['400 invalid_token'],
  },
  'a ticket of a stream': {
    secret: async () => (await checkedCall(server, 'POST /v1/stream/tickets')).body.ticket,
    show: (ticket) =>
      rawAsk(server, {
        method: 'GET',
        path: `/v1/agents/notes/stream?${new URLSearchParams({ ticket })}`,
        headers: { authorization: '' },
      }),
    refusals: ['401 unauthorized'],
  },
}

describe.each(Object.entries(requestSecrets))('%s', (_name, { secret, show, refusals }) => {
  it('is refused when any of its bytes is changed, and the right one still works afterwards', async () => {
    const right = await secret()
    const draw = fc.oneof(changes, oddText)
    const before = await headOf('default')
    await fuzz({ seed, runs: 8, draw }, async (drawn: readonly Change[] | string) => {
      const wrong = typeof drawn === 'string' ? drawn : changedText(right, drawn)
      if (wrong === right) return
      const { status, body } = await show(wrong)
      // A lone surrogate makes the JSON invalid.
      expect([...refusals, '400 validation_failed']).toContain(`${status} ${body?.code}`)
    })
    // Wrong secrets belong to no account, so there is no audit record.
    expect(await headOf('default')).toEqual(before)
    expect((await show(right)).status).toBe(200)
  })
})

it('the server still works after the test', async () => {
  expect((await call(server, 'GET /readyz')).status).toBe(200)
  expect(server.stderr()).toBe('')
})
