import { readFileSync } from 'node:fs'
import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { addRoute, createRouter, findRoute } from 'rou3'
import { assert } from '../../base/assert.js'
import { errorCatalogue } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type {
  DoorMethod,
  DoorOptions,
  HttpDoor,
  HttpHandler,
  HttpRequest,
  NoRequest,
  TlsFiles,
} from './door.js'
import { NodeResponse } from './node-response.js'

/** A handler, and the places of the parameters among the segments of its path. */
interface Match {
  handler: HttpHandler
  places: readonly number[]
}

/**
 * A door of node:http or node:https.
 * @throws Error when the certificate cannot be read
 */
export function nodeDoor({ tls, problem }: DoorOptions): HttpDoor {
  const router = createRouter<Match>()
  const others = new Map<string, HttpHandler>()
  const server = serverOf(tls)
  const busy = new WeakMap<Duplex, NodeResponse | 'over'>()
  const handlers = { router, others, busy, waiting: new WeakMap(), problem }
  const handle = (request: IncomingMessage, reply: ServerResponse) => inTurn(handlers, request, reply)
  server.on('request', handle)
  // An expectation other than `100-continue` is passed over, as uWebSockets.js does.
  server.on('checkExpectation', handle)
  server.on('connect', (_request, socket) => sayAndClose(socket, 'http_version_not_supported', problem))
  server.on('clientError', (error, socket) => {
    const response = busy.get(socket)
    // Neither in the middle of an answer nor before it is due can anything be said.
    if (response === 'over' || response?.begun === true || response?.wholeBody === true || !socket.writable)
      socket.destroy()
    else sayAndClose(socket, faultOfParser(error), problem)
  })
  return {
    route(method, pattern, handler) {
      const name = methodNames[method]
      const places = pattern.split('/').flatMap((part, place) => (part.startsWith(':') ? [place] : []))
      if (pattern === '/*') others.set(name, handler)
      else addRoute(router, name, pattern, { handler, places })
    },
    onConnection(handler) {
      server.on('connection', (socket) => {
        socket.once('close', () => handler({ close: () => {} }, -1))
        handler({ close: () => socket.destroy() }, 1)
      })
    },
    listen: (host, port, shared) => listenOn(server, { host, port, reusePort: shared }),
    // The system shares the connections out.
    takeShare: (host, port) => listenOn(server, { host, port, reusePort: true }),
    shareWith: () => {},
    stopListening: () => server.close(),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const methodNames: Readonly<Record<DoorMethod, string>> = {
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
    headersTimeout: limits.connectionPatienceMs,
    keepAliveTimeout: limits.connectionPatienceMs,
    connectionsCheckingInterval: limits.connectionsCheckMs,
    // A body may take as long as it needs, as long as it comes (node-response.ts).
    requestTimeout: 0,
    requireHostHeader: false,
  }
  const server =
    tls === undefined
      ? createServer(options)
      : createTlsServer({ ...options, cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) })
  // Node would leave out those above a number without a word.
  server.maxHeadersCount = 0
  return server
}

/** What a door hands its requests to. */
interface Handlers {
  router: ReturnType<typeof createRouter<Match>>
  /** By method, for paths that no route has; that of the empty name for all other methods. */
  others: ReadonlyMap<string, HttpHandler>
  /** Connections with an answer that is not finished, or that take no further request. */
  busy: WeakMap<Duplex, NodeResponse | 'over'>
  /** How many requests of a connection wait for the end of this turn. */
  waiting: WeakMap<Duplex, number>
  problem: DoorOptions['problem']
}

/**
 * Carries a request out unless the one before it is not answered yet: then its connection is closed. The parser hands
 * on at once what arrived together; an answer that waits for nothing is out when this turn of the event loop is over. One
 * that has too many behind it closes its connection as well.
 */
function inTurn(handlers: Handlers, request: IncomingMessage, reply: ServerResponse): void {
  const { socket } = request
  const { busy, waiting } = handlers
  const ahead = waiting.get(socket) ?? 0
  if (ahead === 0 && !busy.has(socket)) {
    carryOut(handlers, request, reply)
    return
  }
  if (ahead >= limits.requestsAheadMax) {
    socket.destroy()
    stopParsing(socket)
    return
  }
  waiting.set(socket, ahead + 1)
  setImmediate(() => {
    waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
    if (busy.has(socket)) socket.destroy()
    else if (!socket.destroyed) carryOut(handlers, request, reply)
  })
}

/**
 * Has Node's parser leave out the rest of what was read, as if the next request asked for another protocol: otherwise it
 * makes thousands of requests of it, which takes 50 ms and more, although their connection is closed. The parser of a socket
 * is no documented part of Node; where there is none, the rest only takes longer.
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

function carryOut(
  { router, others, busy, problem }: Handlers,
  request: IncomingMessage,
  reply: ServerResponse,
): void {
  const { socket, method = '' } = request
  const target = targetOf(request)
  if (typeof target === 'string') {
    // What arrived together with it is parsed all the same.
    busy.set(socket, 'over')
    sayAndClose(socket, target, problem)
    return
  }
  const { path } = target
  const match = path.length > 1 && path.endsWith('/') ? undefined : findRoute(router, method, path)?.data
  const handler = match?.handler ?? others.get(method) ?? others.get('')
  assert(handler !== undefined, 'the server has a handler for what no route takes')
  const response = new NodeResponse(request, reply, { finished: () => busy.delete(socket) })
  busy.set(socket, response)
  handler(response, headOf(request, target, match))
}

/** The target of a request (RFC 9112, 3.2). */
interface RequestTarget {
  path: string
  query: string
  /** In the absolute form: the authority, which counts in place of the header Host (RFC 9112, 3.2.2). */
  authority: string | undefined
}

/** The target, or why it is refused: what uWebSockets.js refuses itself, node:http lets through. */
function targetOf({ url = '', method, httpVersion, headers }: IncomingMessage): RequestTarget | NoRequest {
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
    getParameter: (index) => path.split('/')[match?.places[index] ?? -1],
    getQuery: () => query,
    getUrl: () => path,
    getCaseSensitiveMethod: () => method,
  }
}

/** Where to listen, and whether the port is one of several doors. */
interface ListenAddress {
  host: string
  port: number
  reusePort: boolean
}

function listenOn(server: Server, place: ListenAddress): Promise<number | undefined> {
  return new Promise((resolve) => {
    // Later ones are of a connection that the system could not take, and so cannot answer either.
    server.on('error', () => resolve(undefined))
    server.listen({ ...place, backlog: limits.listenBacklog }, () => {
      const address = server.address()
      resolve(typeof address === 'object' ? address?.port : undefined)
    })
  })
}

/** What is said to bytes that are no request; undefined: nothing, the connection is only closed. */
function faultOfParser(error: Error & { code?: string }): NoRequest | undefined {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (error.code === 'HPE_INVALID_VERSION') return 'http_version_not_supported'
  return error.code?.startsWith('HPE_') === true ? 'malformed_request' : undefined
}

/** Says what is wrong on a connection that has no request to answer, and closes it. */
function sayAndClose(socket: Duplex, code: NoRequest | undefined, problem: DoorOptions['problem']): void {
  if (code === undefined) {
    socket.destroy()
    return
  }
  const { status } = errorCatalogue[code]
  socket.once('finish', () => socket.destroy())
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/problem+json\r\n`
  const kept = 'Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n'
  socket.end(`${head}${kept}Connection: close\r\n\r\n${problem(code)}`)
}
