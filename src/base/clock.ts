/**
 * Milliseconds of the wall clock since the Unix epoch. It is an argument wherever time is read, so that tests can move
 * it.
 */
export type Clock = () => number

/** The machine's clock. */
export const systemClock: Clock = () => Date.now()

/** Milliseconds since some moment, to measure how much time has passed, even if the time of day is changed. */
export const steadyClock: Clock = () => performance.now()

/**
 * Milliseconds since one moment that all threads and processes of the machine share, whatever the time of day: it goes on
 * while a process is stopped, and not while the machine is asleep.
 */
export const machineClock: Clock = () => Number(process.hrtime.bigint()) / 1e6
