import { type Addresses, Attempts } from './addresses.js'
import { type Backoff, backoffMs } from '../base/backoff.js'
import { type Deadline, type Timing, retryAfterMs, startDeadline } from './timing.js'
import { NetworkError, ServiceError, responseError } from './errors.js'
import { Pacer } from './pacing.js'

/** Value of a query parameter; undefined leaves the parameter out. */
export type QueryValue = string | number | boolean | undefined

/** The source of the bearer credentials of requests. */
export interface CredentialSource {
  /**
   * The credential for the next attempt; undefined sends none.
   * @param signal aborts only this caller's waiting
   */
  current(signal: AbortSignal): Promise<string | undefined>
  /** Notes that `credential` was refused as expired. @returns whether `current` can give a newer one */
  markExpired(credential: string): boolean
}

/** A request of the client, before address and credential are added. */
export interface Call {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path below the address of the service, with a leading slash. */
  path: string
  query?: Record<string, QueryValue>
  headers?: Record<string, string>
  body?: string | ReadableStream<Uint8Array>
  /** Sent as Idempotency-Key, which makes a write safe to repeat. */
  idempotencyKey?: string
  /** Whether the call is safe to repeat. `elsewhere` sends it once to each address, without a wait. */
  repeatable: boolean | 'elsewhere'
  /** Replaces the credential of the client. */
  credential?: CredentialSource
  signal?: AbortSignal | undefined
  /** Milliseconds for the whole call including retries and waits; replaces the timeout of the client. */
  timeoutMs?: number
}

/** Sends a call and reads its JSON answer. Errors as of `Transport`. */
export type SendJson = <R>(call: Call) => Promise<R>

export interface TransportSettings {
  addresses: Addresses
  fetch: typeof fetch
  credential: CredentialSource
  timeoutMs: number
  timing: Timing
  /** Called before each request that is delayed by the rate limit. */
  warn: (warning: string) => void
}

interface FailedAttempt {
  error: unknown
  retry: boolean
  /** The address does not serve; another address may. */
  isUnavailable?: boolean
  /** The service has not executed the call. */
  isNotExecuted?: boolean
}

interface CompletedAttempt {
  response: Response
  deadline: Deadline
}

/** A response whose body has not been read. */
export interface OpenResponse {
  response: Response
  /** Makes later calls start at the next address, because this one has stopped sending. */
  leave: () => void
}

/** No credential could be obtained. Not retried: the refresh of a session has its own retries. */
class CredentialError extends Error {}

/** fetch requires `duplex` to send a stream, but the DOM types lack it. */
interface StreamingInit extends RequestInit {
  duplex?: 'half'
}

/** How long a call without a time limit is retried, milliseconds. */
const RETRY_MS_MAX = 300_000
/** Codes of refusals after which a renewed token may be accepted; the call was not executed. */
const EXPIRED_CODES = new Set(['token_expired', 'token_revoked'])
const RETRIED_STATUSES = new Set([408, 425, 429, 502, 503, 504])
/** Statuses, among the retried ones, that mean that the address does not serve. */
const UNAVAILABLE_STATUSES = new Set([502, 503, 504])
/** Codes of a server that serves but is busy: another node would not take over its calls. */
const BUSY_CODES = new Set(['overloaded', 'clock_skew'])
/** Error codes of runtimes if no connection was established, so that nothing was sent. */
const UNSENT_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
])
const BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000 }
/** The shortest pause between two attempts, milliseconds. */
const PAUSE_MS_MIN = 20

/**
 * Sends requests with fetch, within the rate limit of the service. Calls that are safe to repeat are retried
 * until their time ends, at the next address if there are several.
 */
export class Transport {
  readonly #settings: TransportSettings
  readonly #pacer: Pacer

  constructor(settings: TransportSettings) {
    this.#settings = settings
    this.#pacer = new Pacer(settings.timing, settings.warn)
  }

  /** The clocks, timers and random numbers of this client. */
  get timing(): Timing {
    return this.#settings.timing
  }

  /** Whether the service has more than one address. */
  get hasSeveralAddresses(): boolean {
    return this.#settings.addresses.hasSeveral
  }

  /** The URL of a path, for requests that the client does not send itself. */
  address(path: string, query: Record<string, QueryValue>): string {
    return this.#settings.addresses.current + path + queryText(query)
  }

  /**
   * Sends a call and reads its JSON answer; the shape of the answer is not checked.
   * @throws ServiceError, NotFoundError, NetworkError; the reason of the signal if it is aborted
   */
  json<T>(call: Call): Promise<T> {
    return this.#run(call, async (response, deadline) =>
      parseAnswer<T>(await wholeText(response, deadline), response),
    )
  }

  /** Sends a call and reads its answer as text. Errors as for `json`. */
  text(call: Call): Promise<string> {
    return this.#run(call, wholeText)
  }

  /**
   * Sends a call and returns the response with the body unread; the time limit covers the headers only.
   * Errors as for `json`.
   */
  open(call: Call): Promise<OpenResponse> {
    return this.#run(call, async (response, deadline, url) => {
      deadline.stopClock()
      return { response, leave: () => this.#settings.addresses.markUnavailable(url) }
    })
  }

  async #run<R>(
    call: Call,
    read: (response: Response, deadline: Deadline, url: string) => Promise<R>,
  ): Promise<R> {
    const { timing, addresses } = this.#settings
    const timeoutMs = call.timeoutMs ?? this.#settings.timeoutMs
    const deadline = startDeadline(timeoutMs, timing.nowMs(), call.signal)
    const retriesEndAtMs = Number.isFinite(timeoutMs) ? deadline.endsAtMs : timing.nowMs() + RETRY_MS_MAX
    const isRepeatable = call.repeatable !== false && !(call.body instanceof ReadableStream)
    const attempts = new Attempts({ addresses, timing, deadline, canUseOtherAddresses: isRepeatable })
    try {
      for (;;) {
        try {
          const completed = await this.#attempt(call, { attempts, deadline })
          const answer = await read(completed.response, completed.deadline, attempts.url)
          attempts.answered()
          return answer
        } catch (cause) {
          const failure = failureOf(cause, deadline)
          const leftMs = retriesEndAtMs - timing.nowMs()
          const delayMs = this.#delayMs(failure, attempts.failures + 1, leftMs)
          const waitMs = attempts.failed(delayMs, failure.isUnavailable === true)
          const isSafe =
            call.repeatable === true || (attempts.hasUntriedAddress && maySendElsewhere(call, failure))
          if (!isSafe || !failure.retry || waitMs >= leftMs) throw failure.error
          if (waitMs > 0) await timing.pause(waitMs, deadline.signal)
        }
      }
    } catch (error) {
      deadline.release()
      throw error
    }
  }

  /** One attempt. Sends the call again if its token was refused as expired and there is a newer one. */
  async #attempt(call: Call, time: { attempts: Attempts; deadline: Deadline }): Promise<CompletedAttempt> {
    const source = call.credential ?? this.#settings.credential
    for (let isRenewed = false; ; isRenewed = true) {
      const credential = await credentialOf(source, time.deadline.signal)
      const completed = await this.#send(call, credential, time)
      const { response } = completed
      if (response.ok) return completed
      const refusal = await refusalOf(response, this.#settings.timing.nowMs())
      const isExpired = refusal.status === 401 && EXPIRED_CODES.has(refusal.code)
      // `expired` is called even if this call cannot be sent again, so that the next call renews the token.
      const isRenewable = isExpired && credential !== undefined && source.markExpired(credential)
      if (!isRenewable || isRenewed || call.body instanceof ReadableStream) throw refusal
    }
  }

  async #send(
    call: Call,
    credential: string | undefined,
    { attempts, deadline: callDeadline }: { attempts: Attempts; deadline: Deadline },
  ): Promise<CompletedAttempt> {
    callDeadline.signal.throwIfAborted()
    const init: StreamingInit = { method: call.method, headers: headersOf(call, credential) }
    if (call.body !== undefined) init.body = call.body
    if (call.body instanceof ReadableStream) init.duplex = 'half'
    await this.#pacer.acquire(callDeadline.signal)
    // The address is chosen after the wait, in which other calls may have found a serving address.
    const deadline = attempts.begin()
    init.signal = deadline.signal
    const url = attempts.url + call.path + queryText(call.query)
    try {
      const response = await unlessUnreachable(this.#settings.fetch(url, init))
      this.#pacer.answered(response.headers)
      return { response, deadline }
    } catch (error) {
      this.#pacer.failed()
      throw error
    }
  }

  /** The pause before the next attempt; short enough for one more attempt in the call's time. */
  #delayMs(failure: FailedAttempt, failures: number, leftMs: number): number {
    const { random } = this.#settings.timing
    const backoff = backoffMs(BACKOFF, failures, random)
    const pauseMs = Math.max(PAUSE_MS_MIN, Math.min(backoff, leftMs / 2))
    const { status = 0, retryAfterMs: requestedMs = 0 } =
      failure.error instanceof ServiceError ? failure.error : {}
    // After a 429, the client waits exactly as long as the server says; the pacer spreads the calls.
    if (status === 429 && requestedMs > 0) return requestedMs
    // When a node of a cluster fails, all its clients get the same Retry-After from the next node at the same
    // moment: jitter.
    return Math.max(
      pauseMs,
      this.hasSeveralAddresses ? Math.round(requestedMs * (1 + random() / 2)) : requestedMs,
    )
  }
}

/** Classifies the thrown value of an attempt: the error to report, and whether another attempt can help. */
function failureOf(cause: unknown, deadline: Deadline): FailedAttempt {
  if (deadline.signal.aborted) {
    const error: unknown = deadline.signal.reason
    return { error, retry: false, isUnavailable: error instanceof NetworkError }
  }
  if (cause instanceof CredentialError) return { error: cause.cause, retry: false }
  if (cause instanceof NetworkError)
    return { error: cause, retry: true, isUnavailable: true, isNotExecuted: isUnsent(cause) }
  if (cause instanceof ServiceError) {
    const { status, code } = cause
    const isUnavailable = UNAVAILABLE_STATUSES.has(status) && !BUSY_CODES.has(code)
    const retry = RETRIED_STATUSES.has(status)
    return { error: cause, retry, isUnavailable, isNotExecuted: code === 'unavailable' }
  }
  return { error: cause, retry: false }
}

/** Whether a call that is not repeatable may go to an untried address. A stream can be read only once. */
function maySendElsewhere(call: Call, failure: FailedAttempt): boolean {
  return (
    failure.isUnavailable === true &&
    !(call.body instanceof ReadableStream) &&
    (call.repeatable === 'elsewhere' || failure.isNotExecuted === true)
  )
}

/** Whether nothing was sent. The cause of fetch's error has the system's code; in Bun, the error has it. */
function isUnsent({ cause }: NetworkError): boolean {
  const causes = [cause, cause instanceof Error ? cause.cause : undefined]
  return causes.some(
    (error) => error instanceof Error && 'code' in error && UNSENT_CODES.has(String(error.code)),
  )
}

async function credentialOf(source: CredentialSource, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await source.current(signal)
  } catch (cause) {
    throw new CredentialError('No credential', { cause })
  }
}

/**
 * Turns network failures into NetworkError. Runtimes reject with different errors, so every rejection of
 * `exchange` counts as one; errors of the caller's getToken do not pass through here.
 */
async function unlessUnreachable<R>(exchange: Promise<R>): Promise<R> {
  try {
    return await exchange
  } catch (cause) {
    throw new NetworkError('The service could not be reached', { cause })
  }
}

async function wholeText(response: Response, deadline: Deadline): Promise<string> {
  const text = await unlessUnreachable(response.text())
  deadline.release()
  return text
}

function parseAnswer<T>(text: string, response: Response): T {
  try {
    // The client has no schemas, so the shape of the answer is not checked.
    return JSON.parse(text) as T
  } catch {
    // The parser's error is not the cause, because it quotes the answer, which may contain tokens.
    const details = { code: 'invalid_response', requestId: requestIdOf(response) }
    throw new ServiceError(response.status, 'The answer of the service is not JSON', details)
  }
}

const headerValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

function headersOf(call: Call, credential: string | undefined): Record<string, string> {
  const headers: Record<string, string> = { accept: 'application/json', ...call.headers }
  if (typeof call.body === 'string' && headers['content-type'] === undefined) {
    headers['content-type'] = 'application/json'
  }
  if (credential !== undefined) headers['authorization'] = `Bearer ${checkedCredential(credential)}`
  if (call.idempotencyKey !== undefined) headers['idempotency-key'] = call.idempotencyKey
  // fetch trims blanks, and accepts characters beyond ASCII, which the service refuses.
  const [odd] = Object.entries(headers).find(([, value]) => !headerValue.test(value)) ?? []
  if (odd !== undefined)
    throw new TypeError(`Expected visible ASCII characters in ${odd}, with blanks only between them`)
  return headers
}

/** fetch would quote a credential that is not valid in a header in its error; this error does not. */
function checkedCredential(credential: string): string {
  const text = credential.trim()
  if (/^[\x21-\x7e]+$/.test(text)) return text
  throw new TypeError('Expected a credential of visible ASCII characters')
}

function queryText(query: Record<string, QueryValue> | undefined): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (typeof value === 'number' && !Number.isFinite(value))
      throw new TypeError(`Expected a finite number as ${name}, got ${value}`)
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
  return responseError(response.status, message ?? `The service responded with status ${response.status}`, {
    code,
    requestId: stringOf(problem['request_id']) ?? requestIdOf(response),
    retryAfterMs: retryAfterMs(response.headers.get('retry-after'), nowMs),
    problem,
  })
}

function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The members of a JSON object; none if the text is anything else, such as a proxy's error page. */
function parsedObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

/**
 * Encodes one segment of a path. `.` and `..` are refused: they would be resolved and reach another route.
 * @throws TypeError for `.`, `..` and the empty text
 */
export function pathSegment(text: string): string {
  if (text === '' || text === '.' || text === '..')
    throw new TypeError(`Expected a name or hash, got "${text}"`)
  // Names of an organism's agents contain colons, which need no escape in a path (RFC 3986, 3.3).
  return encodeURIComponent(text).replaceAll('%3A', ':')
}
