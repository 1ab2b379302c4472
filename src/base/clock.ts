/**
 * Milliseconds of the wall clock since the Unix epoch. It is an argument wherever time is read, so that tests can move
 * it.
 */
export type Clock = () => number

/** The machine's clock. */
export const systemClock: Clock = () => Date.now()

/** Milliseconds since some moment, to measure how much time has passed, even if the time of day is changed. */
export const steadyClock: Clock = () => performance.now()
