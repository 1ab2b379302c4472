/** Milliseconds, of the wall clock since the Unix epoch. Handed in wherever time is read, so that tests move it. */
export type Clock = () => number

/** The machine's clock. */
export const systemClock: Clock = () => Date.now()

/** Milliseconds since some moment, for telling how much time has passed: whatever happens to the time of day. */
export const steadyClock: Clock = () => performance.now()
