import { NetworkError } from './errors.js'

/** Waits; rejects with the signal's reason once it is aborted. An argument, so that tests need not wait. */
export type Pause = (delayMs: number, signal: AbortSignal) => Promise<void>

/** Time and chance of the client, as arguments. */
export interface Timing {
  pause: Pause
  /** 0 up to 1. */
  random: () => number
  /** Unix milliseconds. */
  nowMs: () => number
  /** Milliseconds of a monotonic clock, which measures the lifetimes of tokens. */
  monotonicMs: () => number
}

/** The platform's own timers, clocks and random numbers. */
export const systemTiming: Timing = {
  pause,
  random: Math.random,
  nowMs: Date.now,
  monotonicMs: () => performance.now(),
}

function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, delayMs)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

/** A back-off: the first delay and the longest one, both in milliseconds. */
export interface Backoff {
  firstMs: number
  mostMs: number
}

/**
 * Delay before the next try, doubled with each failure and spread over its upper half, so that callers that failed
 * together do not retry together.
 * @param failures failures in a row, from 1
 */
export function backoffMs(backoff: Backoff, failures: number, random: () => number): number {
  const ceilingMs = Math.min(backoff.mostMs, backoff.firstMs * 2 ** Math.min(failures - 1, 30))
  return Math.round(ceilingMs * (0.5 + random() / 2))
}

/** Reads Retry-After, seconds or an HTTP date (RFC 9110, 10.2.3), as milliseconds from now. */
export function retryAfterMs(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined
  if (/^\d{1,9}$/.test(header.trim())) return Number(header.trim()) * 1000
  const atMs = Date.parse(header)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

/** One call's time: aborted by the caller or, with a NetworkError `timeout`, when the time is over. */
export interface Deadline {
  signal: AbortSignal
  /** When the time is over, in the clock's milliseconds; Infinity without a limit. */
  endsAtMs: number
  /** Stops the clock; the caller's signal stays linked, as a stream that is still read needs it. */
  stopClock: () => void
  /** Stops the clock and releases the caller's signal. */
  release: () => void
}

/**
 * Links the caller's signal and a time limit. AbortSignal.any() is not used: in early Node 20 it kept finished signals
 * in memory as long as a long-lived one.
 */
export function startDeadline(timeoutMs: number, nowMs: number, caller: AbortSignal | undefined): Deadline {
  const controller = new AbortController()
  const onAbort = () => controller.abort(caller?.reason)
  const timer = Number.isFinite(timeoutMs)
    ? setTimeout(
        () => controller.abort(new NetworkError(`No answer within ${timeoutMs} ms`, { code: 'timeout' })),
        timeoutMs,
      )
    : undefined
  if (caller?.aborted) onAbort()
  caller?.addEventListener('abort', onAbort, { once: true })
  const stopClock = () => clearTimeout(timer)
  return {
    signal: controller.signal,
    endsAtMs: nowMs + timeoutMs,
    stopClock,
    release: () => {
      stopClock()
      caller?.removeEventListener('abort', onAbort)
    },
  }
}
