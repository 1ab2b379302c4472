import { describe, expect, it } from 'vitest'
import { takeToken } from '../../../workers/auth/outbox.js'
import { limits } from '../../../src/base/limits/limits.js'

const { mailsPerKindMax, mailsPerKindEveryMs } = limits
const start = 1_700_000_000_000

/** The bucket after a number of mails at the same moment. */
function after(count: number, nowMs = start): number | undefined {
  let fullAtMs: number | undefined = 0
  for (let n = 0; n < count; n++) fullAtMs = takeToken(fullAtMs ?? 0, nowMs)
  return fullAtMs
}

describe('the mail quota of one mailbox', () => {
  it('allows a burst of a few mails', () => {
    expect(after(mailsPerKindMax)).toBe(start + mailsPerKindMax * mailsPerKindEveryMs)
    expect(takeToken(after(mailsPerKindMax) ?? 0, start)).toBeUndefined()
  })

  it('is refilled one by one', () => {
    const full = after(mailsPerKindMax) ?? 0
    expect(takeToken(full, start + mailsPerKindEveryMs - 1)).toBeUndefined()
    expect(takeToken(full, start + mailsPerKindEveryMs)).toBe(full + mailsPerKindEveryMs)
    expect(takeToken(full, full)).toBe(full + mailsPerKindEveryMs)
  })

  it('allows about ten mails in the first hour and six in each further hour', () => {
    let fullAtMs = 0
    const sentAtMs: number[] = []
    for (let nowMs = start; nowMs < start + 2 * 3_600_000; nowMs += 1_000) {
      const next = takeToken(fullAtMs, nowMs)
      if (next === undefined) continue
      fullAtMs = next
      sentAtMs.push(nowMs)
    }
    const first = sentAtMs.filter((ms) => ms < start + 3_600_000).length
    expect([first, sentAtMs.length - first]).toEqual([mailsPerKindMax + 5, 6])
  })

  it('is not used up for longer when the clock is turned back', () => {
    const full = after(mailsPerKindMax) ?? 0
    const back = start - 86_400_000
    const next = takeToken(full, back)
    expect(next).toBe(back + mailsPerKindMax * mailsPerKindEveryMs)
    expect(takeToken(next ?? 0, back)).toBeUndefined()
  })
})
