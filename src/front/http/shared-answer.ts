import type { Clock } from '../../base/clock.js'

/**
 * Makes what is the same for every caller once at a time: callers that come while it is made wait for that result, and
 * those that come within `keptMs` after it was begun get it too. A failure is not kept.
 * @param clock milliseconds that only go forward
 */
export function sharedAnswer<Result>(
  make: () => Result | Promise<Result>,
  { keptMs, clock }: { keptMs: number; clock: Clock },
): () => Promise<Result> {
  let made: Promise<Result> | undefined
  let isBeingMade = false
  let untilMs = 0
  return () => {
    if (made !== undefined && (isBeingMade || clock() < untilMs)) return made
    isBeingMade = true
    untilMs = clock() + keptMs
    const begun = (async () => make())()
    made = begun
    const ended = () => (isBeingMade = false)
    begun.then(ended, () => {
      ended()
      made = undefined
    })
    return begun
  }
}
