import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { LinkPurpose } from '../../src/protocol/auth-messages.js'
import { limits } from '../../src/base/limits/limits.js'
import { answerOf, AuthShard, codeOf } from '../support/shard/auth-shard.js'
import { testAuthRules } from '../support/shard/shard.js'

/*
 * The number of records that a client without a credential can cause does not grow with the number of made-up
 * e-mails.
 */

let shard: AuthShard

beforeEach(() => {
  shard = new AuthShard()
})
afterEach(() => shard.remove())

const known = 'ada@example.com'
const madeUp = (n: number) => `unknown-${n}@example.com`
const auditCounts = () => shard.audit().map(({ type, body }) => [type, body['count'] ?? 1])

/** Carries out commands of one kind for `count` made-up e-mails together. */
function flood(kind: 'links' | 'logins', count: number, from = 0): void {
  const commands = Array.from({ length: count }, (_none, index) => {
    const n = from + index
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

describe('events of e-mails without an account', () => {
  it('share one audit record for each type and minute', async () => {
    flood('links', 200)
    flood('logins', 200)
    expect(auditCounts()).toEqual([])
    shard.nowMs += 59_999
    flood('logins', 1)
    await shard.reopen()
    shard.nowMs += 1
    // Any next change in the namespace writes the records.
    shard.register(known)
    expect(auditCounts()).toEqual([
      ['auth/magic_link_sent', 200],
      ['auth/login_failed', 201],
      ['auth/register', 1],
    ])
    shard.nowMs += 60_000
    shard.change({ kind: 'loginFailed', email: known })
    expect(auditCounts().slice(3)).toEqual([['auth/login_failed', 1]])
  })

  it('leave at most three records a minute', () => {
    for (let minute = 0; minute < 10; minute++) {
      for (const half of [0, 1]) {
        flood('links', 50 + half)
        flood('logins', 50)
        shard.nowMs += 30_000
      }
    }
    shard.register(known)
    const records = auditCounts().filter(([type]) => type !== 'auth/register')
    expect(records.length).toBeLessThanOrEqual(30)
    const sum = (type: string) =>
      records.filter(([one]) => one === type).reduce((total, [, count]) => total + Number(count), 0)
    expect(sum('auth/magic_link_sent')).toBe(1_010)
    expect(sum('auth/login_failed')).toBe(1_000)
  })

  it('lock the e-mail like any other, and are audited as a lock', () => {
    for (let n = 0; n < 5; n++) shard.change({ kind: 'loginFailed', email: madeUp(1) })
    expect(shard.lookUp({ kind: 'loginState', email: madeUp(1) })).toMatchObject({ lockedForMs: 900_000 })
    shard.nowMs += 60_000
    shard.register(known)
    expect(auditCounts().slice(0, 2)).toEqual([
      ['auth/login_failed', 5],
      ['auth/locked', 1],
    ])
  })

  it('are audited without a request, and with the client address if it is the same for all', () => {
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
    const anonymous = { user_id: null, email_hmac: null, sid: null, request_id: null, ...why }
    expect(first).toEqual({ ...anonymous, ip: '192.0.2.1', user_agent: 'test', count: 3 })
    expect(second).toEqual({ ...anonymous, ip: null, user_agent: 'other', count: 2 })
    expect(registered).toMatchObject({ ip: '192.0.2.3', request_id: 'r-3' })
  })

  it('are counted separately for each namespace', () => {
    flood('logins', 2)
    shard.change({ kind: 'loginFailed', email: madeUp(1) }, 'acme')
    shard.nowMs += 60_000
    shard.change({ kind: 'register', email: known, passwordHash: 'x' }, 'acme')
    expect(auditCounts()).toEqual([
      ['auth/login_failed', 1],
      ['auth/register', 1],
    ])
  })
})

describe('events of an e-mail with an account', () => {
  it('have separate audit records with user and request, written immediately', () => {
    shard.register(known)
    shard.sendLink({ purpose: 'magicLink', email: known })
    shard.change({ kind: 'loginFailed', email: known })
    expect(auditCounts()).toEqual([
      ['auth/register', 1],
      ['auth/magic_link_sent', 1],
      ['auth/login_failed', 1],
    ])
    const bodies = shard.audit().map(({ body }) => body)
    expect(new Set(bodies.map((body) => body['user_id'])).size).toBe(1)
    expect(new Set(bodies.map((body) => body['email_hmac'])).size).toBe(1)
    expect(bodies.every((body) => body['request_id'] === 'r-1')).toBe(true)
  })

  it('share a record for registrations beyond those that are mailed to the owner', async () => {
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
    expect(auditCounts().slice(1)).toHaveLength(limits.mailsPerKindMax)
    shard.nowMs += 60_000
    shard.change({ kind: 'keyRotate' })
    expect(auditCounts().at(-2)).toEqual(['auth/register', 50 - limits.mailsPerKindMax])
  })

  it('share a record for links beyond the quota of the mailbox', () => {
    shard.register(known)
    for (let n = 0; n < 50; n++) shard.sendLink({ purpose: 'magicLink', email: known })
    expect(auditCounts().slice(1)).toHaveLength(limits.mailsPerKindMax)
    shard.nowMs += 60_000
    shard.change({ kind: 'keyRotate' })
    expect(auditCounts().at(-2)).toEqual(['auth/magic_link_sent', 50 - limits.mailsPerKindMax])
  })
})

describe('rows of made-up e-mails', () => {
  it.each<LinkPurpose>(['verifyEmail', 'passwordReset'])(
    'are removed soon if the link is of no use: %s',
    (purpose) => {
      for (let n = 0; n < 20; n++) shard.sendLink({ purpose, email: madeUp(n) })
      shard.nowMs += 60_001
      // These commits sweep the expired rows; the quota of a mailbox takes longer to refill.
      for (let n = 0; n < 4; n++) shard.change({ kind: 'keyRotate' })
      const rows = [...shard.environment.auth.getKeys({})].map((key) => key.toString())
      expect(rows.filter((key) => /auth:(link|email-link|unsent-mail):/.test(key))).toEqual([])
    },
  )

  it('are swept as fast as they are written', () => {
    for (let hour = 0; hour < 4; hour++) {
      flood('links', 1_000, hour * 1_000)
      shard.nowMs += 3_600_000
    }
    // Links and mailbox quotas of at most two rounds are left.
    expect(shard.environment.auth.getKeysCount({})).toBeLessThan(2 * 3 * 1_000 + 10)
  })
})
