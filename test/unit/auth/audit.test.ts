import { describe, expect, it } from 'vitest'
import { type AuditEvent, auditBody, auditTypes } from '../../../src/auth/audit.js'
import { isRecordType, isReservedType } from '../../../src/strand/record-type.js'
import { readJson } from '../../../src/strand/json.js'

describe('an audit record', () => {
  it('has a type that only the server writes', () => {
    expect(auditTypes.every((type) => isRecordType(type) && isReservedType(type))).toBe(true)
    expect(new Set(auditTypes).size).toBe(auditTypes.length)
  })

  it('has all members of audit records, with null for unknown values', () => {
    expect(JSON.parse(auditBody({ outcome: 'failure', requestId: 'r1' }))).toStrictEqual({
      user_id: null,
      email_hmac: null,
      sid: null,
      ip: null,
      user_agent: null,
      outcome: 'failure',
      request_id: 'r1',
    })
  })

  it('has the method and reason of a failed sign-in, and no reason if there were several', () => {
    const body = (failure: AuditEvent['failure']) =>
      JSON.parse(auditBody({ outcome: 'failure', ...(failure !== undefined && { failure }) }))
    const one = { method: 'passkey', reason: 'wrong_origin' } as const
    expect(body(one)).toMatchObject(one)
    expect(body({ method: 'oauth' })).toMatchObject({ method: 'oauth', reason: null })
    expect(body(undefined)).not.toHaveProperty('method')
  })

  it('has all known values', () => {
    const event = {
      userId: 'usr_1',
      emailHmac: 'a'.repeat(64),
      sid: 'b'.repeat(32),
      ip: '192.0.2.1',
      userAgent: 'curl/8',
      outcome: 'success',
      requestId: 'r1',
      count: 3,
    } as const
    expect(JSON.parse(auditBody(event))).toStrictEqual({
      user_id: 'usr_1',
      email_hmac: 'a'.repeat(64),
      sid: 'b'.repeat(32),
      ip: '192.0.2.1',
      user_agent: 'curl/8',
      outcome: 'success',
      request_id: 'r1',
      count: 3,
    })
  })

  it('ignores additional members of its argument', () => {
    const user = { password: 'hunter22', token: 'ey', passwordHash: '$argon2id$', email: 'a@b.c' }
    const body = auditBody({ ...user, outcome: 'success', requestId: 'r1' })
    for (const secret of Object.values(user)) expect(body).not.toContain(secret)
  })

  it('refuses an e-mail instead of its HMAC', () => {
    expect(() => auditBody({ emailHmac: 'a@b.c', outcome: 'success', requestId: 'r1' })).toThrow('HMAC')
  })

  it.each([
    [
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36',
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36',
    ],
    ['a@b.c', '[removed]'],
    ['bot/1 (+mailto:a@b.c; http://x.y)', 'bot/1 ([removed]; http://x.y)'],
    ['<a@b.c>, "A" a@b.c', '<[removed]>, "A" [removed]'],
    ['x a%40b.c y', 'x [removed] y'],
    ['a\uff20b.c', '[removed]'],
    ['a&#64;b.c', '[removed];b.c'],
    [`Bearer ${'x'.repeat(43)}`, 'Bearer [removed]'],
    [`v=${'x_-1'.repeat(10)}.y`, 'v=[removed].y'],
  ])('records the user agent %j as %j', (userAgent, recorded) => {
    const body = auditBody({ userAgent, outcome: 'success', requestId: 'r1' })
    expect(JSON.parse(body).user_agent).toBe(recorded)
  })

  it('removes an e-mail that truncation would cut in half', () => {
    const userAgent = `${'x '.repeat(120)}person.with.a.long.name@example.com`
    expect(auditBody({ userAgent, outcome: 'success', requestId: 'r1' })).not.toContain('person')
  })

  it('truncates texts of clients between characters, so that the body stays valid', () => {
    const userAgent = `\ud800${'🧵'.repeat(300)}`
    const body = auditBody({ userAgent, outcome: 'success', requestId: 'r'.repeat(500), ip: 'f'.repeat(99) })
    const recorded = JSON.parse(body)
    expect(recorded.user_agent).toBe(`\ufffd${'🧵'.repeat(255)}`)
    expect(recorded.request_id).toHaveLength(128)
    expect(recorded.ip).toHaveLength(64)
    expect(readJson(Buffer.from(body), 8)).toHaveProperty('value')
  })
})
