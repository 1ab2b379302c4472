import { expect, it } from 'vitest'
import { refuse, statusOf } from '../../../src/base/errors.js'

it('returns the status of the code of a refusal', () => {
  expect(statusOf(refuse('invalid_token', 'Expected a token'))).toBe(401)
  expect(statusOf(refuse('license_required', 'Expected a license'))).toBe(402)
  expect(statusOf(refuse('account_locked', 'Expected a later try', { retryAfterSecs: 5 }))).toBe(429)
})

it('returns 400 for a token in a body if the refusal says so', () => {
  expect(statusOf(refuse('invalid_token', 'Expected the token of the mail', { status: 400 }))).toBe(400)
})
