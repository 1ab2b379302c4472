import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { addRoute, createRouter, findRoute } from 'rou3'
import { assert } from '../../base/assert.js'
import { errorCatalogue } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { readPem } from '../../base/pem.js'
import type {
  HandlerMethod,
  ListenerOptions,
  HttpListener,
  HttpHandler,
  HttpRequest,
  RequestFault,
  TlsFiles,
} from './http-listener.js'
import { NodeResponse } from './node-response.js'

/** A handler, and the indexes of the parameters among the segments of its path. */
interface Match {
  handler: HttpHandler
  parameterIndexes: readonly number[]
}

/**
 * Creates a listener of node:http or node:https.
 * @throws Error if the certificate cannot be read
 */
export function nodeListener({ tls, problem }: ListenerOptions): HttpListener {
  const router = createRouter<Match>()
  const others = new Map<string, HttpHandler>()
  const server = serverOf(tls)
  const busy = new WeakMap<Duplex, NodeResponse | 'over'>()
  const handlers = { router, others, busy, waiting: new WeakMap(), problem }
  const handle = (request: IncomingMessage, reply: ServerResponse) => handleInOrder(handlers, request, reply)
  server.on('request', handle)
  // Expectations other than `100-continue` are ignored, as in uWebSockets.js.
  server.on('checkExpectation', handle)
  server.on('connect', (_request, socket) => answerAndClose(socket, 'http_version_not_supported', problem))
  server.on('clientError', (error, socket) => {
    const response = busy.get(socket)
    // An error cannot be sent in the middle of an answer, nor before an earlier answer.
    if (response === 'over' || response?.begun === true || response?.wholeBody === true || !socket.writable)
      socket.destroy()
    else answerAndClose(socket, parserFault(error), problem)
  })
  return {
    route(method, pattern, handler) {
      const name = methodNames[method]
      const parameterIndexes = pattern
        .split('/')
        .flatMap((part, index) => (part.startsWith(':') ? [index] : []))
      if (pattern === '/*') others.set(name, handler)
      else addRoute(router, name, pattern, { handler, parameterIndexes })
    },
    onConnection(handler) {
      server.on('connection', (socket) => {
        socket.once('close', () => handler({ close: () => {} }, -1))
        handler({ close: () => socket.destroy() }, 1)
      })
    },
    listen: (host, port, shared) => listenOn(server, { host, port, reusePort: shared }),
    // The operating system distributes the connections.
    takeShare: (host, port) => listenOn(server, { host, port, reusePort: true }),
    shareWith: () => {},
    stopListening: () => server.close(),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const methodNames: Readonly<Record<HandlerMethod, string>> = {
  get: 'GET',
  head: 'HEAD',
  post: 'POST',
  put: 'PUT',
  patch: 'PATCH',
  del: 'DELETE',
  options: 'OPTIONS',
  any: '',
}

function serverOf(tls: TlsFiles | undefined): Server {
  const options = {
    maxHeaderSize: limits.headerBlockBytesMax,
    headersTimeout: limits.connectionIdleMs,
    keepAliveTimeout: limits.connectionIdleMs,
    connectionsCheckingInterval: limits.connectionsCheckMs,
    // No limit on the whole body, as long as it keeps arriving (node-response.ts).
    requestTimeout: 0,
    requireHostHeader: false,
  }
  const server =
    tls === undefined
      ? createServer(options)
      : createTlsServer({ ...options, cert: readPem(tls.certFile).text, key: readPem(tls.keyFile).text })
  // Otherwise Node silently drops headers above a number.
  server.maxHeadersCount = 0
  return server
}

interface Handlers {
  router: ReturnType<typeof createRouter<Match>>
  /** By method, for paths without a route; the entry of the empty name is for all other methods. */
  others: ReadonlyMap<string, HttpHandler>
  /** Connections with an unfinished answer, or that accept no more requests. */
  busy: WeakMap<Duplex, NodeResponse | 'over'>
  /** How many requests of a connection are waiting for the end of this turn of the event loop. */
  waiting: WeakMap<Duplex, number>
  problem: ListenerOptions['problem']
}

/**
 * Handles a request, or closes its connection if the previous request is not answered yet. Node's parser
 * emits requests that arrived together synchronously; an answer that waits for nothing is sent by the end of
 * this turn of the event loop. A connection with too many waiting requests is closed as well.
 */
function handleInOrder(handlers: Handlers, request: IncomingMessage, reply: ServerResponse): void {
  const { socket } = request
  const { busy, waiting } = handlers
  const waitingCount = waiting.get(socket) ?? 0
  if (waitingCount === 0 && !busy.has(socket)) {
    handleRequest(handlers, request, reply)
    return
  }
  if (waitingCount >= limits.requestsAheadMax) {
    socket.destroy()
    stopParsing(socket)
    return
  }
  waiting.set(socket, waitingCount + 1)
  setImmediate(() => {
    waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
    if (busy.has(socket)) socket.destroy()
    else if (!socket.destroyed) handleRequest(handlers, request, reply)
  })
}

/**
 * Makes Node's parser skip the rest of what was read, as if the next request were for another protocol.
 * Otherwise it parses thousands of requests, which takes 50 ms and more, although their connection is closed.
 * The parser of a socket is an undocumented part of Node; without it, the rest only takes longer.
 */
function stopParsing(socket: object): void {
  if (hasParser(socket)) socket.parser.onIncoming = () => 2
}

function hasParser(socket: object): socket is { parser: { onIncoming: unknown } } {
  return (
    'parser' in socket &&
    typeof socket.parser === 'object' &&
    socket.parser !== null &&
    'onIncoming' in socket.parser
  )
}

function handleRequest(
  { router, others, busy, problem }: Handlers,
  request: IncomingMessage,
  reply: ServerResponse,
): void {
  const { socket, method = '' } = request
  const target = targetOf(request)
  if (typeof target === 'string') {
    // Requests that arrived together with this one are still parsed.
    busy.set(socket, 'over')
    answerAndClose(socket, target, problem)
    return
  }
  const { path } = target
  const match = path.length > 1 && path.endsWith('/') ? undefined : findRoute(router, method, path)?.data
  const handler = match?.handler ?? others.get(method) ?? others.get('')
  assert(handler !== undefined, 'there is a handler for paths without a route')
  const response = new NodeResponse(request, reply, { finished: () => busy.delete(socket) })
  busy.set(socket, response)
  handler(response, headOf(request, target, match))
}

/** The target of a request (RFC 9112, 3.2). */
interface RequestTarget {
  path: string
  query: string
  /** In absolute form: the authority, which replaces the Host header (RFC 9112, 3.2.2). */
  authority: string | undefined
}

/** The target, or why it is refused. Refuses what uWebSockets.js refuses and node:http lets through. */
function targetOf({ url = '', method, httpVersion, headers }: IncomingMessage): RequestTarget | RequestFault {
  if (httpVersion !== '1.1') return 'http_version_not_supported'
  if (headers.host === undefined) return 'malformed_request'
  const [start = '', authority] = url.startsWith('/') ? [] : (/^https?:\/\/([^/?#]+)/i.exec(url) ?? [])
  const local = start === '' ? url : url.slice(start.length)
  if (!local.startsWith('/') && start === '' && !(local === '*' && method === 'OPTIONS'))
    return 'http_version_not_supported'
  const queryAt = local.indexOf('?')
  const path = queryAt < 0 ? local : local.slice(0, queryAt)
  return { path: path || '/', query: queryAt < 0 ? '' : local.slice(queryAt + 1), authority }
}

function headOf(
  { rawHeaders, method = '' }: IncomingMessage,
  { path, query, authority }: RequestTarget,
  match: Match | undefined,
): HttpRequest {
  return {
    forEach(visit) {
      for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
        const name = (rawHeaders[at] ?? '').toLowerCase()
        const value = rawHeaders[at + 1] ?? ''
        visit(name, name === 'host' ? (authority ?? value) : value)
      }
    },
    getParameter: (index) => path.split('/')[match?.parameterIndexes[index] ?? -1],
    getQuery: () => query,
    getUrl: () => path,
    getCaseSensitiveMethod: () => method,
  }
}

/** The address to listen on, and whether several listeners share the port. */
interface ListenAddress {
  host: string
  port: number
  reusePort: boolean
}

function listenOn(server: Server, listenAddress: ListenAddress): Promise<number | undefined> {
  return new Promise((resolve) => {
    // Later errors concern a connection that the system could not accept, so it cannot be answered.
    server.on('error', () => resolve(undefined))
    server.listen({ ...listenAddress, backlog: limits.listenBacklog }, () => {
      const address = server.address()
      resolve(typeof address === 'object' ? address?.port : undefined)
    })
  })
}

/** The error to answer to invalid bytes; undefined if the connection is only closed. */
function parserFault(error: Error & { code?: string }): RequestFault | undefined {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (error.code === 'HPE_INVALID_VERSION') return 'http_version_not_supported'
  return error.code?.startsWith('HPE_') === true ? 'malformed_request' : undefined
}

/** Sends an error on a connection without a request, and closes it. */
function answerAndClose(
  socket: Duplex,
  code: RequestFault | undefined,
  problem: ListenerOptions['problem'],
): void {
  if (code === undefined) {
    socket.destroy()
    return
  }
  const { status } = errorCatalogue[code]
  socket.once('finish', () => socket.destroy())
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/problem+json\r\n`
  const cacheHeaders = 'Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n'
  socket.end(`${head}${cacheHeaders}Connection: close\r\n\r\n${problem(code)}`)
}
