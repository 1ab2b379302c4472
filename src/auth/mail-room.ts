import { limits } from '../base/limits.js'

/**
 * Takes the room of one mail to a mailbox. The room is a bucket that holds `mailsPerKindMax` and gets one back each
 * `mailsPerKindEveryMs`; one number is the whole of it.
 * @param fullAtMs when all of the room is back, Unix milliseconds; 0 when nothing was sent yet
 * @returns when it is back after this mail; undefined when there is no room
 */
export function takeRoom(fullAtMs: number, nowMs: number): number | undefined {
  const { mailsPerKindMax, mailsPerKindEveryMs } = limits
  const lackMaxMs = mailsPerKindMax * mailsPerKindEveryMs
  const lacksMs = Math.max(0, fullAtMs - nowMs)
  // No bucket lacks more than all, unless the clock was set back: then one mail goes out and the bucket counts from it.
  const lackMs = (lacksMs > lackMaxMs ? lackMaxMs - mailsPerKindEveryMs : lacksMs) + mailsPerKindEveryMs
  return lackMs > lackMaxMs ? undefined : nowMs + lackMs
}
