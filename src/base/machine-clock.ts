import type { Clock } from './clock.js'

/**
 * Milliseconds since one moment that all threads and processes of the machine share, whatever the time of day: it goes on
 * while a process is stopped, and not while the machine is asleep.
 */
export const machineClock: Clock = () => Number(process.hrtime.bigint()) / 1e6
