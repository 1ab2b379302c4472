import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { type Backoff, backoffMs } from '../base/backoff.js'
import { type Bare, dated } from './collection.js'
import { NetworkError, ServiceError } from './errors.js'
import type { OpenResponse, QueryValue, Transport } from './http.js'
import type { StreamEvent } from './types.js'

/** Callbacks of a subscription besides the one for events. */
export interface SubscriptionCallbacks {
  /** A connection was opened: the first or a later one. */
  onOpen?: (() => void) | undefined
  /** All stored events have been replayed; later events are live. */
  onCaughtUp?: (() => void) | undefined
  /** The connection was lost because of `cause`; the subscription reconnects from the last cursor. */
  onReconnect?: ((cause: Error) => void) | undefined
  /**
   * The subscription has ended permanently: the service refused it (400, 401, 403, 404…) or a callback threw.
   * Without this callback, the error is uncaught, so that no subscription ends unnoticed.
   */
  onError?: ((error: unknown) => void) | undefined
}

/** Options of every subscription. */
export interface SubscribeOptions extends SubscriptionCallbacks {
  /** HLC, ISO 8601 or Unix milliseconds: stored events from this time are replayed before live ones. */
  since?: string | number | undefined
  /** The `cursor` of an earlier subscription; takes precedence over `since`. */
  lastEventId?: string | undefined
  /** Ends the subscription, as close() does. */
  signal?: AbortSignal | undefined
  /**
   * Milliseconds without data after which a connection counts as lost; the server sends a comment every 15 s.
   */
  idleTimeoutMs?: number | undefined
}

/** Options of a subscription to one agent. */
export interface SubscribeAgentOptions extends SubscribeOptions {
  /** Only events whose body contains this field: a dotted path or a JSON Pointer. */
  filter?: string | undefined
  /** Only events of these record types, or prefixes with `*`; by default all except `sys/*` and `edge/*`. */
  types?: readonly string[] | undefined
}

/** Options of a subscription to all agents. */
export interface SubscribeGlobalOptions extends SubscribeAgentOptions {
  /** Only these agents. */
  agents?: readonly string[] | undefined
}

/** Handles one event; the next one is read after a returned promise has settled. */
export type OnEvent<T> = (event: StreamEvent<T>) => void | Promise<void>

/** The stream of a subscription, and its callbacks. */
export interface SubscriptionSource<T> {
  path: string
  query: Record<string, QueryValue>
  onEvent: OnEvent<T>
  options: SubscribeOptions
}

/** Connecting or reconnecting, open, or closed permanently. */
export type SubscriptionState = 'connecting' | 'open' | 'closed'

/** An open stream, and the function that makes later calls start at another address. */
interface OpenStream extends Pick<OpenResponse, 'leave'> {
  body: ReadableStream<Uint8Array>
}

const IDLE_TIMEOUT_MS = 45_000
const RETRY_MS = 2_000
const RETRY_MOST_MS = 30_000
/** Longer retry times of a server are ignored. */
const RETRY_ACCEPTED_MS = 999_999_999
/**
 * Maximum length of one event in UTF-16 code units; a record's body is at most 1 MiB before it is escaped.
 */
const EVENT_CHARS_MAX = 16_777_216

/**
 * A stream of events over fetch, which unlike EventSource can send an Authorization header. It reconnects
 * from the cursor of the last event (Last-Event-ID) until it is closed or refused.
 */
export class Subscription<T = Record<string, unknown>> {
  readonly #transport: Transport
  readonly #source: SubscriptionSource<T>
  readonly #controller = new AbortController()
  #state: SubscriptionState = 'connecting'
  #cursor: string | undefined
  #retryMs = RETRY_MS
  #failures = 0

  constructor(transport: Transport, source: SubscriptionSource<T>) {
    this.#transport = transport
    this.#source = source
    this.#cursor = source.options.lastEventId
    const { signal } = source.options
    const close = () => this.close()
    signal?.addEventListener('abort', close, { once: true })
    this.#controller.signal.addEventListener('abort', () => signal?.removeEventListener('abort', close))
    if (signal?.aborted) this.close()
    void this.#run()
  }

  /**
   * The cursor after the last handled event: pass it to a later subscription as `lastEventId` to continue
   * there.
   */
  get cursor(): string | undefined {
    return this.#cursor
  }

  /** Whether the stream is connecting, open or closed permanently. */
  get state(): SubscriptionState {
    return this.#state
  }

  /** Closes the stream. No callback is called afterwards. */
  close(): void {
    this.#state = 'closed'
    this.#controller.abort()
  }

  /**
   * A method, so that the compiler does not assume an earlier value: callbacks may close the subscription at
   * any time.
   */
  #isClosed(): boolean {
    return this.#controller.signal.aborted
  }

  async #run(): Promise<void> {
    try {
      while (!this.#isClosed()) {
        const lost = await this.#connectOnce()
        if (this.#isClosed()) return
        this.#state = 'connecting'
        this.#source.options.onReconnect?.(lost)
        await this.#waitBeforeReconnect(lost)
      }
    } catch (error) {
      if (this.#isClosed()) return
      this.close()
      const { onError } = this.#source.options
      if (!onError) throw error
      onError(error)
    }
  }

  /**
   * Opens one connection and reads it to its end.
   * @returns why it was lost. @throws an error that ends the subscription
   */
  async #connectOnce(): Promise<Error> {
    const connection = new AbortController()
    const abort = () => connection.abort()
    this.#controller.signal.addEventListener('abort', abort, { once: true })
    try {
      const opened = await this.#open(connection.signal)
      if (opened instanceof Error) {
        this.#failures += 1
        return opened
      }
      this.#state = 'open'
      this.#source.options.onOpen?.()
      const lost = await this.#readEvents(opened.body, connection)
      if (lost.code === 'timeout') opened.leave()
      return lost
    } finally {
      this.#controller.signal.removeEventListener('abort', abort)
      connection.abort()
    }
  }

  /** Opens the stream. @returns an error that is temporary. @throws any other error */
  async #open(signal: AbortSignal): Promise<OpenStream | ServiceError> {
    let opened: OpenResponse
    try {
      opened = await this.#request(signal)
    } catch (error) {
      if (error instanceof ServiceError && isTemporary(error)) return error
      throw error
    }
    const { response, leave } = opened
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    if (isStream && response.body) return { body: response.body, leave }
    throw new ServiceError(response.status, 'The answer of the service is not a text/event-stream', {
      code: 'invalid_response',
    })
  }

  #request(signal: AbortSignal): Promise<OpenResponse> {
    signal.throwIfAborted()
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (this.#cursor !== undefined) headers['last-event-id'] = this.#cursor
    const { path, query, options } = this.#source
    return this.#transport.open({
      method: 'GET',
      path,
      query: { ...query, since: options.since },
      headers,
      // The subscription handles reconnection itself, with callbacks.
      repeatable: 'elsewhere',
      signal,
    })
  }

  async #readEvents(body: ReadableStream<Uint8Array>, connection: AbortController): Promise<ServiceError> {
    const idleMs = this.#source.options.idleTimeoutMs ?? IDLE_TIMEOUT_MS
    const events: EventSourceMessage[] = []
    const parser = createParser({
      maxBufferSize: EVENT_CHARS_MAX,
      onEvent: (event) => void events.push(event),
      onRetry: (retryMs) => {
        if (retryMs <= RETRY_ACCEPTED_MS) this.#retryMs = retryMs
      },
      onError({ type }) {
        if (type === 'max-buffer-size-exceeded')
          throw new RangeError(`An event of the stream is longer than ${EVENT_CHARS_MAX} characters`)
      },
    })
    const decoder = new TextDecoder()
    const reader = body.getReader()
    while (!this.#isClosed()) {
      const piece = await readPiece(reader, { idleMs, connection })
      if (piece instanceof Error) return piece
      this.#failures = 0
      parser.feed(decoder.decode(piece, { stream: true }))
      for (const event of events.splice(0)) await this.#handle(event)
    }
    return new NetworkError('The subscription is closed')
  }

  async #handle(event: EventSourceMessage): Promise<void> {
    if (this.#isClosed()) return
    if (event.event === 'record' && event.data !== '') {
      await this.#source.onEvent(dated(JSON.parse(event.data) as Bare<StreamEvent<T>>))
    } else if (event.event === 'caught_up') {
      this.#source.options.onCaughtUp?.()
    }
    // Set after the handler: if the handler fails, a later subscription from the cursor gets the event again.
    if (event.id) this.#cursor = event.id
  }

  async #waitBeforeReconnect(lost: Error): Promise<void> {
    const { timing } = this.#transport
    const backoff: Backoff = { firstMs: this.#retryMs, maxMs: Math.max(RETRY_MOST_MS, this.#retryMs) }
    const requestedMs = lost instanceof ServiceError ? (lost.retryAfterMs ?? 0) : 0
    const pauseMs = backoffMs(backoff, Math.max(1, this.#failures), timing.random)
    await timing.pause(Math.max(pauseMs, requestedMs), this.#controller.signal)
  }
}

/**
 * Reads the next bytes.
 * @returns an error if the server ended the stream, the network failed, or no data came in time
 */
async function readPiece(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limit: { idleMs: number; connection: AbortController },
): Promise<Uint8Array | NetworkError> {
  const idleTimeout = new NetworkError(`No data received for ${limit.idleMs} ms`, { code: 'timeout' })
  const timer = setTimeout(() => limit.connection.abort(idleTimeout), limit.idleMs)
  try {
    const { done, value } = await reader.read()
    return done ? new NetworkError('The stream has ended') : value
  } catch (cause) {
    if (limit.connection.signal.reason === idleTimeout) return idleTimeout
    return new NetworkError('The stream was interrupted', { cause })
  } finally {
    clearTimeout(timer)
  }
}

/** Whether a failure is temporary: the network failed, or the server is busy, starting or limits the rate. */
function isTemporary(error: ServiceError): boolean {
  const { status } = error
  return error instanceof NetworkError || status >= 500 || status === 408 || status === 425 || status === 429
}
