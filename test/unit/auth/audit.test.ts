import { describe, expect, it } from 'vitest'
import { type AuditEvent, auditBody, auditTypes } from '../../../src/auth/audit.js'
import { isRecordType, isReservedType } from '../../../src/strand/record-type.js'
import { readJson } from '../../../src/strand/json.js'

describe('an audit record', () => {
  it('has a type that only the server writes', () => {
    expect(auditTypes.every((type) => isRecordType(type) && isReservedType(type))).toBe(true)
    expect(new Set(auditTypes).size).toBe(auditTypes.length)
  })

  it('has the members of every audit record, null where nothing is known', () => {
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

  it('has method and reason of a failed sign-in, and no reason of several', () => {
    const body = (failure: AuditEvent['failure']) =>
      JSON.parse(auditBody({ outcome: 'failure', ...(failure !== undefined && { failure }) }))
    const one = { method: 'passkey', reason: 'wrong_origin' } as const
    expect(body(one)).toMatchObject(one)
    expect(body({ method: 'oauth' })).toMatchObject({ method: 'oauth', reason: null })
    expect(body(undefined)).not.toHaveProperty('method')
  })

  it('tells what is known', () => {
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

  it('takes nothing of a wider object', () => {
    const user = { password: 'hunter22', token: 'ey', passwordHash: '$argon2id$', email: 'a@b.c' }
    const body = auditBody({ ...user, outcome: 'success', requestId: 'r1' })
    for (const secret of Object.values(user)) expect(body).not.toContain(secret)
  })

  it('refuses an e-mail in the place of its HMAC', () => {
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
  ])('tells %j as the user agent %j', (userAgent, told) => {
    const body = auditBody({ userAgent, outcome: 'success', requestId: 'r1' })
    expect(JSON.parse(body).user_agent).toBe(told)
  })

  it('removes an e-mail also where cutting would leave the half of it', () => {
    const userAgent = `${'x '.repeat(120)}somebody.with.a.long.name@example.com`
    expect(auditBody({ userAgent, outcome: 'success', requestId: 'r1' })).not.toContain('somebody')
  })

  it('cuts what a client sends between characters, and stays a body that a strand takes', () => {
    const userAgent = `\ud800${'🧵'.repeat(300)}`
    const body = auditBody({ userAgent, outcome: 'success', requestId: 'r'.repeat(500), ip: 'f'.repeat(99) })
    const told = JSON.parse(body)
    expect(told.user_agent).toBe(`\ufffd${'🧵'.repeat(255)}`)
    expect(told.request_id).toHaveLength(128)
    expect(told.ip).toHaveLength(64)
    expect(readJson(Buffer.from(body), 8)).toHaveProperty('value')
  })
})
