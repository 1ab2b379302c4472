import { type Backoff, backoffMs } from './backoff.js'
import { type Bare, dated } from './collection.js'
import { NetworkError, ServiceError } from './errors.js'
import type { OpenAnswer, QueryValue, Transport } from './http.js'
import { EventStreamParser, type ServerSentEvent } from './sse.js'
import type { StreamEvent } from './types.js'

/** What a subscription reports besides events. */
export interface SubscriptionCallbacks {
  /** A connection is open: the first or a later one. */
  onOpen?: (() => void) | undefined
  /** Stored events have been replayed; from now on events are live. */
  onCaughtUp?: (() => void) | undefined
  /** The connection was lost and is opened again, from the last cursor; `cause` says why. */
  onReconnect?: ((cause: Error) => void) | undefined
  /**
   * The subscription has ended for good: the service refused it (400, 401, 403, 404…) or a callback threw. Without this
   * callback the error is left uncaught, so that no stream ends unnoticed.
   */
  onError?: ((error: unknown) => void) | undefined
}

/** Options of every subscription. */
export interface SubscribeOptions extends SubscriptionCallbacks {
  /** HLC, ISO 8601 or Unix milliseconds to replay from before going live. */
  since?: string | number | undefined
  /** The `cursor` of an earlier subscription; takes precedence over `since`. */
  lastEventId?: string | undefined
  /** Ends the subscription, as close() does. */
  signal?: AbortSignal | undefined
  /** Milliseconds of silence after which a connection counts as dead; the server comments every 15 s. */
  idleTimeoutMs?: number | undefined
}

/** Options of a subscription to one agent. */
export interface SubscribeAgentOptions extends SubscribeOptions {
  /** Only events whose body contains this field: names with dots between them, or a JSON Pointer. */
  filter?: string | undefined
}

/** Options of a subscription to all agents. */
export interface SubscribeGlobalOptions extends SubscribeOptions {
  /** Only these agents. */
  agents?: readonly string[] | undefined
  /** Only events whose body contains this field: names with dots between them, or a JSON Pointer. */
  filter?: string | undefined
}

/** Takes events, one at a time: the next is read once a returned promise has settled. */
export type OnEvent<T> = (event: StreamEvent<T>) => void | Promise<void>

/** Where a subscription reads, and its listeners. */
export interface SubscriptionSource<T> {
  path: string
  query: Record<string, QueryValue>
  onEvent: OnEvent<T>
  options: SubscribeOptions
}

/** Connecting or reconnecting, open, or closed for good. */
export type SubscriptionState = 'connecting' | 'open' | 'closed'

/** A stream that is open, and how its address is left. */
interface OpenStream extends Pick<OpenAnswer, 'leave'> {
  body: ReadableStream<Uint8Array>
}

const IDLE_TIMEOUT_MS = 45_000
const RETRY_MS = 2_000
const RETRY_MOST_MS = 30_000

/**
 * A stream of events over fetch, which can send the Authorization header that EventSource cannot. It reconnects by
 * itself from the last event's cursor (Last-Event-ID), until it is closed or refused.
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

  /** Cursor after the last event that was handled: a later subscription continues from it with `lastEventId`. */
  get cursor(): string | undefined {
    return this.#cursor
  }

  /** Whether the stream is connecting, open or closed for good. */
  get state(): SubscriptionState {
    return this.#state
  }

  /** Ends the stream. No callback is called afterwards. */
  close(): void {
    this.#state = 'closed'
    this.#controller.abort()
  }

  /** A method, not a comparison: callbacks close the subscription while its own methods run. */
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
   * Reads one connection for as long as it lasts. Returns why it was lost; throws an error that ends the subscription.
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

  /** Opens the stream. Returns an error that may pass; throws any other. */
  async #open(signal: AbortSignal): Promise<OpenStream | ServiceError> {
    let opened: OpenAnswer
    try {
      opened = await this.#request(signal)
    } catch (error) {
      if (error instanceof ServiceError && isPassing(error)) return error
      throw error
    }
    const { response, leave } = opened
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    if (isStream && response.body) return { body: response.body, leave }
    throw new ServiceError(response.status, 'Expected a text/event-stream', { code: 'invalid_response' })
  }

  #request(signal: AbortSignal): Promise<OpenAnswer> {
    signal.throwIfAborted()
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (this.#cursor !== undefined) headers['last-event-id'] = this.#cursor
    const { path, query, options } = this.#source
    return this.#transport.open({
      method: 'GET',
      path,
      query: { ...query, since: options.since },
      headers,
      // The subscription reconnects by itself, with callbacks.
      repeatable: 'elsewhere',
      signal,
    })
  }

  async #readEvents(body: ReadableStream<Uint8Array>, connection: AbortController): Promise<ServiceError> {
    const idleMs = this.#source.options.idleTimeoutMs ?? IDLE_TIMEOUT_MS
    const parser = new EventStreamParser()
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    const reader = body.getReader()
    while (!this.#isClosed()) {
      const piece = await readPiece(reader, { idleMs, connection })
      if (piece instanceof Error) return piece
      this.#failures = 0
      const events = parser.push(decoder.decode(piece, { stream: true }))
      this.#retryMs = parser.retryMs ?? this.#retryMs
      for (const event of events) await this.#handle(event)
    }
    return new NetworkError('The subscription is closed')
  }

  async #handle(event: ServerSentEvent): Promise<void> {
    if (this.#isClosed()) return
    if (event.event === 'record' && event.data !== '') {
      await this.#source.onEvent(dated(JSON.parse(event.data) as Bare<StreamEvent<T>>))
    } else if (event.event === 'caught_up') {
      this.#source.options.onCaughtUp?.()
    }
    // Set only now: whoever continues from the cursor gets an event again whose handler failed.
    if (event.id !== '') this.#cursor = event.id
  }

  async #waitBeforeReconnect(lost: Error): Promise<void> {
    const { timing } = this.#transport
    const backoff: Backoff = { firstMs: this.#retryMs, mostMs: Math.max(RETRY_MOST_MS, this.#retryMs) }
    const askedMs = lost instanceof ServiceError ? (lost.retryAfterMs ?? 0) : 0
    const ownMs = backoffMs(backoff, Math.max(1, this.#failures), timing.random)
    await timing.pause(Math.max(ownMs, askedMs), this.#controller.signal)
  }
}

/**
 * The next bytes, or why there are none: the server ended the stream, the network failed, or nothing came for too long.
 */
async function readPiece(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limit: { idleMs: number; connection: AbortController },
): Promise<Uint8Array | NetworkError> {
  const silence = new NetworkError(`Nothing was heard for ${limit.idleMs} ms`, { code: 'timeout' })
  const timer = setTimeout(() => limit.connection.abort(silence), limit.idleMs)
  try {
    const { done, value } = await reader.read()
    return done ? new NetworkError('The stream has ended') : value
  } catch (cause) {
    if (limit.connection.signal.reason === silence) return silence
    return new NetworkError('The stream was cut off', { cause })
  } finally {
    clearTimeout(timer)
  }
}

/** Whether a failure may pass: the network failed, or the server is busy, starting or asks to wait. */
function isPassing(error: ServiceError): boolean {
  const { status } = error
  return error instanceof NetworkError || status >= 500 || status === 408 || status === 425 || status === 429
}
