import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { LinkPurpose } from '../../src/protocol/auth-messages.js'
import { limits } from '../../src/base/limits/limits.js'
import { answerOf, AuthShard, codeOf } from '../support/shard/auth-shard.js'
import { testAuthRules } from '../support/shard/shard.js'

/* What somebody without a credential can have written, by e-mails that are made up: no more the more are made up. */

let shard: AuthShard

beforeEach(() => {
  shard = new AuthShard()
})
afterEach(() => shard.remove())

const known = 'ada@example.com'
const madeUp = (n: number) => `nobody-${n}@example.com`
const told = () => shard.audit().map(({ type, body }) => [type, body['count'] ?? 1])

/** Commands of one kind for as many made-up e-mails, carried out together. */
function flood(kind: 'links' | 'logins', count: number, from = 0): void {
  const commands = Array.from({ length: count }, (_none, place) => {
    const n = from + place
    if (kind === 'logins') return shard.command({ kind: 'loginFailed', email: madeUp(n) })
    const link = {
      purpose: 'magicLink',
      hash: String(n).padStart(64, '0'),
      expiresAtMs: shard.nowMs + 900_000,
    } as const
    return shard.command({ kind: 'linkSend', email: madeUp(n), link })
  })
  const answers = shard.run(...commands).map(answerOf)
  expect(new Set(answers.map(codeOf))).toEqual(new Set([kind === 'logins' ? 'invalid_credentials' : 'done']))
}

describe('e-mails that no account has', () => {
  it('are told of together, a record for each thing that happened in a minute', async () => {
    flood('links', 200)
    flood('logins', 200)
    expect(told()).toEqual([])
    shard.nowMs += 59_999
    flood('logins', 1)
    await shard.reopen()
    shard.nowMs += 1
    // Whatever happens next in the namespace.
    shard.register(known)
    expect(told()).toEqual([
      ['auth/magic_link_sent', 200],
      ['auth/login_failed', 201],
      ['auth/register', 1],
    ])
    shard.nowMs += 60_000
    shard.change({ kind: 'loginFailed', email: known })
    expect(told().slice(3)).toEqual([['auth/login_failed', 1]])
  })

  it('leave three records a minute at most, however long it goes on', () => {
    for (let minute = 0; minute < 10; minute++) {
      for (const half of [0, 1]) {
        flood('links', 50 + half)
        flood('logins', 50)
        shard.nowMs += 30_000
      }
    }
    shard.register(known)
    const records = told().filter(([type]) => type !== 'auth/register')
    expect(records.length).toBeLessThanOrEqual(30)
    const sum = (type: string) =>
      records.filter(([one]) => one === type).reduce((total, [, count]) => total + Number(count), 0)
    expect(sum('auth/magic_link_sent')).toBe(1_010)
    expect(sum('auth/login_failed')).toBe(1_000)
  })

  it('are locked like any other, and told of as locked', () => {
    for (let n = 0; n < 5; n++) shard.change({ kind: 'loginFailed', email: madeUp(1) })
    expect(shard.look({ kind: 'loginState', email: madeUp(1) })).toMatchObject({ lockedForMs: 900_000 })
    shard.nowMs += 60_000
    shard.register(known)
    expect(told().slice(0, 2)).toEqual([
      ['auth/login_failed', 5],
      ['auth/locked', 1],
    ])
  })

  it('are told of with the address that they came from, while it is one, and with no request', () => {
    flood('logins', 3)
    shard.nowMs += 60_000
    shard.origin = { ip: '192.0.2.2', userAgent: 'other', requestId: 'r-2' }
    flood('logins', 1)
    shard.origin = { ip: '192.0.2.3', userAgent: 'other', requestId: 'r-3' }
    flood('logins', 1)
    shard.nowMs += 60_000
    shard.register(known)
    const [first, second, registered] = shard.audit().map(({ body }) => body)
    const why = { method: 'password', reason: 'unknown_account', outcome: 'failure' }
    const nobody = { user_id: null, email_hmac: null, sid: null, request_id: null, ...why }
    expect(first).toEqual({ ...nobody, ip: '192.0.2.1', user_agent: 'test', count: 3 })
    expect(second).toEqual({ ...nobody, ip: null, user_agent: 'other', count: 2 })
    expect(registered).toMatchObject({ ip: '192.0.2.3', request_id: 'r-3' })
  })

  it('are counted for each namespace by itself', () => {
    flood('logins', 2)
    shard.change({ kind: 'loginFailed', email: madeUp(1) }, 'acme')
    shard.nowMs += 60_000
    shard.change({ kind: 'register', email: known, passwordHash: 'x' }, 'acme')
    expect(told()).toEqual([
      ['auth/login_failed', 1],
      ['auth/register', 1],
    ])
  })
})

describe('an e-mail that an account has', () => {
  it('is told of by itself, at once and by its name', () => {
    shard.register(known)
    shard.sendLink({ purpose: 'magicLink', email: known })
    shard.change({ kind: 'loginFailed', email: known })
    expect(told()).toEqual([
      ['auth/register', 1],
      ['auth/magic_link_sent', 1],
      ['auth/login_failed', 1],
    ])
    const bodies = shard.audit().map(({ body }) => body)
    expect(new Set(bodies.map((body) => body['user_id'])).size).toBe(1)
    expect(new Set(bodies.map((body) => body['email_hmac'])).size).toBe(1)
    expect(bodies.every((body) => body['request_id'] === 'r-1')).toBe(true)
  })

  it('is told of together with others for registrations beyond those that its owner is told of', async () => {
    shard.register(known)
    shard.auth = { ...testAuthRules, requireEmailVerify: true }
    await shard.reopen()
    const verifyLink = { purpose: 'verifyEmail', hash: 'a'.repeat(64), expiresAtMs: shard.nowMs } as const
    const tries = Array.from({ length: 50 }, () =>
      shard.command({ kind: 'register', email: known, passwordHash: 'x', verifyLink }),
    )
    expect(
      new Set(
        shard
          .run(...tries)
          .map(answerOf)
          .map(codeOf),
      ),
    ).toEqual(new Set(['registered']))
    expect(told().slice(1)).toHaveLength(limits.mailsPerKindMax)
    shard.nowMs += 60_000
    shard.change({ kind: 'keyRotate' })
    expect(told().at(-2)).toEqual(['auth/register', 50 - limits.mailsPerKindMax])
  })

  it('is told of together with others for links beyond those that a mailbox is mailed', () => {
    shard.register(known)
    for (let n = 0; n < 50; n++) shard.sendLink({ purpose: 'magicLink', email: known })
    expect(told().slice(1)).toHaveLength(limits.mailsPerKindMax)
    shard.nowMs += 60_000
    shard.change({ kind: 'keyRotate' })
    expect(told().at(-2)).toEqual(['auth/magic_link_sent', 50 - limits.mailsPerKindMax])
  })
})

describe('what is kept of made-up e-mails', () => {
  it.each<LinkPurpose>(['verifyEmail', 'passwordReset'])(
    'is gone soon where it served nobody: %s',
    (purpose) => {
      for (let n = 0; n < 20; n++) shard.sendLink({ purpose, email: madeUp(n) })
      shard.nowMs += 60_001
      // The commit that sweeps; the room of a mailbox takes longer to come back.
      for (let n = 0; n < 4; n++) shard.change({ kind: 'keyRotate' })
      const rows = [...shard.environment.auth.getKeys({})].map((key) => key.toString())
      expect(rows.filter((key) => /auth:(link|email-link|unsent-mail):/.test(key))).toEqual([])
    },
  )

  it('is swept as fast as it is written, however much comes together', () => {
    for (let hour = 0; hour < 4; hour++) {
      flood('links', 1_000, hour * 1_000)
      shard.nowMs += 3_600_000
    }
    // Links and the rooms of the mailboxes, of two rounds at most.
    expect(shard.environment.auth.getKeysCount({})).toBeLessThan(2 * 3 * 1_000 + 10)
  })
})
