/*
 * The part of an HTTP library that the server uses. There are two, uWebSockets.js and Node's own. Their
 * answers are the same, byte by byte, except for `Date` and the name of the server
 * (docs/adr/0037-two-http-engines.md).
 */

/** An HTTP library: uWebSockets.js or Node's own. */
export type Engine = 'uws' | 'node'

/** The head of a request. Valid only until the handler returns. */
export interface HttpRequest {
  /** Calls `visit` with each header, in the order of the request, with its name in lower case. */
  forEach(visit: (name: string, value: string) => void): void
  /** A path parameter by its index, still percent-encoded; undefined if the pattern has none there. */
  getParameter(index: number): string | undefined
  /** The text after the first `?`; undefined or empty if there is none. */
  getQuery(): string | undefined
  getUrl(): string
  getCaseSensitiveMethod(): string
}

/**
 * An answer, and the body of its request. Must not be used after `onAborted` was called.
 *
 * A request that arrives before the previous answer is finished closes the connection.
 */
export interface HttpResponse {
  /** Batches everything that `write` writes into one send, as far as it fits. */
  cork(write: () => void): void
  writeStatus(status: string): void
  writeHeader(name: string, value: string): void
  /** Writes a part of a body of unknown length. @returns false if the connection buffers some of it */
  write(part: string | Uint8Array): boolean
  end(body?: string | Uint8Array): void
  /**
   * Ends an answer without a body, or whose body is left out.
   * @param length the value of Content-Length, if it is written
   * @param closes whether the connection is closed after it, as the answer then says
   */
  endWithoutBody(length?: number, closes?: boolean): void
  /**
   * Writes what the connection accepts now of a body of `totalBytes`, and buffers none of the rest.
   * @returns whether it accepted the whole part, and whether this finished the answer
   */
  tryEnd(part: string | Uint8Array, totalBytes: number): [taken: boolean, finished: boolean]
  /** Bytes of the body that the connection has accepted from `write` and `tryEnd`. */
  getWriteOffset(): number
  /** Calls `handler` each time the connection accepts more, with the current offset. */
  onWritable(handler: (offset: number) => boolean): void
  onAborted(handler: () => void): void
  /**
   * Calls `handler` with each part of the body, valid only during the call; `isLast` is true exactly once.
   */
  onData(handler: (part: ArrayBuffer, isLast: boolean) => void): void
  pause(): void
  resume(): void
  close(): void
  /** The remote address: 4 or 16 bytes, or none if the connection is closed. */
  getRemoteAddress(): ArrayBuffer
}

export type HttpHandler = (response: HttpResponse, request: HttpRequest) => void

/** Methods of routes; `any` matches every method that no other handler matches. */
export type HandlerMethod = 'get' | 'head' | 'post' | 'put' | 'patch' | 'del' | 'options' | 'any'

/** Certificate and private key for HTTPS: PEM files. */
export interface TlsFiles {
  certFile: string
  keyFile: string
}

/** Why received bytes are not a valid request. */
export type RequestFault = 'malformed_request' | 'headers_too_large' | 'http_version_not_supported'

export interface ListenerOptions {
  tls: TlsFiles | undefined
  /** Returns the problem document for an invalid request, if the library leaves that answer to the server. */
  problem(code: RequestFault): string
}

export interface HttpListener {
  /**
   * Registers a handler for a method and a path pattern. Segments are words, `:name`, or a final `*`; words
   * take precedence over parameters. A path with a trailing slash is a different path.
   */
  route(method: HandlerMethod, pattern: string, handler: HttpHandler): void
  /** Calls `handler` when a connection is opened (1) and closed (-1). */
  onConnection(handler: (connection: Pick<HttpResponse, 'close'>, change: number) => void): void
  /**
   * Listens.
   * @param shared whether listeners of other threads share the connections
   * @returns the port; undefined if it is in use or the host is not an address of this machine
   */
  listen(host: string, port: number, shared: boolean): Promise<number | undefined>
  /**
   * Joins a port on which a listener of another thread listens, to share its connections.
   * @returns the id of this listener, for the other listener's `shareWith`; undefined if it cannot listen
   */
  takeShare(host: string, port: number): Promise<number | undefined>
  /** Shares the connections with a listener of another thread. */
  shareWith(listenerId: number): void
  /** Accepts no new connections; open ones stay. */
  stopListening(): void
  close(): void
}
