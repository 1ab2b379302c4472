import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeOneTimeToken } from '../../src/auth/one-time-token.js'
import type { NewPasskey } from '../../src/auth/passkey.js'
import { limits } from '../../src/base/limits/limits.js'
import { pooledRandom } from '../../src/base/random.js'
import type {
  AuthAnswer,
  AuthChange,
  AuthOutcome,
  Change,
  ChangeOf,
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

const email = 'ada@example.org'
const origin = { ip: '192.0.2.1', userAgent: 'test', requestId: 'r-1' }

function command(change: Change, namespace = ''): AuthChange {
  return { kind: 'authChange', agent: 'default', namespace, change, origin, options: {} }
}

function answerOf(outcome: Outcome): AuthOutcome['answer'] {
  if ('code' in outcome) return outcome
  if (outcome.kind !== 'auth') throw new Error(`Expected an auth outcome, got ${outcome.kind}`)
  return outcome.answer
}

const change = (one: Change, namespace = '') => answerOf(shard.ask(command(one, namespace)))

function codeOf(answer: AuthOutcome['answer']): string {
  return 'code' in answer ? answer.code : answer.kind
}

function expectKind<K extends AuthAnswer['kind']>(
  answer: AuthOutcome['answer'],
  kind: K,
): Extract<AuthAnswer, { kind: K }> {
  const is = (one: AuthOutcome['answer']): one is Extract<AuthAnswer, { kind: K }> => one.kind === kind
  if (!is(answer)) throw new Error(`Expected ${kind}, got ${codeOf(answer)}`)
  return answer
}

function register(address = email, namespace = '') {
  const made = change({ kind: 'register', email: address, passwordHash: 'hash' }, namespace)
  const { user, session } = expectKind(made, 'signedIn')
  return { userId: user.userId, sid: session.sid }
}

function newPasskey(about: Partial<NewPasskey> = {}): NewPasskey {
  const id = randomBytes(32).toString('base64url')
  return { id, publicKey: 'AAAA', counter: 0, backupEligible: false, transports: [], ...about }
}

/** A user with one passkey. */
function withPasskey(address = email, about: Partial<NewPasskey> = {}) {
  const account = register(address)
  const passkey = newPasskey(about)
  expect(codeOf(change({ kind: 'passkeyRegister', ...account, passkey, notify: false }))).toBe('done')
  return { ...account, passkey }
}

function newSession() {
  const { hash } = makeOneTimeToken(pooledRandom())
  return { hash, challenge: randomBytes(32).toString('base64url'), expiresAtMs: shard.nowMs + 300_000 }
}

/** Begins an authentication with an e-mail, or for any passkey. */
function begin(address?: string) {
  const session = newSession()
  const request = {
    kind: 'passkeyAuthentication',
    session,
    ...(address !== undefined && { email: address }),
  } as const
  const { allowed } = expectKind(change(request), 'passkeyAuthentication')
  return { session, allowed }
}

const take = (hash: string, passkeyId: string): ChangeOf<'passkeySessionTake'> => ({
  kind: 'passkeySessionTake',
  hash,
  ceremony: 'authenticate',
  passkeyId,
})

const login = ({ id, publicKey }: NewPasskey, counter: number): ChangeOf<'passkeyLogin'> => ({
  kind: 'passkeyLogin',
  passkeyId: id,
  publicKey,
  assertion: { counter, backupEligible: false },
})

function passkeysOf(userId: string) {
  const lookup = { kind: 'passkeys', userId } as const
  const outcome = shard.ask({ kind: 'authLookup', agent: 'default', namespace: '', lookup })
  return expectKind(answerOf(outcome), 'passkeys').passkeys
}

/** The types and outcomes of the audit records about passkeys, in order. */
function audit(): string[] {
  const query = { agent: 'default', order: 'asc', limit: 1_000, types: ['auth/*'] } as const
  const page = shard.ask({ kind: 'recordQuery', ...query, types: [...query.types] })
  return rowsOf(page)
    .filter(({ type }) => type.includes('passkey') || type === 'auth/login_failed')
    .map(({ type, payload }) => `${type} ${payload.outcome}`)
}

describe('a passkey session', () => {
  it('accepts one of a hundred concurrent attempts to finish it', () => {
    const { passkey } = withPasskey()
    const { session } = begin(email)
    const attempts = Array.from({ length: 100 }, () => command(take(session.hash, passkey.id)))
    const codes = shard.run(...attempts).map((outcome) => codeOf(answerOf(outcome)))
    expect(codes.filter((code) => code === 'passkeySession')).toHaveLength(1)
    expect(codes.filter((code) => code === 'passkey_failed')).toHaveLength(99)
  })

  it('returns its challenge and the passkey, also after a restart', async () => {
    const { passkey, userId } = withPasskey()
    const named = begin(email).session
    const open = begin().session
    await shard.reopen()
    const row = { ...passkey, userId }
    expect(change(take(named.hash, passkey.id))).toMatchObject({
      kind: 'passkeySession',
      challenge: named.challenge,
      named: true,
      passkey: row,
    })
    expect(change(take(open.hash, passkey.id))).toMatchObject({ named: false, passkey: row })
  })

  it('ends after 300 seconds', () => {
    const { passkey } = withPasskey()
    const [early, late] = [begin(email).session, begin(email).session]
    shard.nowMs += 299_999
    expect(codeOf(change(take(early.hash, passkey.id)))).toBe('passkeySession')
    shard.nowMs += 1
    expect(codeOf(change(take(late.hash, passkey.id)))).toBe('passkey_failed')
  })

  it('is used up by an attempt to finish the other ceremony', () => {
    const { passkey, userId } = withPasskey()
    const { session } = begin(email)
    const other = { ...take(session.hash, passkey.id), ceremony: 'register', userId } as const
    expect(codeOf(change(other))).toBe('passkey_failed')
    expect(codeOf(change(take(session.hash, passkey.id)))).toBe('passkey_failed')
  })

  it('is used up by an attempt to register as another user', () => {
    const { userId, sid } = register()
    const eve = register('eve@example.org')
    const session = newSession()
    expect(codeOf(change({ kind: 'passkeyRegistration', userId, sid, session }))).toBe('passkeyRegistration')
    const attempt = { kind: 'passkeySessionTake', hash: session.hash, ceremony: 'register' } as const
    expect(codeOf(change({ ...attempt, userId: eve.userId }))).toBe('passkey_failed')
    expect(codeOf(change({ ...attempt, userId }))).toBe('passkey_failed')
  })

  it('is unknown in another namespace, and is not used up there', () => {
    const { passkey } = withPasskey()
    const { session } = begin(email)
    expect(codeOf(change(take(session.hash, passkey.id), 'acme'))).toBe('passkey_failed')
    expect(codeOf(change(take(session.hash, passkey.id)))).toBe('passkeySession')
  })

  it('accepts no passkey of another user, and none for an unknown e-mail', () => {
    const { passkey } = withPasskey()
    withPasskey('eve@example.org')
    for (const address of ['eve@example.org', 'unknown@example.org']) {
      const taken = change(take(begin(address).session.hash, passkey.id))
      expect(expectKind(taken, 'passkeySession')).not.toHaveProperty('passkey')
    }
  })

  it('is removed when it has expired', () => {
    begin(email)
    begin()
    shard.nowMs += 300_001
    for (let count = 0; count < 2; count++) begin('unknown@example.org')
    const keys = [...shard.environment.auth.getKeys({})].map((key) => key.toString())
    expect(keys.filter((key) => key.includes('passkey-session'))).toHaveLength(2)
  })
})

describe('the list of an e-mail', () => {
  it('has the same length for an unknown e-mail and for accounts with and without passkeys, and does not change', async () => {
    withPasskey()
    register('bare@example.org')
    const addresses = [email, 'bare@example.org', 'unknown@example.org']
    const before = addresses.map((address) => begin(address).allowed)
    for (const list of before) {
      expect(list).toHaveLength(limits.passkeysPerUserMax)
      expect(new Set(list).size).toBe(limits.passkeysPerUserMax)
    }
    await shard.reopen()
    expect(addresses.map((address) => begin(address).allowed)).toEqual(before)
  })

  it('begins with the passkeys of the account, followed by the earlier decoys', () => {
    const unknown = begin(email).allowed ?? []
    const { userId, sid, passkey } = withPasskey()
    const second = newPasskey()
    shard.nowMs += 1
    change({ kind: 'passkeyRegister', userId, sid, passkey: second, notify: false })
    expect(begin(email).allowed).toEqual([passkey.id, second.id, ...unknown.slice(0, -2)])
    expect(begin().allowed).toBeUndefined()
  })

  it('is not audited, for neither a known nor an unknown e-mail', () => {
    withPasskey()
    const before = audit()
    begin(email)
    begin('unknown@example.org')
    expect(audit()).toEqual(before)
  })
})

describe('registering a passkey', () => {
  it('is audited, and the passkey exists after a restart', async () => {
    const { userId, passkey } = withPasskey()
    await shard.reopen()
    expect(passkeysOf(userId)).toEqual([{ ...passkey, userId, createdAtMs: shard.nowMs }])
    expect(audit()).toEqual(['auth/passkey_registered success'])
  })

  it('is refused for an id that any user has registered, and changes nothing', () => {
    const { userId, sid, passkey } = withPasskey()
    const eve = register('eve@example.org')
    const again = { ...passkey, publicKey: 'BBBB' }
    const codes = [eve, { userId, sid }].map((account) =>
      codeOf(change({ kind: 'passkeyRegister', ...account, passkey: again, notify: false })),
    )
    // Only its own user learns that it exists.
    expect(codes).toEqual(['passkey_failed', 'passkey_exists'])
    expect(passkeysOf(userId)).toMatchObject([{ publicKey: 'AAAA' }])
    expect(passkeysOf(eve.userId)).toEqual([])
  })

  it('accepts the same id in another namespace', () => {
    const { passkey } = withPasskey()
    const there = register(email, 'acme')
    expect(codeOf(change({ kind: 'passkeyRegister', ...there, passkey, notify: false }, 'acme'))).toBe('done')
  })

  it('is refused for decoys as for registered ids, so that it does not reveal the real ids of a list', () => {
    withPasskey()
    const eve = register('eve@example.org')
    const ids = [...(begin(email).allowed ?? []), ...(begin('unknown@example.org').allowed ?? [])]
    const codes = ids.map((id) =>
      codeOf(change({ kind: 'passkeyRegister', ...eve, passkey: newPasskey({ id }), notify: false })),
    )
    expect(new Set(codes)).toEqual(new Set(['passkey_failed']))
  })

  it('is refused for a user with the maximum number of passkeys, at the beginning and at the end', () => {
    const account = register()
    const add = () =>
      codeOf(change({ kind: 'passkeyRegister', ...account, passkey: newPasskey(), notify: false }))
    for (let count = 0; count < limits.passkeysPerUserMax; count++) expect(add()).toBe('done')
    expect(add()).toBe('too_large')
    expect(codeOf(change({ kind: 'passkeyRegistration', ...account, session: newSession() }))).toBe(
      'too_large',
    )
  })

  it('requires a sign-in of the last ten minutes to begin, and of five more minutes to finish', () => {
    const { userId, sid } = register()
    const start = () => codeOf(change({ kind: 'passkeyRegistration', userId, sid, session: newSession() }))
    const add = () =>
      codeOf(change({ kind: 'passkeyRegister', userId, sid, passkey: newPasskey(), notify: false }))
    shard.nowMs += 600_000
    expect([start(), add()]).toEqual(['passkeyRegistration', 'done'])
    shard.nowMs += 1
    expect([start(), add()]).toEqual(['reauthentication_required', 'done'])
    shard.nowMs += 300_000
    // A refresh does not count as a sign-in.
    expect(codeOf(change({ kind: 'refresh', sid, generation: 0 }))).toBe('signedIn')
    expect([start(), add()]).toEqual(['reauthentication_required', 'reauthentication_required'])
    expect(passkeysOf(userId)).toHaveLength(2)
  })

  it('cannot begin in a session that has ended', () => {
    const { userId, sid } = register()
    change({ kind: 'logout', userId, sid, scope: 'local' })
    const begun = change({ kind: 'passkeyRegistration', userId, sid, session: newSession() })
    expect(codeOf(begun)).toBe('token_revoked')
  })

  it('is mailed to the owner if mail is on', () => {
    const { userId, sid } = register()
    const mails = () => shard.ask({ kind: 'mailDue', limit: 10 })
    change({ kind: 'passkeyRegister', userId, sid, passkey: newPasskey(), notify: false })
    expect(mails()).toMatchObject({ mails: [] })
    change({ kind: 'passkeyRegister', userId, sid, passkey: newPasskey(), notify: true })
    expect(mails()).toMatchObject({
      mails: [{ message: { mail: { kind: 'passkeyRegistered', to: email } } }],
    })
  })

  it('is refused if the session of the caller has ended since it began', () => {
    const { userId, sid } = register()
    change({ kind: 'logout', userId, sid, scope: 'local' })
    const late = { kind: 'passkeyRegister', userId, sid, passkey: newPasskey(), notify: false } as const
    expect(codeOf(change(late))).toBe('token_revoked')
    expect(passkeysOf(userId)).toEqual([])
  })
})

describe('signing in by a passkey', () => {
  it('opens a session, stores the counter and does not change the lockout of passwords', () => {
    const { userId, passkey } = withPasskey()
    for (let failure = 0; failure < 5; failure++) change({ kind: 'loginFailed', email })
    shard.nowMs += 1_000
    const { user, session } = expectKind(change(login(passkey, 7)), 'signedIn')
    expect(user.userId).toBe(userId)
    expect(session.amr).toEqual(['pop', 'mfa', 'user'])
    expect(passkeysOf(userId)).toMatchObject([{ counter: 7, lastUsedAtMs: shard.nowMs }])
    const right = { kind: 'loginSucceeded', email, passwordHash: 'hash' } as const
    expect(codeOf(change(right))).toBe('account_locked')
    expect(audit().at(-1)).toBe('auth/passkey_login success')
  })

  it('is refused for a counter that does not grow, which is audited and changes nothing', () => {
    const { userId, passkey } = withPasskey(email, { counter: 5 })
    const before = passkeysOf(userId)
    for (const counter of [5, 4, 0]) expect(codeOf(change(login(passkey, counter)))).toBe('passkey_failed')
    expect(passkeysOf(userId)).toEqual(before)
    // One record a minute counts the other failures.
    expect(audit().slice(1)).toEqual(['auth/login_failed failure'])
    const lookup = { kind: 'sessions', userId } as const
    const outcome = shard.ask({ kind: 'authLookup', agent: 'default', namespace: '', lookup })
    expect(expectKind(answerOf(outcome), 'sessions').sessions).toHaveLength(1)
  })

  it('accepts authenticators without a counter', () => {
    const { passkey } = withPasskey()
    expect(codeOf(change(login(passkey, 0)))).toBe('signedIn')
    expect(codeOf(change(login(passkey, 0)))).toBe('signedIn')
  })

  it('accepts one of many concurrent assertions with the same counter', () => {
    const { passkey } = withPasskey()
    const attempts = Array.from({ length: 20 }, () => command(login(passkey, 1)))
    const codes = shard.run(...attempts).map((outcome) => codeOf(answerOf(outcome)))
    expect(codes.filter((code) => code === 'signedIn')).toHaveLength(1)
    expect(codes.filter((code) => code === 'passkey_failed')).toHaveLength(19)
  })

  it('is refused for a passkey that has since been removed, replaced, or changed its kind', () => {
    const { userId, sid, passkey } = withPasskey()
    const synced = { ...login(passkey, 1), assertion: { counter: 1, backupEligible: true } }
    expect(codeOf(change(synced))).toBe('passkey_failed')
    change({ kind: 'passkeyRemove', userId, sid, passkeyId: passkey.id })
    expect(codeOf(change(login(passkey, 1)))).toBe('passkey_failed')
    change({
      kind: 'passkeyRegister',
      userId,
      sid,
      passkey: { ...passkey, publicKey: 'BBBB' },
      notify: false,
    })
    expect(codeOf(change(login(passkey, 1)))).toBe('passkey_failed')
  })
})

describe('the removal of a passkey', () => {
  it('is allowed only to its user', () => {
    const { userId, sid, passkey } = withPasskey()
    const eve = register('eve@example.org')
    const remove = (account: typeof eve) =>
      codeOf(change({ kind: 'passkeyRemove', ...account, passkeyId: passkey.id }))
    expect(remove(eve)).toBe('not_found')
    expect(remove({ userId, sid })).toBe('done')
    expect(remove({ userId, sid })).toBe('not_found')
    expect(passkeysOf(userId)).toEqual([])
    expect(audit()).toEqual(['auth/passkey_registered success', 'auth/passkey_removed success'])
  })

  it('happens at the first proof of the mailbox, but not at later ones', () => {
    const { userId, passkey } = withPasskey()
    const prove = () => {
      const { token, hash } = makeOneTimeToken(pooledRandom())
      const link = { purpose: 'magicLink', hash, expiresAtMs: shard.nowMs + 1_000, mailToken: token } as const
      change({ kind: 'linkSend', email, link })
      return expectKind(change({ kind: 'magicLinkVerify', hash }), 'signedIn').session.sid
    }
    const sid = prove()
    expect(passkeysOf(userId)).toEqual([])
    expect(codeOf(change(login(passkey, 1)))).toBe('passkey_failed')
    expect(codeOf(change({ kind: 'passkeyRegister', userId, sid, passkey, notify: false }))).toBe('done')
    prove()
    expect(passkeysOf(userId)).toHaveLength(1)
  })

  it('happens with the deletion of its user, and the id can be registered again', () => {
    const { passkey } = withPasskey()
    change({ kind: 'userDelete', email })
    expect(codeOf(change(login(passkey, 1)))).toBe('passkey_failed')
    const again = register()
    expect(codeOf(change({ kind: 'passkeyRegister', ...again, passkey, notify: false }))).toBe('done')
  })
})
