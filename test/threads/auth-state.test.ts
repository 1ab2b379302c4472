import { afterEach, beforeEach, expect, it } from 'vitest'
import { hashOneTimeToken, makeOneTimeToken } from '../../src/auth/one-time-token.js'
import type { SessionRow } from '../../src/auth/session.js'
import { limits } from '../../src/base/limits/limits.js'
import { pooledRandom } from '../../src/base/random.js'
import type {
  AuthAnswer,
  AuthChange,
  AuthOutcome,
  Change,
  LinkPurpose,
  Lookup,
} from '../../src/protocol/auth-messages.js'
import type { Outcome } from '../../src/protocol/messages.js'
import { TestShard, rowsOf } from '../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  const made = shard.ask({ kind: 'agentCreate', agent: 'default', zone: 'governed', options: {} })
  expect(made.kind).toBe('reply')
})

afterEach(() => shard.remove())

const origin = { ip: '192.0.2.1', userAgent: 'test', requestId: 'r-1' }
const email = 'ada@example.com'

function command(change: Change, namespace = ''): AuthChange {
  return { kind: 'authChange', agent: 'default', namespace, change, origin, options: {} }
}

const change = (one: Change) => answerOf(shard.ask(command(one)))

function look(lookup: Lookup): AuthOutcome['answer'] {
  return answerOf(shard.ask({ kind: 'authLookup', agent: 'default', namespace: '', lookup }))
}

function answerOf(outcome: Outcome): AuthOutcome['answer'] {
  if ('code' in outcome) return outcome
  if (outcome.kind !== 'auth') throw new Error(`Expected an auth outcome, got ${outcome.kind}`)
  return outcome.answer
}

function codeOf(answer: AuthOutcome['answer']): string {
  return 'code' in answer ? answer.code : answer.kind
}

function signedIn(answer: AuthOutcome['answer']): Extract<AuthAnswer, { kind: 'signedIn' }> {
  if (answer.kind !== 'signedIn') throw new Error(`Expected to be signed in, got ${codeOf(answer)}`)
  return answer
}

function register(address = email) {
  return signedIn(change({ kind: 'register', email: address, passwordHash: `hash of ${address}` }))
}

function sendLink(purpose: LinkPurpose, { mailed = true, address = email } = {}): string {
  const { token, hash } = makeOneTimeToken(pooledRandom())
  const expiresAtMs = shard.nowMs + 900_000
  const link = { purpose, hash, expiresAtMs, ...(mailed && { mailToken: token }) }
  expect(change({ kind: 'linkSend', email: address, link })).toEqual({ kind: 'done' })
  expect(hashOneTimeToken(token)).toBe(hash)
  return hash
}

/** The types and bodies of the audit records, in order. */
function audit(): { type: string; body: Record<string, unknown> }[] {
  const page = shard.ask({
    kind: 'recordQuery',
    agent: 'default',
    order: 'asc',
    limit: 1_000,
    types: ['auth/*'],
  })
  return rowsOf(page).map(({ type, payload }) => ({ type, body: payload }))
}

const types = () => audit().map(({ type }) => type)

it('ends a page of users at its limit of bytes, and continues after the last user', () => {
  const metadata = { text: 'x'.repeat(4_080) }
  for (let n = 0; n < 1_000; n++) {
    const address = `user${String(n).padStart(3, '0')}@example.com`
    register(address)
    expect(change({ kind: 'appMetadata', email: address, metadata }).kind).toBe('user')
  }
  const counts: number[] = []
  let after: string | undefined = ''
  while (after !== undefined) {
    const page = look({ kind: 'users', prefix: '', after, limit: 1_000 })
    if (page.kind !== 'users') throw new Error(codeOf(page))
    counts.push(page.users.length)
    after = page.after
  }
  expect(counts.length).toBe(5)
  expect(counts.reduce((sum, count) => sum + count)).toBe(1_000)
})

it('creates an account once, and has the user and its session after a restart', async () => {
  const { user, session } = register()
  expect(codeOf(change({ kind: 'register', email, passwordHash: 'other' }))).toBe('email_exists')
  await shard.reopen()
  expect(look({ kind: 'user', userId: user.userId })).toEqual({ kind: 'user', user })
  expect(look({ kind: 'sessions', userId: user.userId })).toEqual({ kind: 'sessions', sessions: [session] })
  expect(types()).toEqual(['auth/register'])
})

it('accepts one of a hundred concurrent uses of a magic link', () => {
  const hash = sendLink('magicLink')
  const uses = Array.from({ length: 100 }, () => command({ kind: 'magicLinkVerify', hash }))
  const codes = shard
    .run(...uses)
    .map(answerOf)
    .map(codeOf)
  expect(codes.filter((code) => code === 'signedIn')).toHaveLength(1)
  expect(codes.filter((code) => code === 'invalid_token')).toHaveLength(99)
})

it('accepts one of a hundred concurrent uses of a verify token, and keeps the password and sessions', () => {
  const { session } = register()
  const hash = sendLink('verifyEmail')
  const uses = Array.from({ length: 100 }, () => command({ kind: 'emailVerify', hash }))
  const codes = shard
    .run(...uses)
    .map(answerOf)
    .map(codeOf)
  expect(codes.filter((code) => code === 'user')).toHaveLength(1)
  expect(look({ kind: 'sessions', userId: session.userId })).toMatchObject({
    sessions: [{ sid: session.sid }],
  })
  expect(codeOf(look({ kind: 'loginState', email }))).toBe('loginState')
  expect(look({ kind: 'loginState', email })).toMatchObject({ passwordHash: `hash of ${email}` })
})

it('exchanges a refresh token for the same successor in a hundred concurrent uses', () => {
  const { session } = register()
  const uses = Array.from({ length: 100 }, () =>
    command({ kind: 'refresh', sid: session.sid, generation: 0 }),
  )
  const generations = shard.run(...uses).map((outcome) => signedIn(answerOf(outcome)).generation)
  expect(new Set(generations)).toEqual(new Set([1]))
})

it('ends the session when an old refresh token is reused, and notifies the fronts', () => {
  const { session } = register()
  const { sid } = session
  for (let generation = 0; generation < 2; generation++) {
    expect(signedIn(change({ kind: 'refresh', sid, generation })).generation).toBe(generation + 1)
  }
  shard.nowMs += limits.refreshRepeatMs + 1
  const outcome = shard.ask(command({ kind: 'refresh', sid, generation: 0 }))
  expect(codeOf(answerOf(outcome))).toBe('refresh_reused')
  expect(shard.frames.flatMap(({ notices }) => notices)).toContainEqual({
    kind: 'ended',
    revocations: [expect.objectContaining({ what: 'sid', id: sid })],
  })
  expect(codeOf(change({ kind: 'refresh', sid, generation: 2 }))).toBe('refresh_invalid')
  expect(types()).toEqual(['auth/register', 'auth/refresh_reused'])
})

it('accepts the previous refresh token for ten seconds, also after a restart, and then ends the session', async () => {
  const { sid } = register().session
  expect(signedIn(change({ kind: 'refresh', sid, generation: 0 })).generation).toBe(1)
  shard.nowMs += 10_000
  await shard.reopen()
  expect(signedIn(change({ kind: 'refresh', sid, generation: 0 })).generation).toBe(1)
  shard.nowMs += 1
  expect(codeOf(change({ kind: 'refresh', sid, generation: 0 }))).toBe('refresh_reused')
  expect(codeOf(change({ kind: 'refresh', sid, generation: 1 }))).toBe('refresh_invalid')
  expect(types()).toEqual(['auth/register', 'auth/refresh_reused'])
})

it('does not let two clients with one refresh token take turns', () => {
  const { sid } = register().session
  const turns = []
  for (let turn = 0; turn < 10; turn++) {
    // The thief sends the token that the owner has just exchanged, and then the owner sends that of the
    // thief.
    turns.push(codeOf(change({ kind: 'refresh', sid, generation: turn })))
    shard.nowMs += 60_000
    turns.push(codeOf(change({ kind: 'refresh', sid, generation: turn })))
  }
  expect(turns.slice(0, 2)).toEqual(['signedIn', 'refresh_reused'])
  expect(new Set(turns.slice(2))).toEqual(new Set(['refresh_invalid']))
})

it('locks known and unknown e-mails after five failures for the configured time, also after a restart', async () => {
  for (const address of ['unknown@example.com', email]) {
    if (address === email) register()
    for (let failure = 0; failure < 5; failure++) {
      expect(codeOf(change({ kind: 'loginFailed', email: address }))).toBe('invalid_credentials')
    }
    await shard.reopen()
    expect(look({ kind: 'loginState', email: address })).toMatchObject({ lockedForMs: 900_000 })
  }
  const right = { kind: 'loginSucceeded', email, passwordHash: `hash of ${email}` } as const
  expect(codeOf(change(right))).toBe('account_locked')
  shard.nowMs += 900_000
  expect(codeOf(change(right))).toBe('signedIn')
})

it('writes one record of failed logins for each e-mail and minute, with their count', () => {
  register()
  for (const wait of [0, 1_000, 1_000, 60_000]) {
    shard.nowMs += wait
    change({ kind: 'loginFailed', email })
  }
  const failures = audit().filter(({ type }) => type === 'auth/login_failed')
  expect(failures.map(({ body }) => body['count'])).toEqual([1, 3])
})

it('records failed sign-ins by method and reason, once a minute for each account, and the rest with the next sign-in', () => {
  register()
  const failure = { kind: 'signInFailed', email, method: 'passkey', reason: 'wrong_origin' } as const
  for (const wait of [0, 1_000, 60_000, 1_000]) {
    shard.nowMs += wait
    expect(change(failure)).toEqual({ kind: 'done' })
  }
  change({ kind: 'magicLinkVerify', hash: sendLink('magicLink') })
  const failures = audit().filter(({ type }) => type === 'auth/login_failed')
  expect(failures.map(({ body }) => [body['method'], body['reason'], body['count']])).toEqual([
    ['passkey', 'wrong_origin', 1],
    ['passkey', 'wrong_origin', 2],
    ['passkey', 'wrong_origin', 1],
  ])
})

it('records links that cannot be used with their reason, in the record of the account if it is known', () => {
  register()
  const uses = (hash: string): Change[] => [
    { kind: 'magicLinkVerify', hash },
    { kind: 'emailVerify', hash },
    { kind: 'passwordReset', hash, passwordHash: 'new' },
    { kind: 'passwordResetFailed', hash },
  ]
  for (const use of uses('ab'.repeat(32))) expect(codeOf(change(use))).toBe('invalid_token')
  const purposes = ['magicLink', 'verifyEmail', 'passwordReset'] as const
  const links = purposes.map((purpose) => sendLink(purpose))
  shard.nowMs += 900_000
  for (const [at, hash] of links.entries()) {
    const use = uses(hash)[at]
    if (use !== undefined) expect(codeOf(change(use))).toBe('invalid_token')
  }
  const found = audit()
    .filter(({ type }) => type === 'auth/login_failed')
    .map(({ body }) => [body['user_id'] !== null, body['method'], body['reason'], body['count']])
  expect(found).toEqual([
    [false, 'magic_link', 'unknown_link', 1],
    [false, 'password_reset', 'unknown_link', 2],
    [false, 'verify_email', 'unknown_link', 1],
    [true, 'magic_link', 'expired_link', 1],
    [true, 'verify_email', 'expired_link', 1],
    [true, 'password_reset', 'expired_link', 1],
  ])
})

it('combines the failures without an account, by method', () => {
  register()
  for (const reason of ['unknown_link', 'unknown_link'] as const)
    change({ kind: 'signInFailed', method: 'magic_link', reason })
  for (const reason of ['unknown_state', 'other_browser'] as const)
    change({ kind: 'signInFailed', method: 'oauth', reason })
  change({ kind: 'signInFailed', email: 'no-one@example.org', method: 'passkey', reason: 'unknown_passkey' })
  shard.nowMs += 61_000
  change({ kind: 'signInFailed', method: 'refresh', reason: 'unknown_token' })
  const failures = audit().filter(({ type }) => type === 'auth/login_failed')
  expect(
    failures.map(({ body }) => [body['method'], body['reason'], body['count'], body['user_id']]),
  ).toEqual([
    ['passkey', 'unknown_passkey', 1, null],
    ['magic_link', 'unknown_link', 2, null],
    ['oauth', null, 2, null],
  ])
})

it('removes password, links and sessions at the first sign-in that proves the mailbox', () => {
  const attacker = register()
  const planted = sendLink('passwordReset', { mailed: false })
  const victim = signedIn(change({ kind: 'magicLinkVerify', hash: sendLink('magicLink') }))
  expect(victim.user.userId).toBe(attacker.user.userId)
  expect(look({ kind: 'loginState', email })).not.toHaveProperty('passwordHash')
  expect(codeOf(change({ kind: 'refresh', sid: attacker.session.sid, generation: 0 }))).toBe(
    'refresh_invalid',
  )
  expect(codeOf(change({ kind: 'passwordReset', hash: planted, passwordHash: 'x' }))).toBe('invalid_token')
  const ended = shard.ask({ kind: 'revocationsList' })
  expect(ended).toMatchObject({ rows: [{ namespace: '', what: 'sid', id: attacker.session.sid }] })
})

it('does not treat a confirmed address as a proof of the mailbox, however often it is confirmed', () => {
  const attacker = register()
  const { userId, sid } = attacker.session
  const metadata = { name: 'of the attacker' }
  expect(codeOf(change({ kind: 'userMetadata', userId, sid, metadata }))).toBe('user')
  for (let time = 0; time < 2; time++) change({ kind: 'emailVerify', hash: sendLink('verifyEmail') })
  expect(look({ kind: 'user', userId })).toMatchObject({
    user: { verified: true, mailboxProven: false, userMetadata: metadata },
  })
  const owner = signedIn(change({ kind: 'magicLinkVerify', hash: sendLink('magicLink') }))
  expect(owner.user).toMatchObject({ userId, verified: true, mailboxProven: true, userMetadata: {} })
  expect(look({ kind: 'loginState', email })).not.toHaveProperty('passwordHash')
  // The token of this request was checked before the session ended.
  expect(codeOf(change({ kind: 'userMetadata', userId, sid, metadata }))).toBe('token_revoked')
})

it('keeps password, sessions and metadata at a later proof of the same mailbox', () => {
  register()
  const { user, session } = signedIn(change({ kind: 'magicLinkVerify', hash: sendLink('magicLink') }))
  change({ kind: 'passwordReset', hash: sendLink('passwordReset'), passwordHash: 'of the owner' })
  const login = { kind: 'loginSucceeded', email, passwordHash: 'of the owner' } as const
  const { sid } = signedIn(change(login)).session
  const metadata = { name: 'Ada' }
  change({ kind: 'userMetadata', userId: user.userId, sid, metadata })
  const again = signedIn(change({ kind: 'magicLinkVerify', hash: sendLink('magicLink') }))
  expect(again.user).toMatchObject({ userMetadata: metadata })
  expect(look({ kind: 'loginState', email })).toMatchObject({ passwordHash: 'of the owner' })
  expect(signedIn(change({ kind: 'refresh', sid, generation: 0 })).generation).toBe(1)
  // The reset also signed in, and ended the earlier sessions.
  expect(codeOf(change({ kind: 'refresh', sid: session.sid, generation: 0 }))).toBe('refresh_invalid')
})

it('signs in by a link that was not mailed, but does not prove the mailbox', () => {
  const { user } = register()
  const seen = signedIn(change({ kind: 'magicLinkVerify', hash: sendLink('magicLink', { mailed: false }) }))
  expect(seen.user).toMatchObject({ userId: user.userId, verified: false, mailboxProven: false })
  expect(look({ kind: 'loginState', email })).toHaveProperty('passwordHash')
})

it('refuses a link for another purpose or after its expiry', () => {
  register()
  const hash = sendLink('verifyEmail')
  expect(codeOf(change({ kind: 'magicLinkVerify', hash }))).toBe('invalid_token')
  shard.nowMs += 900_000
  expect(codeOf(change({ kind: 'emailVerify', hash }))).toBe('invalid_token')
})

it('removes a user with its sessions, links and lockout, so that its e-mail can register again', () => {
  const { user, session } = register()
  const link = sendLink('passwordReset')
  change({ kind: 'loginFailed', email })
  expect(codeOf(change({ kind: 'userDelete', email }))).toBe('user')
  expect(codeOf(change({ kind: 'userDelete', email }))).toBe('not_found')
  expect(codeOf(look({ kind: 'user', userId: user.userId }))).toBe('not_found')
  expect(codeOf(change({ kind: 'refresh', sid: session.sid, generation: 0 }))).toBe('refresh_invalid')
  expect(codeOf(change({ kind: 'passwordReset', hash: link, passwordHash: 'x' }))).toBe('invalid_token')
  expect(look({ kind: 'loginState', email })).toEqual({ kind: 'loginState', lockedForMs: 0, failures: 0 })
  expect(register().user.userId).not.toBe(user.userId)
})

it('refuses metadata over the limit and changes nothing', () => {
  const { userId, sid } = register().session
  const commits = shard.commits
  const metadata = { text: 'x'.repeat(4_096) }
  expect(codeOf(change({ kind: 'userMetadata', userId, sid, metadata }))).toBe('metadata_too_large')
  expect(codeOf(change({ kind: 'appMetadata', email, metadata }))).toBe('metadata_too_large')
  expect(shard.commits).toBe(commits)
})

it('isolates the namespaces of one shard', () => {
  const { session } = register()
  const elsewhere = shard.ask(command({ kind: 'refresh', sid: session.sid, generation: 0 }, 'acme'))
  expect(codeOf(answerOf(elsewhere))).toBe('refresh_invalid')
  const other = shard.ask(command({ kind: 'register', email, passwordHash: 'x' }, 'acme'))
  expect(signedIn(answerOf(other)).user.userId).not.toBe(session.userId)
})

it('writes neither secrets nor e-mails into audit records, and uses different pseudonyms in two namespaces', () => {
  register()
  sendLink('magicLink')
  shard.ask(command({ kind: 'register', email, passwordHash: 'x' }, 'acme'))
  const records = audit()
  const text = JSON.stringify(records)
  expect(text).not.toContain('example.com')
  expect(text).not.toContain('hash of')
  expect(records.every(({ body }) => body['request_id'] === 'r-1' && body['ip'] === '192.0.2.1')).toBe(true)
  const [here, sent, there] = records.map(({ body }) => body['email_hmac'])
  expect(here).toMatch(/^[0-9a-f]{64}$/)
  expect(sent).toBe(here)
  expect(there).not.toBe(here)
})

it('stores a mail sealed in the outbox until it is sent, and schedules its next try', async () => {
  sendLink('magicLink')
  await shard.reopen()
  const due = () => {
    const outcome = shard.ask({ kind: 'mailDue', limit: 10 })
    if (outcome.kind !== 'mailDue') throw new Error(`Expected mails, got ${outcome.kind}`)
    return outcome.mails
  }
  const [first] = due()
  expect(first?.message).toMatchObject({ attempts: 0, mail: { kind: 'magicLink', to: email } })
  const values = [...shard.environment.mails.getRange({})].map(({ value }) => value.toString('latin1'))
  expect(values.join('')).not.toContain('ada')
  const retryAtMs = shard.nowMs + 5_000
  const report = (key: string, result: Parameters<typeof mailAttempted>[1]) =>
    shard.ask(mailAttempted(key, result))
  expect(report(first?.key ?? '', { kind: 'failed', attempts: 1, retryAtMs }).kind).toBe('done')
  expect(due()).toEqual([])
  shard.nowMs = retryAtMs
  const [second] = due()
  expect(second?.message).toEqual({ ...first?.message, attempts: 1 })
  expect(report(second?.key ?? '', { kind: 'done' }).kind).toBe('done')
  expect(due()).toEqual([])
})

function mailAttempted(
  key: string,
  result: { kind: 'done' } | { kind: 'failed'; attempts: number; retryAtMs?: number },
) {
  return { kind: 'mailAttempted', key, result, options: {} } as const
}

it('removes expired sessions, links and revocations', () => {
  const { session } = register()
  sendLink('magicLink')
  change({ kind: 'logout', userId: session.userId, sid: session.sid, scope: 'local' })
  shard.nowMs += 2_592_000_001 + 86_400_000
  // The sweep of the first commit may be used up by earlier rows.
  change({ kind: 'loginFailed', email: 'other@example.com' })
  change({ kind: 'loginFailed', email: 'other@example.com' })
  const keys = [...shard.environment.auth.getKeys({})].map((key) => key.toString().split('\0')[1])
  expect(keys.filter((key) => /auth:(session|user-session|link|email-link):/.test(key ?? ''))).toEqual([])
  expect([...shard.environment.authEnded.getKeys({})]).toEqual([])
})

/** Each way to end the sessions of a user, with the session that asks for it, and that which has to end. */
const ends: Record<string, (mine: SessionRow, other: SessionRow) => Change> = {
  'logout of the others': ({ userId, sid }) => ({ kind: 'logout', userId, sid, scope: 'others' }),
  'logout everywhere': ({ userId, sid }) => ({ kind: 'logout', userId, sid, scope: 'global' }),
  'logout of itself': (_mine, { userId, sid }) => ({ kind: 'logout', userId, sid, scope: 'local' }),
  'end of one session': ({ userId }, { sid }) => ({ kind: 'sessionEnd', userId, sid }),
  'logout by an administrator': () => ({ kind: 'userLogout', email }),
  'deletion of the user': () => ({ kind: 'userDelete', email }),
  'change of the password': ({ userId, sid }) => {
    const comparedHash = `hash of ${email}`
    return { kind: 'passwordChange', userId, sid, comparedHash, passwordHash: 'new' }
  },
  'reset of the password': () => {
    const hash = sendLink('passwordReset', { mailed: false })
    return { kind: 'passwordReset', hash, passwordHash: 'new' }
  },
  'first proof of the mailbox': () => ({ kind: 'magicLinkVerify', hash: sendLink('magicLink') }),
  'reuse of a refresh token': (_mine, { sid }) => ({ kind: 'refresh', sid, generation: 0 }),
}

it.each(Object.entries(ends))(
  'ends a session whose refresh token expired before its access token, which stays revoked until it expires: %s',
  async (_name, end) => {
    const { session } = register()
    const issuedUntilMs = shard.nowMs + 3_600_000
    shard.auth = { ...shard.auth, refreshExpirySecs: 60, jwtExpirySecs: 60 }
    await shard.reopen()
    const old = signedIn(change({ kind: 'refresh', sid: session.sid, generation: 0 })).session
    shard.nowMs += 600_000
    // Rows of sessions are swept by commits.
    for (let count = 0; count < 3; count++) change({ kind: 'loginFailed', email: 'other@example.com' })
    const login = { kind: 'loginSucceeded', email, passwordHash: `hash of ${email}` } as const
    const mine = signedIn(change(login)).session
    expect(listedSids(session.userId)).toContain(old.sid)
    change(end(mine, old))
    expect(listedSids(session.userId)).not.toContain(old.sid)
    const rows = shard.ask({ kind: 'revocationsList' })
    const revoked = rows.kind === 'revocations' ? rows.rows : []
    const until = revoked.filter(({ id }) => id === old.sid).map(({ untilMs }) => untilMs)
    expect(until).toEqual([expect.any(Number)])
    expect(Math.min(...until)).toBeGreaterThanOrEqual(issuedUntilMs)
  },
)

function listedSids(userId: string): string[] {
  const answer = look({ kind: 'sessions', userId })
  return answer.kind === 'sessions' ? answer.sessions.map(({ sid }) => sid) : []
}

it('ends the least recently used session when a user has too many', () => {
  const first = register()
  const login = { kind: 'loginSucceeded', email, passwordHash: `hash of ${email}` } as const
  for (let count = 0; count < 100; count++) {
    shard.nowMs += 1_000
    signedIn(change(login))
  }
  const outcome = look({ kind: 'sessions', userId: first.user.userId })
  if (outcome.kind !== 'sessions') throw new Error('Expected sessions')
  expect(outcome.sessions).toHaveLength(100)
  expect(outcome.sessions.map(({ sid }) => sid)).not.toContain(first.session.sid)
})

it('rotates the signing key, and accepts tokens of the previous key until they expire', () => {
  expect(look({ kind: 'keyEpochs' })).toEqual({ kind: 'keyEpochs', epoch: 0, retired: [] })
  const untilMs = shard.nowMs + limits.refreshRepeatMs + limits.clockAheadMsMax + 3_600_000
  const rotated = { kind: 'keyEpochs', epoch: 1, retired: [{ epoch: 0, untilMs }] }
  expect(change({ kind: 'keyRotate' })).toEqual(rotated)
  expect(look({ kind: 'keyEpochs' })).toEqual(rotated)
  shard.nowMs = untilMs
  expect(look({ kind: 'keyEpochs' })).toEqual({ kind: 'keyEpochs', epoch: 1, retired: [] })
})
