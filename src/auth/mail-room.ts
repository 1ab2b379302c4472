import { limits } from '../base/limits/limits.js'

/**
 * Takes one mail out of the bucket of a mailbox. The bucket holds `mailsPerKindMax` mails and gets one back each
 * `mailsPerKindEveryMs`; its state is a single number.
 * @param fullAtMs when the bucket is full again, Unix milliseconds; 0 when nothing was sent yet
 * @returns when it is full again after this mail; undefined when the bucket is empty
 */
export function takeRoom(fullAtMs: number, nowMs: number): number | undefined {
  const { mailsPerKindMax, mailsPerKindEveryMs } = limits
  const lackMaxMs = mailsPerKindMax * mailsPerKindEveryMs
  const lacksMs = Math.max(0, fullAtMs - nowMs)
  // No bucket lacks more than it can hold, unless the clock was set back: then one mail is sent and the bucket counts
  // from it.
  const lackMs = (lacksMs > lackMaxMs ? lackMaxMs - mailsPerKindEveryMs : lacksMs) + mailsPerKindEveryMs
  return lackMs > lackMaxMs ? undefined : nowMs + lackMs
}
