/** The durations of two kinds of calls, milliseconds. */
export interface InterleavedTimes {
  one: number[]
  other: number[]
}

/**
 * Measures two kinds of calls one after another, in random order, so that a temporary slowdown of the machine
 * affects both.
 * @param random returns numbers from 0 to below 1
 */
export async function interleavedTimes(
  calls: { one: readonly (() => Promise<void>)[]; other: readonly (() => Promise<void>)[] },
  random: () => number,
): Promise<InterleavedTimes> {
  const times: InterleavedTimes = { one: [], other: [] }
  const order = [
    ...calls.one.map((run) => ({ run, into: times.one })),
    ...calls.other.map((run) => ({ run, into: times.other })),
  ]
  // The shuffle of Fisher and Yates.
  for (let at = order.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    const [here, there] = [order[at], order[other]]
    if (here !== undefined && there !== undefined) [order[at], order[other]] = [there, here]
  }
  for (const { run, into } of order) {
    const startMs = performance.now()
    await run()
    into.push(performance.now() - startMs)
  }
  return times
}
