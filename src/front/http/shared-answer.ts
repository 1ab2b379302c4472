import type { Clock } from '../../base/clock.js'

/**
 * Computes an answer that is the same for every caller only once at a time. Callers during the computation
 * get its result, and so do callers within `keptMs` after its start. A failure is not cached.
 * @param clock monotonic milliseconds
 */
export function sharedAnswer<Result>(
  compute: () => Result | Promise<Result>,
  { keptMs, clock }: { keptMs: number; clock: Clock },
): () => Promise<Result> {
  let cached: Promise<Result> | undefined
  let isComputing = false
  let untilMs = 0
  return () => {
    if (cached !== undefined && (isComputing || clock() < untilMs)) return cached
    isComputing = true
    untilMs = clock() + keptMs
    const computation = (async () => compute())()
    cached = computation
    const onEnd = () => (isComputing = false)
    computation.then(onEnd, () => {
      onEnd()
      cached = undefined
    })
    return computation
  }
}
