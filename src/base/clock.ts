/**
 * Milliseconds of the wall clock since the Unix epoch. Code takes it as an argument, so that tests can move
 * it.
 */
export type Clock = () => number

/** The machine's clock. */
export const systemClock: Clock = () => Date.now()

/** Monotonic milliseconds of this process, to measure durations. */
export const steadyClock: Clock = () => performance.now()

/**
 * Monotonic milliseconds that all threads and processes of the machine share. The clock runs while a process
 * is stopped (SIGSTOP), but not while the machine sleeps.
 */
export const machineClock: Clock = () => Number(process.hrtime.bigint()) / 1e6
