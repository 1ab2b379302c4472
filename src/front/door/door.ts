/*
 * The door to the network: what the server uses of an HTTP library. There are two, uWebSockets.js and Node's own; what
 * they answer is the same, byte by byte, but for `Date` and the name of the server (docs/adr/0037-two-http-engines.md).
 */

/** An HTTP library: uWebSockets.js or Node's own. */
export type Engine = 'uws' | 'node'

/** The head of a request. Valid only until the handler returns. */
export interface HttpRequest {
  /** Calls `visit` with each header in the order of the request, its name in lower case. */
  forEach(visit: (name: string, value: string) => void): void
  /** A parameter of the path by its place, as it was sent; undefined when the pattern has none there. */
  getParameter(index: number): string | undefined
  /** What stands behind the first `?`; undefined or empty when there is none. */
  getQuery(): string | undefined
  /** The path, as it was sent. */
  getUrl(): string
  getCaseSensitiveMethod(): string
}

/**
 * An answer, and the body of its request. After `onAborted` was called, nothing of it may be used.
 *
 * A request that arrives before the answer to the one before it is finished closes the connection.
 */
export interface HttpResponse {
  /** Sends what `write` makes in one piece, as far as it goes. */
  cork(write: () => void): void
  writeStatus(status: string): void
  writeHeader(name: string, value: string): void
  /** Writes a part of a body whose length is not said. @returns false when the connection holds bytes of it back */
  write(part: string | Uint8Array): boolean
  end(body?: string | Uint8Array): void
  /** Ends an answer that has no body, or whose body is left out. */
  endWithoutBody(): void
  /**
   * Writes what the connection takes at once of a body of `totalBytes`, and keeps none of it.
   * @returns whether it took all of the part, and whether the answer is finished with it
   */
  tryEnd(part: string | Uint8Array, totalBytes: number): [taken: boolean, finished: boolean]
  /** Bytes of the body that the connection has taken by `write` and `tryEnd`. */
  getWriteOffset(): number
  /** Has `handler` called each time the connection takes more, with the offset that it has got to. */
  onWritable(handler: (offset: number) => boolean): void
  /** Has `handler` called when the connection is closed before the answer is finished. */
  onAborted(handler: () => void): void
  /** Has `handler` called with each part of the body, valid only during the call; `isLast` comes once. */
  onData(handler: (part: ArrayBuffer, isLast: boolean) => void): void
  pause(): void
  resume(): void
  /** Closes the connection at once. */
  close(): void
  /** The address of the other end: 4 or 16 bytes, none when the connection is gone. */
  getRemoteAddress(): ArrayBuffer
}

/** Carries out a request. */
export type HttpHandler = (response: HttpResponse, request: HttpRequest) => void

/** Methods that routes have; `any` is each that no other handler takes. */
export type DoorMethod = 'get' | 'head' | 'post' | 'put' | 'patch' | 'del' | 'options' | 'any'

/** The certificate of a server that is called by HTTPS, and its key: PEM files. */
export interface TlsFiles {
  certFile: string
  keyFile: string
}

/** What bytes can be that are no request. */
export type NoRequest = 'malformed_request' | 'headers_too_large' | 'http_version_not_supported'

/** What a door is opened with. */
export interface DoorOptions {
  /** HTTPS instead of HTTP. */
  tls: TlsFiles | undefined
  /** Makes the problem document that answers bytes which are no request, where the library leaves the answer to us. */
  problem(code: NoRequest): string
}

/** What listens. */
export interface HttpDoor {
  /**
   * Has `handler` called for requests of a method whose path matches a pattern: segments are words, `:name`, or a last
   * `*`. Words win over parameters. A path with a slash at its end is another path.
   */
  route(method: DoorMethod, pattern: string, handler: HttpHandler): void
  /** Has `handler` called when a connection is opened (1) and closed (-1). */
  onConnection(handler: (connection: Pick<HttpResponse, 'close'>, change: number) => void): void
  /**
   * Listens.
   * @param shared whether doors of other threads take a share of the connections
   * @returns the port; undefined when it is not free or the host is no address of this machine
   */
  listen(host: string, port: number, shared: boolean): Promise<number | undefined>
  /**
   * Takes a share of the connections of a port that a door of another thread listens on.
   * @returns what names this door to that one's `shareWith`; undefined when it cannot listen
   */
  takeShare(host: string, port: number): Promise<number | undefined>
  /** Gives a share of the connections to a door of another thread. */
  shareWith(door: number): void
  /** Takes no new connections; open ones go on. */
  stopListening(): void
  /** Closes every connection. */
  close(): void
}
