import { type Deadline, type Timing, startDeadline } from './backoff.js'

/** The most addresses of a client: a call may ask all of them before it waits. */
const ADDRESSES_MAX = 16

/** The addresses of one service: one, or those of the nodes of a cluster. Calls begin at the one that answered last. */
export class Addresses {
  readonly #urls: readonly string[]
  #place = 0

  /** @throws TypeError for a list that cannot be meant; a lone address is taken as it is */
  constructor(url: string | readonly string[]) {
    this.#urls = typeof url === 'string' ? [withoutSlash(url)] : checkedList(url)
  }

  /** Where calls begin. */
  get current(): string {
    return this.#urls[this.#place] ?? ''
  }

  /** Whether there is more than one. */
  get areSeveral(): boolean {
    return this.#urls.length > 1
  }

  /** All of them, the current one first. */
  get inTurn(): string[] {
    return [...this.#urls.slice(this.#place), ...this.#urls.slice(0, this.#place)]
  }

  /** Calls begin at the next one, unless others have found out already that this one does not serve. */
  leave(url: string): void {
    if (url === this.current) this.#place = (this.#place + 1) % this.#urls.length
  }

  /** Calls begin at this one, which has answered after others did not. */
  stayAt(url: string): void {
    this.#place = Math.max(0, this.#urls.indexOf(url))
  }
}

/** What the tries of one call are made of. */
interface TriesSettings {
  addresses: Addresses
  timing: Timing
  /** The time of the whole call. */
  deadline: Deadline
  /** Whether it can be sent to another address when one does not answer at all. */
  mayGoOn: boolean
}

interface Failures {
  count: number
  /** When the address may be asked again, by the monotonic clock. */
  dueMs: number
}

/** The tries of one call: where the next one goes, and when. Each address is asked at the pace of one that is alone. */
export class Tries {
  readonly #settings: TriesSettings
  readonly #failures = new Map<string, Failures>()
  #url: string
  #bound: string | undefined
  #part: Deadline | undefined
  #isUnderWay = false

  constructor(settings: TriesSettings) {
    this.#settings = settings
    this.#url = settings.addresses.current
  }

  /** Where the last try went. */
  get url(): string {
    return this.#url
  }

  /** How often the address of the last try has failed, that try left out until `failed` is called. */
  get failures(): number {
    return this.#failures.get(this.#url)?.count ?? 0
  }

  /** Whether the next try goes to an address that has not been asked. */
  get goesOn(): boolean {
    return !this.#failures.has(this.#next())
  }

  /**
   * Begins a try. While there are addresses that were not asked, it has its share of the call's time: a machine that is
   * gone says nothing.
   * @returns the time of the try
   */
  begin(): Deadline {
    this.#part?.release()
    this.#part = undefined
    this.#isUnderWay = true
    const { addresses, timing, deadline, mayGoOn } = this.#settings
    this.#url = this.#next()
    const others = addresses.inTurn.filter((url) => url !== this.#url && !this.#failures.has(url)).length
    const nowMs = timing.nowMs()
    const shareMs = (deadline.endsAtMs - nowMs) / (others + 1)
    if (others === 0 || !mayGoOn || !Number.isFinite(shareMs)) return deadline
    const part = startDeadline(shareMs, nowMs, deadline.signal)
    this.#part = part
    return {
      ...part,
      stopClock: () => {
        part.stopClock()
        deadline.stopClock()
      },
      release: () => {
        part.release()
        deadline.release()
      },
    }
  }

  /**
   * The last try failed; its address may be asked again after `delayMs`. One that is away is left for the next.
   * @returns milliseconds until the next try
   */
  failed(delayMs: number, isAway: boolean): number {
    this.#part?.release()
    const { addresses, timing } = this.#settings
    const nowMs = timing.monotonicMs()
    this.#failures.set(this.#url, { count: this.failures + 1, dueMs: nowMs + delayMs })
    this.#bound = isAway ? undefined : this.#url
    // A call whose time ended before it was sent says nothing about an address.
    if (isAway && this.#isUnderWay) addresses.leave(this.#url)
    this.#isUnderWay = false
    return Math.round(Math.max(0, this.#dueMs(this.#next(nowMs)) - nowMs))
  }

  /** The last try was answered. */
  answered(): void {
    if (this.#failures.size > 0) this.#settings.addresses.stayAt(this.#url)
  }

  /**
   * One that was not asked, or else one that may be asked again now; of these the first from where other calls of this
   * client are answered. Otherwise the soonest.
   */
  #next(nowMs = this.#settings.timing.monotonicMs()): string {
    if (this.#bound !== undefined) return this.#bound
    const urls = this.#settings.addresses.inTurn
    const unasked = urls.find((url) => !this.#failures.has(url))
    const due = unasked ?? urls.find((url) => this.#dueMs(url) <= nowMs)
    return due ?? urls.reduce((soonest, url) => (this.#dueMs(url) < this.#dueMs(soonest) ? url : soonest))
  }

  #dueMs(url: string): number {
    return this.#failures.get(url)?.dueMs ?? -Infinity
  }
}

/** Errors name the place in the list, since an address may hold a password. */
function checkedList(list: readonly string[]): string[] {
  if (!Array.isArray(list) || list.length === 0) throw new TypeError('Expected an address of the service')
  if (list.length > ADDRESSES_MAX) throw new TypeError(`Expected at most ${ADDRESSES_MAX} addresses`)
  const parsed = list.map((text, place) => parsedAddress(text, place + 1))
  // A credential that is meant for https must not leave in the clear because somebody keeps that node away.
  if (new Set(parsed.map(({ protocol }) => protocol)).size > 1)
    throw new TypeError('Expected addresses that are all https or all http')
  const urls = parsed.map(({ href }) => withoutSlash(href))
  urls.forEach((url, place) => {
    const first = urls.indexOf(url)
    if (first !== place)
      throw new TypeError(`Expected another address at place ${place + 1}, got that of place ${first + 1}`)
  })
  return urls
}

function parsedAddress(text: string, place: number): URL {
  let url: URL | undefined
  try {
    url = new URL(text)
  } catch {
    // The error of the URL would quote the address.
  }
  const isPlain = url !== undefined && url.username + url.password + url.search + url.hash === ''
  if (url === undefined || !isPlain || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `Expected an http or https address without user, query and fragment at place ${place}`,
    )
  }
  return url
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '')
}
