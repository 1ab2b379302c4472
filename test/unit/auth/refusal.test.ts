import { expect, it } from 'vitest'
import { refuse, statusOf } from '../../../src/base/errors.js'

it('answers a refusal with the status of its code', () => {
  expect(statusOf(refuse('invalid_token', 'Expected a token'))).toBe(401)
  expect(statusOf(refuse('license_required', 'Expected a license'))).toBe(402)
  expect(statusOf(refuse('account_locked', 'Expected a later try', { retryAfterSecs: 5 }))).toBe(429)
})

it('answers a token in a body with 400 where the route asks for that', () => {
  expect(statusOf(refuse('invalid_token', 'Expected the token of the mail', { status: 400 }))).toBe(400)
})
