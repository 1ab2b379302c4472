import type { Timing } from './backoff.js'

/** Requests that may be in flight before the first answer shows whether there is a limit. */
const FIRST_REQUESTS_MAX = 32

/** A member of RateLimit or RateLimit-Policy: its name, and its parameters of whole numbers. */
const member = /"([^"]*)"((?:;[a-z]+=\d+)*)/g
const parameter = /;([a-z]+)=(\d+)/g

/** What an answer says about a limit. */
interface ToldLimit {
  /** Requests that are left now. */
  remaining: number
  /** The most requests that can be left. */
  most: number
  perMs: number
}

/**
 * Keeps a client's requests within the rate that the service announces (RateLimit and RateLimit-Policy,
 * draft-ietf-httpapi-ratelimit-headers). Without a limit it delays nothing.
 */
export class Pacer {
  readonly #timing: Timing
  #underWay = 0
  #hasAnswer = false
  #waiting: (() => void)[] = []
  #perMs = 0
  #most = Infinity
  /** Requests that may be sent at once; if negative, the number of requests that were delayed. */
  #left = Infinity
  #countedAtMs = 0

  constructor(timing: Timing) {
    this.#timing = timing
  }

  /**
   * Resolves when a request may be sent; `answered` or `failed` must follow.
   * @throws the signal's reason once it is aborted
   */
  async turn(signal: AbortSignal): Promise<void> {
    while (!this.#hasAnswer && this.#underWay >= FIRST_REQUESTS_MAX) await this.#firstAnswer(signal)
    this.#refill()
    this.#left--
    if (this.#left < 0) {
      try {
        await this.#timing.pause(Math.ceil(-this.#left / this.#perMs), signal)
      } catch (reason) {
        this.#left++
        throw reason
      }
    }
    this.#underWay++
  }

  /** Takes note of an answer. */
  answered(headers: Headers): void {
    this.#underWay--
    this.#open(true)
    const told = limitOf(headers)
    if (told === undefined) return
    this.#refill()
    this.#perMs = told.perMs
    this.#most = told.most
    // Requests in flight may be counted already. If none are left, they are refused and wait for another turn.
    this.#left = Math.min(this.#left, Math.max(0, told.remaining - this.#underWay))
    this.#countedAtMs = this.#timing.monotonicMs()
  }

  /** Takes note that no answer came. */
  failed(): void {
    this.#underWay--
    // It was most likely not counted.
    this.#left++
    this.#open(false)
  }

  #refill(): void {
    if (this.#perMs === 0) return
    const nowMs = this.#timing.monotonicMs()
    this.#left = Math.min(this.#most, this.#left + (nowMs - this.#countedAtMs) * this.#perMs)
    this.#countedAtMs = nowMs
  }

  #firstAnswer(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const goOn = () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = () => {
        this.#waiting = this.#waiting.filter((one) => one !== goOn)
        reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#waiting.push(goOn)
    })
  }

  /** Lets all requests that wait for the first answer continue, or one if no answer came. */
  #open(hasAnswer: boolean): void {
    this.#hasAnswer ||= hasAnswer
    for (const goOn of this.#waiting.splice(0, this.#hasAnswer ? this.#waiting.length : 1)) goOn()
  }
}

/** The tightest limit in an answer. */
function limitOf(headers: Headers): ToldLimit | undefined {
  const policies = membersOf(headers.get('ratelimit-policy'))
  let tightest: ToldLimit | undefined
  for (const [name, { r: remaining }] of membersOf(headers.get('ratelimit'))) {
    const { q: most, w: secs } = policies.get(name) ?? {}
    if (remaining === undefined || !most || !secs) continue
    if (tightest === undefined || remaining < tightest.remaining) {
      tightest = { remaining, most, perMs: most / secs / 1000 }
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
