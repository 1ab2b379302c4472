/** Wall-clock milliseconds since the Unix epoch. Handed in wherever time is read, so that tests move it. */
export type Clock = () => number

/** The machine's clock. */
export const systemClock: Clock = () => Date.now()
