import { type Addresses, Tries } from './addresses.js'
import {
  type Backoff,
  type Deadline,
  type Timing,
  backoffMs,
  retryAfterMs,
  startDeadline,
} from './backoff.js'
import { NetworkError, ServiceError, answerError } from './errors.js'
import { Pacer } from './pacing.js'

/** Value of a query parameter; undefined leaves the parameter out. */
export type QueryValue = string | number | boolean | undefined

/** Gives requests their bearer credential. */
export interface CredentialSource {
  /**
   * The credential of the next try; undefined sends none.
   * @param signal ends only this caller's waiting
   */
  current(signal: AbortSignal): Promise<string | undefined>
  /** Takes note that the service refused `credential` as expired. @returns whether `current` can give a newer one */
  expired(credential: string): boolean
}

/** One request of the client, before address and credential are added. */
export interface Call {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path from the service's address, with a leading slash. */
  path: string
  query?: Record<string, QueryValue>
  headers?: Record<string, string>
  body?: string | ReadableStream<Uint8Array>
  /** Sent as Idempotency-Key, which makes a write safe to send again. */
  idempotencyKey?: string
  /** Whether sending it again can do no harm. `elsewhere` sends it to each address once, and waits for none. */
  repeatable: boolean | 'elsewhere'
  /** The source of its credential, in place of the client's. */
  credential?: CredentialSource
  signal?: AbortSignal | undefined
  /** Milliseconds for the whole call, tries and waits included, in place of the client's. */
  timeoutMs?: number
}

/** What the transport needs to know. */
export interface TransportSettings {
  addresses: Addresses
  fetch: typeof fetch
  credential: CredentialSource
  timeoutMs: number
  timing: Timing
}

interface FailedTry {
  error: unknown
  retry: boolean
  /** Nobody serves at the address, as far as can be told: another one may do better. */
  isAway?: boolean
  /** The service did nothing. */
  isUndone?: boolean
}

/** A try that was answered. */
interface AnsweredTry {
  response: Response
  deadline: Deadline
}

/** An answer whose body is unread. */
export interface OpenAnswer {
  response: Response
  /** Has later calls begin at the next address, as this one has fallen silent. */
  leave: () => void
}

/** There is no credential. It is not tried again: the refresh of a session has had tries of its own. */
class CredentialError extends Error {}

/** fetch requires `duplex` when a stream is sent, but the DOM's types lack it. */
interface StreamingInit extends RequestInit {
  duplex?: 'half'
}

/** How long a call without a time limit is retried, milliseconds. */
const RETRY_MS_MAX = 300_000
/** Codes of refusals after which nothing was done and a newer token may be accepted. */
const RENEWED_CODES = new Set(['token_expired', 'token_revoked'])
const RETRIED_STATUSES = new Set([408, 425, 429, 502, 503, 504])
/** Of those, the ones that say that nobody serves at an address. */
const AWAY_STATUSES = new Set([502, 503, 504])
/** Codes of a server that serves and is busy: others would not take its calls. */
const BUSY_CODES = new Set(['overloaded', 'clock_skew'])
/** What runtimes say when no connection came about, so that nothing was sent. */
const UNSENT_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
])
const BACKOFF: Backoff = { firstMs: 100, mostMs: 5_000 }
/** The shortest pause before another try, milliseconds. */
const PAUSE_MS_MIN = 20

/**
 * Sends requests with the platform's fetch, at the pace that the service asks for. Calls that are safe to repeat are
 * retried until their time is over, at the next address where there is one.
 */
export class Transport {
  readonly #settings: TransportSettings
  readonly #pacer: Pacer

  constructor(settings: TransportSettings) {
    this.#settings = settings
    this.#pacer = new Pacer(settings.timing)
  }

  /** Time and chance of this client. */
  get timing(): Timing {
    return this.#settings.timing
  }

  /** Whether the service has more than one address. */
  get hasOthers(): boolean {
    return this.#settings.addresses.areSeveral
  }

  /** The whole address of a path, for requests that are not calls. */
  address(path: string, query: Record<string, QueryValue>): string {
    return this.#settings.addresses.current + path + queryText(query)
  }

  /**
   * Sends a call and reads its JSON answer, which is assumed to have the shape that the service promises.
   * @throws ServiceError, NotFoundError, NetworkError; the signal's reason when aborted
   */
  json<T>(call: Call): Promise<T> {
    return this.#run(call, async (response, deadline) => {
      const text = await unlessUnreachable(response.text())
      deadline.release()
      return parseAnswer<T>(text, response)
    })
  }

  /** Sends a call and reads its answer as text. Errors as for `json`. */
  text(call: Call): Promise<string> {
    return this.#run(call, async (response, deadline) => {
      const text = await unlessUnreachable(response.text())
      deadline.release()
      return text
    })
  }

  /**
   * Sends a call and gives its answer with the body unread; the time limit ends with the answer's headers.
   * Errors as for `json`.
   */
  open(call: Call): Promise<OpenAnswer> {
    return this.#run(call, async (response, deadline, url) => {
      deadline.stopClock()
      return { response, leave: () => this.#settings.addresses.leave(url) }
    })
  }

  async #run<R>(
    call: Call,
    read: (response: Response, deadline: Deadline, url: string) => Promise<R>,
  ): Promise<R> {
    const { timing, addresses } = this.#settings
    const timeoutMs = call.timeoutMs ?? this.#settings.timeoutMs
    const deadline = startDeadline(timeoutMs, timing.nowMs(), call.signal)
    const triesEndAtMs = Number.isFinite(timeoutMs) ? deadline.endsAtMs : timing.nowMs() + RETRY_MS_MAX
    const mayGoOn = call.repeatable !== false && !(call.body instanceof ReadableStream)
    const tries = new Tries({ addresses, timing, deadline, mayGoOn })
    try {
      for (;;) {
        try {
          const sent = await this.#attempt(call, { tries, deadline })
          const answer = await read(sent.response, sent.deadline, tries.url)
          tries.answered()
          return answer
        } catch (cause) {
          const failure = failureOf(cause, deadline)
          const leftMs = triesEndAtMs - timing.nowMs()
          const delayMs = this.#delayMs(failure, tries.failures + 1, leftMs)
          const waitMs = tries.failed(delayMs, failure.isAway === true)
          const isSafe = call.repeatable === true || (tries.goesOn && maySendElsewhere(call, failure))
          if (!isSafe || !failure.retry || waitMs >= leftMs) throw failure.error
          if (waitMs > 0) await timing.pause(waitMs, deadline.signal)
        }
      }
    } catch (error) {
      deadline.release()
      throw error
    }
  }

  /** One try; it is sent once more if the service says that the token has expired and the session has a newer one. */
  async #attempt(call: Call, time: { tries: Tries; deadline: Deadline }): Promise<AnsweredTry> {
    const source = call.credential ?? this.#settings.credential
    for (let isRenewed = false; ; isRenewed = true) {
      const credential = await credentialOf(source, time.deadline.signal)
      const sent = await this.#send(call, credential, time)
      const { response } = sent
      if (response.ok) return sent
      const refusal = await refusalOf(response, this.#settings.timing.nowMs())
      const isExpired = refusal.status === 401 && RENEWED_CODES.has(refusal.code)
      // Called even if the call cannot be sent again, so that the next one renews the token.
      const isRenewable = isExpired && credential !== undefined && source.expired(credential)
      if (!isRenewable || isRenewed || call.body instanceof ReadableStream) throw refusal
    }
  }

  async #send(
    call: Call,
    credential: string | undefined,
    { tries, deadline: whole }: { tries: Tries; deadline: Deadline },
  ): Promise<AnsweredTry> {
    whole.signal.throwIfAborted()
    const init: StreamingInit = { method: call.method, headers: headersOf(call, credential) }
    if (call.body !== undefined) init.body = call.body
    if (call.body instanceof ReadableStream) init.duplex = 'half'
    await this.#pacer.turn(whole.signal)
    // Only now: while it waited for its turn, others may have found the address that serves.
    const deadline = tries.begin()
    init.signal = deadline.signal
    const url = tries.url + call.path + queryText(call.query)
    try {
      const response = await unlessUnreachable(this.#settings.fetch(url, init))
      this.#pacer.answered(response.headers)
      return { response, deadline }
    } catch (error) {
      this.#pacer.failed()
      throw error
    }
  }

  /** The pause before the next try. Near the end of the call's time it is shorter, so that there is one more try. */
  #delayMs(failure: FailedTry, failures: number, leftMs: number): number {
    const { random } = this.#settings.timing
    const backoff = backoffMs(BACKOFF, failures, random)
    const ownMs = Math.max(PAUSE_MS_MIN, Math.min(backoff, leftMs / 2))
    const { status = 0, retryAfterMs: askedMs = 0 } =
      failure.error instanceof ServiceError ? failure.error : {}
    // After a 429 the client waits as long as the server says; the pacer spreads the calls.
    if (status === 429 && askedMs > 0) return askedMs
    // Whoever loses a node of a cluster loses it at one moment with all others, and the next node asks all for as long.
    return Math.max(ownMs, this.hasOthers ? Math.round(askedMs * (1 + random() / 2)) : askedMs)
  }
}

/** What a thrown value of one try means: the error to show, and whether another try can help. */
function failureOf(cause: unknown, deadline: Deadline): FailedTry {
  if (deadline.signal.aborted) {
    const error: unknown = deadline.signal.reason
    return { error, retry: false, isAway: error instanceof NetworkError }
  }
  if (cause instanceof CredentialError) return { error: cause.cause, retry: false }
  if (cause instanceof NetworkError)
    return { error: cause, retry: true, isAway: true, isUndone: isUnsent(cause) }
  if (cause instanceof ServiceError) {
    const { status, code } = cause
    const isAway = AWAY_STATUSES.has(status) && !BUSY_CODES.has(code)
    return { error: cause, retry: RETRIED_STATUSES.has(status), isAway, isUndone: code === 'unavailable' }
  }
  return { error: cause, retry: false }
}

/** Whether a call that is not repeated may go to an address that was not asked. A stream can be read once. */
function maySendElsewhere(call: Call, failure: FailedTry): boolean {
  return (
    failure.isAway === true &&
    !(call.body instanceof ReadableStream) &&
    (call.repeatable === 'elsewhere' || failure.isUndone === true)
  )
}

/** fetch rejects with an error whose cause is that of the system; Bun's has the code itself. */
function isUnsent({ cause }: NetworkError): boolean {
  const causes = [cause, cause instanceof Error ? cause.cause : undefined]
  return causes.some((one) => one instanceof Error && 'code' in one && UNSENT_CODES.has(String(one.code)))
}

async function credentialOf(source: CredentialSource, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await source.current(signal)
  } catch (cause) {
    throw new CredentialError('No credential', { cause })
  }
}

/**
 * Turns failures of the network into one error. Runtimes reject with different errors here, so the place where it was
 * thrown decides; an error of the caller's getToken is left as it is.
 */
async function unlessUnreachable<R>(exchange: Promise<R>): Promise<R> {
  try {
    return await exchange
  } catch (cause) {
    throw new NetworkError('The service could not be reached', { cause })
  }
}

function parseAnswer<T>(text: string, response: Response): T {
  try {
    // The answer is not checked: the client has no schemas.
    return JSON.parse(text) as T
  } catch {
    // Without the parser's error as its cause, because that quotes the answer, which may contain tokens.
    const details = { code: 'invalid_response', requestId: requestIdOf(response) }
    throw new ServiceError(response.status, 'Expected a JSON answer', details)
  }
}

function headersOf(call: Call, credential: string | undefined): Record<string, string> {
  const headers: Record<string, string> = { accept: 'application/json', ...call.headers }
  if (typeof call.body === 'string' && headers['content-type'] === undefined) {
    headers['content-type'] = 'application/json'
  }
  if (credential !== undefined) headers['authorization'] = `Bearer ${checkedCredential(credential)}`
  if (call.idempotencyKey !== undefined) headers['idempotency-key'] = call.idempotencyKey
  return headers
}

/** For a credential that is not valid in a header, fetch would quote it in its error; this error does not. */
function checkedCredential(credential: string): string {
  const text = credential.trim()
  if (/^[\x21-\x7e]+$/.test(text)) return text
  throw new TypeError('Expected a credential of visible ASCII characters')
}

function queryText(query: Record<string, QueryValue> | undefined): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parameters.set(name, String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

function requestIdOf(response: Response): string | undefined {
  return response.headers.get('x-request-id') ?? undefined
}

async function refusalOf(response: Response, nowMs: number): Promise<ServiceError> {
  const problem = parsedObject(await unlessUnreachable(response.text()))
  const code = stringOf(problem['code']) ?? `http_${response.status}`
  const message = stringOf(problem['message']) ?? stringOf(problem['detail'])
  return answerError(response.status, message ?? `The service answered ${response.status}`, {
    code,
    requestId: stringOf(problem['request_id']) ?? requestIdOf(response),
    retryAfterMs: retryAfterMs(response.headers.get('retry-after'), nowMs),
    problem,
  })
}

function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The members of a JSON object; none for any other text, such as a proxy's error page. */
function parsedObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

/**
 * A new idempotency key. Not crypto.randomUUID(), which browsers leave out on pages of plain http.
 */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * One segment of a path. `.` and `..` are refused, because they would be resolved and reach another route.
 * @throws TypeError for those and the empty text
 */
export function pathSegment(text: string): string {
  if (text === '' || text === '.' || text === '..')
    throw new TypeError(`Expected a name or hash, got "${text}"`)
  // The names of an organism's agents contain colons, which a path may contain unescaped (RFC 3986, 3.3).
  return encodeURIComponent(text).replaceAll('%3A', ':')
}
