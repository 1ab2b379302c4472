import { describe, expect, it } from 'vitest'
import { newUserId, type UserRow } from '../../../src/auth/user.js'
import { auditTypes, type AuditType } from '../../../src/auth/audit.js'

describe('a new user', () => {
  it('gets an id of the form usr_ and 32 hex digits, made of the bytes given', () => {
    const user: Pick<UserRow, 'userId'> = { userId: newUserId((count) => Buffer.alloc(count, 0xab)) }
    expect(user.userId).toBe(`usr_${'ab'.repeat(16)}`)
  })

  it('is told of by a record type of its own', () => {
    const registered: AuditType = 'auth/register'
    expect(auditTypes).toContain(registered)
  })
})
