import { NetworkError } from './errors.js'

/** Waits; rejects with the signal's reason when it is aborted. An argument, so that tests need not wait. */
export type Pause = (delayMs: number, signal: AbortSignal) => Promise<void>

/** Clocks, timers and random numbers of the client, as arguments. */
export interface Timing {
  pause: Pause
  /** A random number from 0 up to, but not including, 1. */
  random: () => number
  /** Unix milliseconds. */
  nowMs: () => number
  /** Milliseconds of a monotonic clock, for delays and the lifetimes of tokens. */
  monotonicMs: () => number
}

/** The timers, clocks and random numbers of the platform. */
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

/** Parses Retry-After, which is seconds or an HTTP date (RFC 9110, 10.2.3). @returns milliseconds from now */
export function retryAfterMs(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined
  if (/^\d{1,9}$/.test(header.trim())) return Number(header.trim()) * 1000
  const atMs = Date.parse(header)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

/**
 * The time limit of one call. `signal` is aborted by the caller or, with a NetworkError `timeout`, at the end
 * of the time.
 */
export interface Deadline {
  signal: AbortSignal
  /** When the time ends, by the clock of `nowMs`; Infinity without a limit. */
  endsAtMs: number
  /**
   * Stops the clock. The caller's signal stays linked, so that it can abort a stream that is still being
   * read.
   */
  stopClock: () => void
  /** Stops the clock and unlinks the caller's signal. */
  release: () => void
}

/**
 * Combines the caller's signal with a time limit. AbortSignal.any() is not used: in early Node 20 it leaked
 * the combined signals of a long-lived one.
 */
export function startDeadline(timeoutMs: number, nowMs: number, caller: AbortSignal | undefined): Deadline {
  const controller = new AbortController()
  const onAbort = () => controller.abort(caller?.reason)
  const timer = Number.isFinite(timeoutMs)
    ? setTimeout(
        () => controller.abort(new NetworkError(`No response within ${timeoutMs} ms`, { code: 'timeout' })),
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
