import { afterEach, beforeEach, expect, it } from 'vitest'
import type { OauthStateRow } from '../../src/auth/oauth.js'
import { makeOneTimeToken } from '../../src/auth/one-time-token.js'
import { pooledRandom } from '../../src/base/random.js'
import type { AuthChange, AuthOutcome, Change, Lookup } from '../../src/protocol/auth-messages.js'
import type { Outcome } from '../../src/protocol/messages.js'
import { TestShard, rowsOf } from '../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  shard.ask({ kind: 'agentCreate', agent: 'default', zone: 'governed', options: {} })
})

afterEach(() => shard.remove())

const email = 'ada@example.com'
const stateHash = 'ab'.repeat(32)
const browserHash = 'cd'.repeat(32)

function command(change: Change, namespace = ''): AuthChange {
  const origin = { ip: '192.0.2.1', userAgent: 'test', requestId: 'r-1' }
  return { kind: 'authChange', agent: 'default', namespace, change, origin, options: {} }
}

function answerOf(outcome: Outcome): AuthOutcome['answer'] {
  if ('code' in outcome) return outcome
  if (outcome.kind !== 'auth') throw new Error(`Expected an auth outcome, got ${outcome.kind}`)
  return outcome.answer
}

const change = (one: Change, namespace = '') => answerOf(shard.ask(command(one, namespace)))
const look = (lookup: Lookup) =>
  answerOf(shard.ask({ kind: 'authLookup', agent: 'default', namespace: '', lookup }))
const codeOf = (answer: AuthOutcome['answer']) => ('code' in answer ? answer.code : answer.kind)

function signedIn(answer: AuthOutcome['answer']) {
  if (answer.kind !== 'signedIn') throw new Error(`Expected to be signed in, got ${codeOf(answer)}`)
  return answer
}

const login = (subject: string, verifiedEmail?: string) =>
  ({
    kind: 'oauthLogin',
    provider: 'google',
    subject,
    ...(verifiedEmail !== undefined && { email: verifiedEmail }),
  }) as const

const row = (): OauthStateRow => ({
  provider: 'google',
  browserHash,
  redirectUri: 'https://app.example.com/cb',
  mode: 'query',
  expiresAtMs: shard.nowMs + 600_000,
})
const back = { kind: 'oauthReturn', stateHash, provider: 'google', browserHash } as const

function types(): string[] {
  const page = shard.ask({
    kind: 'recordQuery',
    agent: 'default',
    order: 'asc',
    limit: 1_000,
    types: ['auth/*'],
  })
  return rowsOf(page).map(({ type }) => type)
}

function keys(kind: string): string[] {
  return [...shard.environment.auth.getKeys({})]
    .map((key) => key.toString())
    .filter((key) => key.includes(`auth:${kind}:`))
}

it('accepts one of a hundred concurrent returns, also after a restart', async () => {
  expect(change({ kind: 'oauthStart', stateHash, row: row() })).toEqual({ kind: 'done' })
  await shard.reopen()
  const codes = shard
    .run(...Array.from({ length: 100 }, () => command(back)))
    .map((outcome) => codeOf(answerOf(outcome)))
  expect(codes.filter((code) => code === 'oauthReturn')).toHaveLength(1)
  expect(codes.filter((code) => code === 'oauth_failed')).toHaveLength(99)
  expect(types()).toEqual([])
})

it('refuses a return of another browser, provider or namespace, which does not end the sign-in', () => {
  change({ kind: 'oauthStart', stateHash, row: row() })
  expect(codeOf(change({ ...back, browserHash: 'ef'.repeat(32) }))).toBe('oauth_failed')
  expect(codeOf(change({ ...back, provider: 'github' }))).toBe('oauth_failed')
  expect(codeOf(change({ ...back, stateHash: 'ef'.repeat(32) }))).toBe('oauth_failed')
  expect(codeOf(change(back, 'acme'))).toBe('oauth_failed')
  expect(change(back)).toEqual({
    kind: 'oauthReturn',
    redirectUri: 'https://app.example.com/cb',
    mode: 'query',
  })
})

it('refuses a return after ten minutes, and removes the state', () => {
  change({ kind: 'oauthStart', stateHash, row: row() })
  shard.nowMs += 600_000
  expect(codeOf(change(back))).toBe('oauth_failed')
  shard.nowMs += 1
  change({ kind: 'loginFailed', email: 'other@example.com' })
  expect(keys('oauth-state')).toEqual([])
})

it('creates a verified account for a new identity, and recognizes it by the subject', async () => {
  const { user, session } = signedIn(change(login('s-1', email)))
  expect(user).toMatchObject({ email, verified: true, mailboxProven: true })
  expect(session.amr).toEqual(['fed'])
  await shard.reopen()
  for (const later of [undefined, 'elsewhere@example.com']) {
    expect(signedIn(change(login('s-1', later))).user).toMatchObject({ userId: user.userId, email })
  }
  expect(types()).toEqual(['auth/register', 'auth/oauth_login', 'auth/oauth_login', 'auth/oauth_login'])
})

it('refuses a new identity without a verified e-mail, and only counts the failure', () => {
  change({ kind: 'register', email, passwordHash: 'hash' })
  const before = types()
  expect(codeOf(change(login('s-1')))).toBe('email_not_verified')
  expect(types()).toEqual(before)
  expect(keys('identity')).toEqual([])
})

it('removes password, links and sessions of an attacker when the owner of the e-mail signs in by a provider', () => {
  const attacker = signedIn(change({ kind: 'register', email, passwordHash: 'of the attacker' }))
  const { token, hash } = makeOneTimeToken(pooledRandom())
  const expiresAtMs = shard.nowMs + 900_000
  for (const link of [
    { purpose: 'passwordReset', hash, expiresAtMs } as const,
    { purpose: 'magicLink', hash: 'ef'.repeat(32), expiresAtMs, mailToken: token } as const,
  ]) {
    change({ kind: 'linkSend', email, link })
  }
  const owner = signedIn(change(login('s-1', email)))
  expect(owner.user).toMatchObject({ userId: attacker.user.userId, verified: true, mailboxProven: true })
  expect(look({ kind: 'loginState', email })).not.toHaveProperty('passwordHash')
  expect(codeOf(change({ kind: 'refresh', sid: attacker.session.sid, generation: 0 }))).toBe(
    'refresh_invalid',
  )
  expect(codeOf(change({ kind: 'passwordReset', hash, passwordHash: 'x' }))).toBe('invalid_token')
  expect(codeOf(change({ kind: 'magicLinkVerify', hash: 'ef'.repeat(32) }))).toBe('invalid_token')
  expect(look({ kind: 'sessions', userId: owner.user.userId })).toMatchObject({
    sessions: [{ sid: owner.session.sid }],
  })
})

it('does not link a mailbox that comes with another subject of the same provider, and records the failure', () => {
  const first = signedIn(change(login('s-1', email)))
  const { userId } = first.user
  expect(codeOf(change(login('s-2', email)))).toBe('email_exists')
  expect(types()).toEqual(['auth/register', 'auth/oauth_login', 'auth/login_failed'])
  expect(keys('identity')).toEqual(['\0auth:identity:google:s-1'])
  expect(look({ kind: 'sessions', userId })).toMatchObject({ sessions: [{ sid: first.session.sid }] })
  // The same subject, and another provider that has verified the mailbox, still sign in.
  expect(signedIn(change(login('s-1'))).user.userId).toBe(userId)
  expect(signedIn(change({ ...login('s-2', email), provider: 'github' })).user.userId).toBe(userId)
  expect(codeOf(change({ ...login('s-3', email), provider: 'github' }))).toBe('email_exists')
})

it('keeps the password of an account whose mailbox was proven before', () => {
  const owner = signedIn(change(login('s-1', email)))
  const { userId, email: address } = owner.user
  change({
    kind: 'linkSend',
    email,
    link: { purpose: 'passwordReset', hash: stateHash, expiresAtMs: shard.nowMs + 1_000 },
  })
  change({ kind: 'passwordReset', hash: stateHash, passwordHash: 'of the owner' })
  expect(signedIn(change({ ...login('7', address), provider: 'github' })).user.userId).toBe(userId)
  expect(look({ kind: 'loginState', email })).toMatchObject({ passwordHash: 'of the owner' })
})

it('distinguishes identities of two providers, two namespaces and two users', () => {
  const one = signedIn(change(login('1', email)))
  const other = signedIn(change({ ...login('1', 'bob@example.com'), provider: 'github' }))
  const elsewhere = signedIn(change(login('1', email), 'acme'))
  expect(new Set([one, other, elsewhere].map(({ user }) => user.userId)).size).toBe(3)
})

it('removes the identities with the user, so that a later sign-in creates a new account', () => {
  const { user } = signedIn(change(login('1', email)))
  change({ ...login('2', email), provider: 'github' })
  change(login('3', 'bob@example.com'))
  change({ kind: 'userDelete', email })
  expect(codeOf(change(login('1')))).toBe('email_not_verified')
  expect(keys('identity')).toEqual(['\0auth:identity:google:3'])
  expect(keys('user-identity')).toHaveLength(1)
  expect(signedIn(change(login('1', email))).user.userId).not.toBe(user.userId)
})
