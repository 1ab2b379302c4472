import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditTypes } from '../../src/auth/audit.js'
import { limits } from '../../src/base/limits/limits.js'
import { type Account, linkToken, logIn, register, tryLogin } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { partsOf } from '../support/proof/forging.js'
import { addPasskey, passkeyEnv, signInBy } from '../support/auth/passkeys.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * The strand records all changes of accounts, can be verified with the agent's key, and reveals no e-mail,
 * password or token (docs/adr/0010-auth-state.md; docs/SIGN-IN.md).
 */

const entry = join(import.meta.dirname, '../../dist/program/strandfast.js')

/** Types of audit records that this test does not cause: other providers and organisms. */
const uncovered = ['auth/oauth_login', 'auth/namespace_initialised']

/** Texts that must not be on the strand. */
const secrets = new Set<string>()
/**
 * The secrets that may be in the store: e-mails, metadata, ids of passkeys, and ids of tokens that may be
 * revoked.
 */
const stored = new Set<string>()
const directory = mkdtempSync(join(tmpdir(), 'strandfast-audit-'))

let server: TestServer
let exported = ''
/** Id of a passkey that was removed. */
let passkeyId = ''

beforeAll(async () => {
  server = await startAuthServer({
    env: {
      SERVICE_SHARDS: '2',
      SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: '3',
      ...passkeyEnv,
    },
  })
  await useAllRoutes()
  exported = (await call(server, 'GET /v1/strand/export')).text
})
afterAll(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

function keep<T extends string>(secret: T): T {
  secrets.add(secret)
  return secret
}

function keepStored<T extends string>(secret: T): T {
  stored.add(secret)
  return keep(secret)
}

/** Adds the secrets in an answer's tokens. */
function keepTokens({ token, refreshToken }: { token: string; refreshToken: string }): void {
  for (const one of [token, refreshToken]) keep(one)
  keep(partsOf(token).signature)
  keepStored(String(partsOf(token).claims['jti']))
}

async function enrol(email: string, password: string): Promise<Account> {
  keepStored(email)
  keep(password)
  const account = await register(server, email, password)
  keepTokens(account)
  return account
}

async function enter(
  account: Pick<Account, 'email' | 'password'>,
): Promise<{ token: string; refreshToken: string }> {
  keepStored(account.email)
  keep(account.password)
  const tokens = await logIn(server, account)
  keepTokens(tokens)
  return tokens
}

const link = async (...about: [Parameters<typeof linkToken>[1], string]) =>
  keep(await linkToken(server, ...about))

const post = async (path: string, options: { key?: string | null; body?: unknown }) => {
  const answer = await checkedCall(server, `POST ${path}`, options)
  expect(answer.status, `${path}: ${answer.text}`).toBe(200)
  return answer.body
}

/**
 * Causes all kinds of audit records, with the root key, with the account's own token and without credentials.
 */
async function useAllRoutes(): Promise<void> {
  const ann = await enrol('ann.audited@example.org', 'first quiet heron by the lake')
  const tokens = await enter(ann)
  await post('/v1/auth/verify-email', {
    key: null,
    body: { token: await link('verify-email/send', ann.email) },
  })
  await link('magic-link/send', ann.email)
  const byLink = await post('/v1/auth/magic-link/verify', {
    key: null,
    body: { token: await link('magic-link/send', keepStored('new.audited@example.org')) },
  })
  keepTokens({ token: byLink.token, refreshToken: byLink.refresh_token })
  await changeMetadata(ann, tokens.token)
  await usePasskey(ann, tokens.token)
  await changePasswords(ann, tokens.token)
  await reuseRefreshToken(tokens.refreshToken)
  const locked = await enrol('locked.audited@example.org', 'eighth quiet heron by the lake')
  await lockOut(locked.email)
  for (const change of ['unlock', 'logout']) await post(`/v1/auth/users/${locked.email}/${change}`, {})
  const bob = await enrol('bob.audited@example.org', 'second quiet heron by the lake')
  await post('/v1/auth/revoke', { key: bob.token })
  const again = await enter(bob)
  await post('/v1/auth/logout', { key: again.token })
  await checkedCall(server, `DELETE /v1/auth/users/${bob.email}`)
  await post('/v1/auth/keys/rotate', {})
  await sendMisplacedSecrets()
}

async function changeMetadata({ email }: Account, token: string): Promise<void> {
  const body = { metadata: { note: keepStored('metadata that only tokens carry') } }
  expect((await checkedCall(server, 'PATCH /v1/auth/me/user-metadata', { key: token, body })).status).toBe(
    200,
  )
  expect((await checkedCall(server, `PATCH /v1/auth/users/${email}/app-metadata`, { body })).status).toBe(200)
}

async function usePasskey({ email }: Account, token: string): Promise<void> {
  const passkey = await addPasskey(server, token)
  passkeyId = keepStored(passkey.id)
  const { status, body } = await signInBy(server, passkey, { email })
  expect(status).toBe(200)
  keepTokens({ token: body.token, refreshToken: body.refresh_token })
  const removed = await checkedCall(server, `DELETE /v1/auth/passkeys/${passkey.id}`, { key: token })
  expect(removed.status).toBe(200)
}

async function changePasswords({ email, password }: Account, token: string): Promise<void> {
  const next = keep('third quiet heron by the lake')
  await post('/v1/auth/password/change', {
    key: token,
    body: { current_password: password, new_password: next },
  })
  const other = keep('fourth quiet heron by the lake')
  const reset = await link('password/reset-request', email)
  await post('/v1/auth/password/reset', { key: null, body: { token: reset, password: other } })
  await enter({ email, password: other })
}

/** Uses a refresh token that was replaced several times, as only a thief would. */
async function reuseRefreshToken(ended: string): Promise<void> {
  // The session of `ended` has ended, so another one is opened.
  const refused = await checkedCall(server, 'POST /v1/auth/refresh', {
    key: null,
    body: { refresh_token: ended },
  })
  expect(refused.status).toBe(401)
  const cat = await enrol('cat.audited@example.org', 'fifth quiet heron by the lake')
  let token = cat.refreshToken
  for (let n = 0; n <= limits.refreshRepeatsMax; n++) {
    const next = await post('/v1/auth/refresh', { key: null, body: { refresh_token: token } })
    keepTokens({ token: next.token, refreshToken: next.refresh_token })
    token = next.refresh_token
  }
  const reused = await checkedCall(server, 'POST /v1/auth/refresh', {
    key: null,
    body: { refresh_token: cat.refreshToken },
  })
  expect(reused.body.code).toBe('refresh_reused')
}

async function lockOut(email: string): Promise<void> {
  const password = keep('a guess that is wrong, sorry')
  for (let n = 0; n < 3; n++) expect((await tryLogin(server, email, password)).status).toBe(401)
  expect((await tryLogin(server, email, password)).status).toBe(429)
}

/** Sends e-mails and passwords with blanks and capitals, in wrong members and wrong positions. */
async function sendMisplacedSecrets(): Promise<void> {
  const email = keepStored('Misplaced.Audited@Example.org')
  keepStored(email.toLowerCase())
  const password = keep('sixth quiet heron by the lake')
  await tryLogin(server, ` ${email} `, password)
  await tryLogin(server, password, email)
  await checkedCall(server, 'POST /v1/auth/login', { key: null, body: { email, password, extra: password } })
  await checkedCall(server, `DELETE /v1/auth/users/${encodeURIComponent(email)}`)
  await checkedCall(server, 'POST /v1/auth/magic-link/verify', { key: null, body: { token: password } })
}

/** The types in the signed headers of the strand's records. */
function typesOf(text: string): string[] {
  return text
    .trimEnd()
    .split('\n')
    .slice(1, -1)
    .map((line) => /^type (.*)$/m.exec(JSON.parse(line).h)?.[1] ?? '')
}

describe('the strand of the default agent', () => {
  it('verifies offline with its audit records', async () => {
    const file = join(directory, 'default.ndjson')
    writeFileSync(file, exported)
    const { body } = await checkedCall(server, 'GET /v1/agents/default/status')
    const args = [entry, 'verify', file, '--public-key', body.public_key]
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect(status, stdout).toBe(0)
    expect(stdout).toContain('VERIFIED')
    const tampered = join(directory, 'tampered.ndjson')
    writeFileSync(tampered, exported.replace('failure', 'success'))
    const refused = spawnSync(process.execPath, [...args.slice(0, 2), tampered, ...args.slice(3)])
    expect(refused.status).toBe(1)
  })

  it('has a record of every covered type', () => {
    const seen = new Set(typesOf(exported))
    const expected = auditTypes.filter((type) => !uncovered.includes(type))
    expect(expected.filter((type) => !seen.has(type))).toEqual([])
  })

  it('contains no e-mail, password or token, and no beginning of one', () => {
    expect(secrets.size).toBeGreaterThan(40)
    const found = [...secrets].filter(
      (secret) => exported.includes(secret) || exported.includes(secret.slice(0, 16)),
    )
    expect(found).toEqual([])
    const lower = exported.toLowerCase()
    expect([...secrets].filter((secret) => lower.includes(secret.toLowerCase()))).toEqual([])
  })

  it('contains no hash or encoding of them by which they could be guessed', () => {
    const encodings = [...secrets].flatMap((secret) => [
      createHash('sha256').update(secret).digest('hex'),
      createHash('sha256').update(Buffer.from(secret, 'base64url')).digest('hex'),
      createHash('sha1').update(secret).digest('hex'),
      createHash('md5').update(secret).digest('hex'),
      Buffer.from(secret).toString('hex'),
      Buffer.from(secret).toString('base64'),
      encodeURIComponent(secret),
    ])
    expect(encodings.filter((encoding) => exported.includes(encoding.slice(0, 32)))).toEqual([])
    for (const word of ['argon2', '@', 'eyJhbGci', 'heron', 'audited', 'password"', 'token"']) {
      expect(exported, word).not.toContain(word)
    }
  })

  it('is searched correctly: the same search finds secrets in an answer', async () => {
    const { text } = await checkedCall(server, 'GET /v1/auth/users')
    expect([...secrets].filter((secret) => text.includes(secret))).not.toEqual([])
  })

  it('has only the documented members in audit records: user, client and outcome', () => {
    const bodies = exported
      .trimEnd()
      .split('\n')
      .slice(1, -1)
      .map((line) => JSON.parse(line))
      .filter(({ h }) => /^type auth\//m.test(h))
      .map(({ body }) => JSON.parse(body))
    const members = ['user_id', 'email_hmac', 'sid', 'ip', 'user_agent', 'outcome', 'request_id']
    for (const body of bodies) {
      const { count, method, reason, ...rest } = body
      expect([method, reason].every((one) => one === undefined || /^[a-z_]+$/.test(one))).toBe(true)
      expect(Object.keys(rest).toSorted()).toEqual(members.toSorted())
      expect(count === undefined || Number.isInteger(count)).toBe(true)
      expect(rest.ip).toBe('127.0.0.1')
      expect(['success', 'failure']).toContain(rest.outcome)
    }
  })

  it('leaves no secret in the output of the server, and no password or token in the files of the store', () => {
    for (const secret of secrets) expect(server.stderr()).not.toContain(secret)
    // Including the log files, which also have rows that were removed between two flushes.
    const files = ['shard-0', 'shard-1'].flatMap((shard) => filesIn(join(server.dataDir, shard)))
    const bytes = Buffer.concat(files.map((file) => readFileSync(file)))
    const found = [...secrets].filter((secret) => bytes.includes(secret))
    expect(found.filter((secret) => !stored.has(secret))).toEqual([])
    // The search finds a row of the store, and one that was removed.
    for (const secret of ['ann.audited@example.org', passkeyId]) expect(found).toContain(secret)
  })
})

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}
