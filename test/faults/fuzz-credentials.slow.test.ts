import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JwtKey } from '../../src/auth/jwt-key.js'
import { linkToken, type Account, ownedAgent, register } from '../support/auth/accounts.js'
import { ask, scopedKey } from '../support/http/answers.js'
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
 * Credentials that are nearly good. None of them opens anything, changes a strand, or harms the good one that it was
 * made of. The test knows the server's master seed, so it can sign odd tokens by the server's own key.
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

/** What a credential is tried on: a route of users, a read, a write, a stream and one for administrators. */
const tries: [method: string, path: string, body?: string][] = [
  ['GET', '/v1/auth/me'],
  ['GET', '/v1/agents/notes/head'],
  ['POST', '/v1/agents/notes/records', '{"data":{"owner":"nobody"}}'],
  ['GET', '/v1/agents/notes/stream'],
  ['POST', '/v1/stream/tickets'],
  ['GET', '/v1/admin/api-keys'],
]

async function headOf(name: string): Promise<unknown> {
  return (await ask(server, `GET /v1/agents/${name}/head`)).body
}

/** Tries it everywhere: 401, and no strand has changed. */
async function expectRefused(authorization: string): Promise<void> {
  const before = await headOf(agent)
  for (const [method, path, body] of tries) {
    const headers = { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) }
    const answer = await rawAsk(server, { method, path, headers, ...(body !== undefined && { body }) })
    expect(answer.status, `${method} ${path} ${answer.text}`).toBe(401)
  }
  expect(await headOf(agent)).toEqual(before)
}

/**
 * The credential of a header (RFC 9110, 11.1: the scheme in any case, blanks between). Around a value uWebSockets.js
 * takes bytes beyond ASCII for blanks.
 */
function credentialOf(authorization: string): string | undefined {
  const value = authorization.replaceAll(/^[\s\x80-\xff]+|[\s\x80-\xff]+$/g, '')
  return /^bearer +(.*)$/is.exec(value)?.[1]
}

/** Whether it is the good token, or another spelling of it: the last of 86 characters has bits to spare. */
function isAccounts(token: string | undefined): boolean {
  return token?.length === account.token.length && token.slice(0, -1) === account.token.slice(0, -1)
}

describe('the token of a user', () => {
  it('opens nothing when any of its bytes is another', async () => {
    const draw = fc.tuple(fc.boolean(), changes)
    await fuzz({ seed, runs: 13, draw }, async ([withScheme, by]) => {
      const authorization = withScheme
        ? changedText(`Bearer ${account.token}`, by)
        : `Bearer ${changedText(account.token, by)}`
      const sent = headerText(authorization)
      if (!isAccounts(credentialOf(sent))) await expectRefused(sent)
    })
  })

  it('is refused or that of its owner, whatever the server’s own key has signed', async () => {
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
      for (const [method, path, body] of tries.slice(0, 3)) {
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
        const answer = await rawAsk(server, { method, path, headers, ...(body !== undefined && { body }) })
        if (path === '/v1/auth/me' && answer.status === 200) expect(answer.body.user_id).toBe(account.userId)
      }
      // What it tries to write is nobody's, so no policy allows it.
      expect(await headOf(agent)).toEqual(before)
    })
  })

  it('opens nothing when its parts are put together from anything', async () => {
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
  it('opens nothing when any of its bytes is another', async () => {
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

/** A secret that a request shows in its query or body, once or until it is replaced. */
interface Shown {
  secret(): Promise<string>
  show(secret: string): ReturnType<typeof call>
  /** What a wrong one is answered by. */
  refusals: string[]
}

const inBody =
  (path: string, body: (secret: string) => object): Shown['show'] =>
  async (secret) => {
    const answer = await ask(server, `POST /v1/auth/${path}`, { key: null, body: body(secret) })
    expectNoFailure(answer)
    return answer
  }

const tokenOnly = (token: string) => ({ token })

const shown: Record<string, Shown> = {
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
    secret: async () => (await ask(server, 'POST /v1/stream/tickets')).body.ticket,
    show: (ticket) =>
      rawAsk(server, {
        method: 'GET',
        path: `/v1/agents/notes/stream?${new URLSearchParams({ ticket })}`,
        headers: { authorization: '' },
      }),
    refusals: ['401 unauthorized'],
  },
}

describe.each(Object.entries(shown))('%s', (_name, { secret, show, refusals }) => {
  it('opens nothing when any of its bytes is another, and still works afterwards', async () => {
    const own = await secret()
    const draw = fc.oneof(changes, oddText)
    const before = await headOf('default')
    await fuzz({ seed, runs: 8, draw }, async (drawn: readonly Change[] | string) => {
      const wrong = typeof drawn === 'string' ? drawn : changedText(own, drawn)
      if (wrong === own) return
      const { status, body } = await show(wrong)
      // Of a lone surrogate not even the JSON is read.
      expect([...refusals, '400 validation_failed']).toContain(`${status} ${body?.code}`)
    })
    // Nothing was audited either: nobody was there.
    expect(await headOf('default')).toEqual(before)
    expect((await show(own)).status).toBe(200)
  })
})

it('has harmed nothing', async () => {
  expect((await call(server, 'GET /readyz')).status).toBe(200)
  expect(server.stderr()).toBe('')
})
