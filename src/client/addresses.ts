import { type Deadline, type Timing, startDeadline } from './timing.js'

/** Maximum number of addresses of a client: a call may try all of them before it waits. */
const ADDRESSES_MAX = 16

/**
 * The addresses of one service: a single one, or those of the nodes of a cluster. Calls start at the address
 * that served last.
 */
export class Addresses {
  readonly #urls: readonly string[]
  #index = 0

  /** @throws TypeError for an invalid list; a single address is not checked */
  constructor(url: string | readonly string[]) {
    this.#urls = typeof url === 'string' ? [withoutSlash(url)] : checkedList(url)
  }

  /** The address at which calls start. */
  get current(): string {
    return this.#urls[this.#index] ?? ''
  }

  /** Whether there is more than one address. */
  get hasSeveral(): boolean {
    return this.#urls.length > 1
  }

  /** All addresses, the current one first. */
  get urls(): string[] {
    return [...this.#urls.slice(this.#index), ...this.#urls.slice(0, this.#index)]
  }

  /** Makes calls start at the next address, unless another call has already done so. */
  markUnavailable(url: string): void {
    if (url === this.current) this.#index = (this.#index + 1) % this.#urls.length
  }

  /** Makes calls start at this address, which has served after others failed. */
  markAvailable(url: string): void {
    this.#index = Math.max(0, this.#urls.indexOf(url))
  }
}

interface AttemptsSettings {
  addresses: Addresses
  timing: Timing
  /** The deadline of the whole call. */
  deadline: Deadline
  /** Whether the call may be sent to another address if one does not respond. */
  canUseOtherAddresses: boolean
}

interface Failures {
  count: number
  /** When the address may be tried again, by the monotonic clock. */
  dueMs: number
}

/**
 * The attempts of one call: which address is next, and when. Each address has its own back-off, as if it were
 * the only one.
 */
export class Attempts {
  readonly #settings: AttemptsSettings
  readonly #failures = new Map<string, Failures>()
  #url: string
  #fixedUrl: string | undefined
  #share: Deadline | undefined
  #isRunning = false

  constructor(settings: AttemptsSettings) {
    this.#settings = settings
    this.#url = settings.addresses.current
  }

  /** The address of the last attempt. */
  get url(): string {
    return this.#url
  }

  /** How often the address of the last attempt has failed; `failed` counts that attempt. */
  get failures(): number {
    return this.#failures.get(this.#url)?.count ?? 0
  }

  /** Whether the next attempt goes to an address that has not failed yet. */
  get hasUntriedAddress(): boolean {
    return !this.#failures.has(this.#next())
  }

  /**
   * Begins an attempt. While there are untried addresses, it gets only a share of the call's time, because a
   * machine that is down may not respond at all.
   * @returns the deadline of the attempt
   */
  begin(): Deadline {
    this.#share?.release()
    this.#share = undefined
    this.#isRunning = true
    const { addresses, timing, deadline, canUseOtherAddresses } = this.#settings
    this.#url = this.#next()
    const untried = addresses.urls.filter((url) => url !== this.#url && !this.#failures.has(url)).length
    const nowMs = timing.nowMs()
    const shareMs = (deadline.endsAtMs - nowMs) / (untried + 1)
    if (untried === 0 || !canUseOtherAddresses || !Number.isFinite(shareMs)) return deadline
    const share = startDeadline(shareMs, nowMs, deadline.signal)
    this.#share = share
    return {
      ...share,
      stopClock: () => {
        share.stopClock()
        deadline.stopClock()
      },
      release: () => {
        share.release()
        deadline.release()
      },
    }
  }

  /**
   * Records that the last attempt failed; its address may be tried again after `delayMs`. If the address is
   * unavailable, the next attempt goes to another one.
   * @returns milliseconds until the next attempt
   */
  failed(delayMs: number, isUnavailable: boolean): number {
    this.#share?.release()
    const { addresses, timing } = this.#settings
    const nowMs = timing.monotonicMs()
    this.#failures.set(this.#url, { count: this.failures + 1, dueMs: nowMs + delayMs })
    this.#fixedUrl = isUnavailable ? undefined : this.#url
    // A timeout before the call was sent says nothing about the address.
    if (isUnavailable && this.#isRunning) addresses.markUnavailable(this.#url)
    this.#isRunning = false
    return Math.round(Math.max(0, this.#dueMs(this.#next(nowMs)) - nowMs))
  }

  /** Records that the last attempt succeeded. */
  answered(): void {
    if (this.#failures.size > 0) this.#settings.addresses.markAvailable(this.#url)
  }

  /**
   * The next address: an untried one, otherwise one that may be tried again now, both in the order of
   * `Addresses`; otherwise the one that may be tried again first.
   */
  #next(nowMs = this.#settings.timing.monotonicMs()): string {
    if (this.#fixedUrl !== undefined) return this.#fixedUrl
    const urls = this.#settings.addresses.urls
    const untried = urls.find((url) => !this.#failures.has(url))
    const due = untried ?? urls.find((url) => this.#dueMs(url) <= nowMs)
    return due ?? urls.reduce((soonest, url) => (this.#dueMs(url) < this.#dueMs(soonest) ? url : soonest))
  }

  #dueMs(url: string): number {
    return this.#failures.get(url)?.dueMs ?? -Infinity
  }
}

/** Errors contain the position in the list and not the address, which may contain a password. */
function checkedList(list: readonly string[]): string[] {
  if (!Array.isArray(list) || list.length === 0)
    throw new TypeError('Expected at least one address of the service')
  if (list.length > ADDRESSES_MAX) throw new TypeError(`Expected at most ${ADDRESSES_MAX} addresses`)
  const parsed = list.map((text, index) => parsedAddress(text, index + 1))
  // Otherwise an attacker who blocks an https node could make the client send its credential in clear text.
  if (new Set(parsed.map(({ protocol }) => protocol)).size > 1)
    throw new TypeError('Expected addresses that are all https or all http')
  const urls = parsed.map(({ href }) => withoutSlash(href))
  urls.forEach((url, index) => {
    const first = urls.indexOf(url)
    if (first !== index)
      throw new TypeError(`Expected different addresses, but ${first + 1} and ${index + 1} are the same`)
  })
  return urls
}

function parsedAddress(text: string, position: number): URL {
  let url: URL | undefined
  try {
    url = new URL(text)
  } catch {
    // The error of URL would quote the address.
  }
  const isPlain = url !== undefined && url.username + url.password + url.search + url.hash === ''
  if (url === undefined || !isPlain || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `Expected address ${position} to be an http or https URL without user, query and fragment`,
    )
  }
  return url
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '')
}
