import { expect, it } from 'vitest'
import { durationText } from '../../../src/base/duration.js'

it.each([
  [0, '0 seconds'],
  [1_000, '1 second'],
  [59_999, '59.9 seconds'],
  [90_000, '1.5 minutes'],
  [3_600_000, '1 hour'],
  [7_199_999, '1.9 hours'],
  [86_400_000, '1 day'],
  [604_800_000, '7 days'],
])('writes %d ms as %s, never as more', (ms, text) => {
  expect(durationText(ms)).toBe(text)
})
