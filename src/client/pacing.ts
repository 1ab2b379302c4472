import type { Timing } from './timing.js'

/** Maximum number of requests in flight before the first answer shows whether there is a limit. */
const FIRST_REQUESTS_MAX = 32

/** A member of RateLimit or RateLimit-Policy: its name and its integer parameters. */
const member = /"([^"]*)"((?:;[a-z]+=\d+)*)/g
const parameter = /;([a-z]+)=(\d+)/g

/** A rate limit as announced in an answer. */
interface AnnouncedLimit {
  /** `global` for all requests, `auth` for those of auth routes. */
  name: string
  /** Requests that are left now. */
  remaining: number
  /** The maximum of `remaining`. */
  capacity: number
  perMs: number
}

/**
 * Keeps a client's requests within the rate that the service announces (RateLimit and RateLimit-Policy,
 * draft-ietf-httpapi-ratelimit-headers). Delays no request if the service has no limit.
 */
export class Pacer {
  readonly #timing: Timing
  readonly #warn: (warning: string) => void
  #inFlight = 0
  #hasAnswer = false
  #waiting: (() => void)[] = []
  #name = ''
  #perMs = 0
  #capacity = Infinity
  /** Requests that may be sent without delay; if negative, the number of delayed requests. */
  #left = Infinity
  #countedAtMs = 0

  /** @param warn called before each request that is delayed */
  constructor(timing: Timing, warn: (warning: string) => void) {
    this.#timing = timing
    this.#warn = warn
  }

  /**
   * Resolves when a request may be sent. The caller must call `answered` or `failed` afterwards.
   * @throws the reason of the signal if it is aborted
   */
  async acquire(signal: AbortSignal): Promise<void> {
    while (!this.#hasAnswer && this.#inFlight >= FIRST_REQUESTS_MAX) await this.#firstAnswer(signal)
    this.#refill()
    this.#left--
    if (this.#left < 0) {
      try {
        this.#warn(warningOf(this.#name, this.#perMs))
        await this.#timing.pause(Math.ceil(-this.#left / this.#perMs), signal)
      } catch (reason) {
        this.#left++
        throw reason
      }
    }
    this.#inFlight++
  }

  /** Records an answer, and the limit in its headers. */
  answered(headers: Headers): void {
    this.#inFlight--
    this.#resumeWaiting(true)
    const limit = limitOf(headers)
    if (limit === undefined) return
    this.#refill()
    this.#name = limit.name
    this.#perMs = limit.perMs
    this.#capacity = limit.capacity
    // The server may not have counted the requests in flight yet. If the limit is exhausted, they are refused
    // and retried.
    this.#left = Math.min(this.#left, Math.max(0, limit.remaining - this.#inFlight))
    this.#countedAtMs = this.#timing.monotonicMs()
  }

  /** Records that a request got no answer. */
  failed(): void {
    this.#inFlight--
    // The server has most likely not counted it.
    this.#left++
    this.#resumeWaiting(false)
  }

  #refill(): void {
    if (this.#perMs === 0) return
    const nowMs = this.#timing.monotonicMs()
    this.#left = Math.min(this.#capacity, this.#left + (nowMs - this.#countedAtMs) * this.#perMs)
    this.#countedAtMs = nowMs
  }

  #firstAnswer(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const resume = () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = () => {
        this.#waiting = this.#waiting.filter((waiting) => waiting !== resume)
        reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#waiting.push(resume)
    })
  }

  /** Resumes the requests that wait for the first answer: all after an answer, otherwise one. */
  #resumeWaiting(hasAnswer: boolean): void {
    this.#hasAnswer ||= hasAnswer
    for (const resume of this.#waiting.splice(0, this.#hasAnswer ? this.#waiting.length : 1)) resume()
  }
}

/**
 * A function that passes on its first warning only. The clients of organisms share the one of their client.
 * @param warn by default, writes to the console, so that the reason of slow calls does not stay unknown
 */
export function warnOnce(warn: (warning: string) => void = warnOnConsole): (warning: string) => void {
  let hasWarned = false
  return (warning) => {
    if (hasWarned) return
    hasWarned = true
    warn(warning)
  }
}

function warnOnConsole(warning: string): void {
  // oxlint-disable-next-line no-console
  console.warn(`Strandfast: ${warning}`)
}

function warningOf(name: string, perMs: number): string {
  const count = Number((perMs * 1000).toFixed(1))
  const rate = `${count} ${count === 1 ? 'request' : 'requests'} per second`
  if (name === 'auth')
    return `Delaying requests, because the server accepts ${rate} to auth routes from one client address`
  return (
    `Delaying requests, because the server accepts ${rate} from one client address: send several records per ` +
    'request, or exempt the address on the server (SERVICE_RATE_LIMIT_EXEMPT)'
  )
}

/** The tightest limit in the headers of an answer. */
function limitOf(headers: Headers): AnnouncedLimit | undefined {
  const policies = membersOf(headers.get('ratelimit-policy'))
  let tightest: AnnouncedLimit | undefined
  for (const [name, { r: remaining }] of membersOf(headers.get('ratelimit'))) {
    const { q: capacity, w: secs } = policies.get(name) ?? {}
    if (remaining === undefined || !capacity || !secs) continue
    if (tightest === undefined || remaining < tightest.remaining) {
      tightest = { name, remaining, capacity, perMs: capacity / secs / 1000 }
    }
  }
  return tightest
}

function membersOf(field: string | null): Map<string, Record<string, number>> {
  const members = new Map<string, Record<string, number>>()
  for (const [, name = '', parameters = ''] of (field ?? '').matchAll(member)) {
    const numbers: Record<string, number> = {}
    for (const [, key = '', value = ''] of parameters.matchAll(parameter)) numbers[key] = Number(value)
    members.set(name, numbers)
  }
  return members
}
