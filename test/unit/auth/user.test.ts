import { describe, expect, it } from 'vitest'
import { newUserId, type UserRow } from '../../../src/auth/user.js'
import { auditTypes, type AuditType } from '../../../src/auth/audit.js'

describe('a new user', () => {
  it('gets an id of usr_ and 32 hex digits from the random bytes', () => {
    const user: Pick<UserRow, 'userId'> = { userId: newUserId((count) => Buffer.alloc(count, 0xab)) }
    expect(user.userId).toBe(`usr_${'ab'.repeat(16)}`)
  })

  it('is audited with the type auth/register', () => {
    const registered: AuditType = 'auth/register'
    expect(auditTypes).toContain(registered)
  })
})
