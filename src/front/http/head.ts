import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Quota } from '../../base/quota.js'
import type { RequestHeaders } from '../routes/route.js'
import type { Credentials } from './credentials.js'
import { Exchange, type ExchangeWatch } from './exchange.js'
import type { RateLimits } from '../limits/rate-limits.js'
import type { FrontTurn } from './front-turn.js'
import type { BodyBuffers } from './body-buffers.js'
import type { HttpRequest, HttpResponse } from '../engine/http-listener.js'

/**
 * The head of a request, copied from the HTTP library's buffers, which are valid only until its callback
 * returns.
 */
export interface RequestHead {
  headers: RequestHeaders
  query: string
  /** Content-Length; undefined if absent. */
  contentLength: number | undefined
  chunked: boolean
  /** The client requests that the connection is closed after the answer. */
  closesConnection: boolean
  /** Why the head is malformed, so that nothing may follow it; undefined if it is well-formed. */
  fault: Refusal | undefined
  /** Why a well-formed head is refused: the value of a header; undefined if it is not. */
  invalid: Refusal | undefined
}

/** The parts needed to open a request. */
export interface Opening {
  rates: RateLimits
  credentials: Credentials
  corsOrigins: ReadonlySet<string>
  /** Allowed senders of web hooks, in lower case, or `*`; and their allowed requests per minute, or `*`. */
  webhooks: { origins: ReadonlySet<string>; allowedRate: string }
  /** Counts unread bytes of answers. */
  unsent: Quota
  /** The time budget of this front. */
  turn: FrontTurn
  /** Holds what arrives of paused bodies. */
  buffers: BodyBuffers
  nextRequestId(): string
}

/** How the requests of one handler are opened; created once per handler. */
export interface HandlerRules {
  opening: Opening
  watch: ExchangeWatch
  /** Answers HEAD: without a body. */
  headOnly: boolean
  /** Whether the request can have a body; otherwise a chunked one is refused immediately. */
  takesBody: boolean
  /** Which rate limits apply: the global one, or also that of auth routes (docs/NETWORK.md). */
  rate: 'global' | 'auth'
}

/** A request whose head was read. */
export interface OpenedRequest {
  response: HttpResponse
  exchange: Exchange
  head: RequestHead
}

/** Reads the head of a request and opens its exchange. */
export function openRequest(
  response: HttpResponse,
  request: HttpRequest,
  { opening, watch, headOnly }: HandlerRules,
): OpenedRequest {
  const head = readHead(request, opening.credentials)
  const { requestId, origin } = head.headers
  const malformed = head.fault !== undefined
  const exchange = new Exchange(
    response,
    {
      requestId: requestId === '' || malformed ? opening.nextRequestId() : requestId,
      allowedOrigin: origin !== '' && !malformed && opening.corsOrigins.has(origin) ? origin : '',
      headOnly,
      // uWebSockets.js reads extensions of chunk sizes as digits and trailers as the next request, and hardly
      // checks the end of a chunk. Two readers may therefore disagree about where a chunked body ends, and
      // nothing may follow it.
      isLast: head.chunked || malformed,
      isKept: !head.closesConnection,
      contentLength: head.contentLength,
      unsent: opening.unsent,
      buffers: opening.buffers,
    },
    watch,
  )
  return { response, exchange, head }
}

/**
 * Checks the rate limits, also for malformed requests, and continues with a request or refuses it. If the
 * time budget of this turn is spent, does so in a later turn; uWebSockets.js and node.ts close a connection
 * whose next request arrives earlier. Answers 429 rate_limited, or 400 malformed_request or 431
 * headers_too_large, which close the connection (docs/SECURITY.md).
 * @param proceed called for a well-formed request from an address within its rate limit
 */
export function admitByRate(opened: OpenedRequest, rules: HandlerRules, proceed: () => void): void {
  const { opening, takesBody, rate } = rules
  const { response, exchange, head } = opened
  const start = () => {
    if (!exchange.open) return
    const { refusal, headers } = opening.rates.limit(response, head.headers, rate === 'auth')
    exchange.rate = headers
    if (refusal !== undefined) exchange.refuse(refusal)
    else if (head.fault !== undefined) exchange.refuse(head.fault, { closing: true })
    else if (head.invalid !== undefined) exchange.refuse(head.invalid)
    else if (head.chunked && !takesBody) exchange.refuse(unwantedBody)
    else proceed()
  }
  if (opening.turn.takesRequests) {
    start()
    return
  }
  bufferBody(opened, rules)
  opening.turn.deferRequest(start)
}

/**
 * Buffers the body until its reader is known. Not for a route without a body, such as an export or a stream:
 * uWebSockets.js closes a connection ten seconds after it was resumed, even in the middle of a long answer.
 */
export function bufferBody({ exchange, head }: OpenedRequest, { takesBody }: HandlerRules): void {
  if (takesBody || head.chunked || head.fault !== undefined) exchange.body.buffer()
}

const unwantedBody = refuse('malformed_request', 'Expected no body: this operation does not accept one')

/** Tab is the one control character that HTTP allows within a value (RFC 9110, 5.5). */
const controlCharacter = /[\x00-\x08\x0a-\x1f\x7f]/

/** Anything but visible ASCII, blanks and tabs. */
const unusual = /[^\t\x20-\x7e]/

/** A name or an address, and a port (RFC 9112, 3.2); empty if the target has none. */
const hostPattern = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\dA-Fa-f:.]+\])(?::\d{0,5})?$/

/** The option `close` in the comma-separated list of `Connection` (RFC 9110, 7.6.1). */
const closeOption = /(?:^|[,\s])close(?:$|[,\s])/i

/** Without `@` and `%`: an e-mail address sent as an id would otherwise appear in the log. */
const idPattern = /^[\x21-\x24\x26-\x3f\x41-\x7e]{1,128}$/

/**
 * Reads the head of a request in one pass over its headers.
 * @param credentials knows cached credentials, whose characters were checked before
 */
function readHead(request: HttpRequest, credentials: Pick<Credentials, 'knows'>): RequestHead {
  const headers = noHeaders()
  let contentLength: string | undefined
  let fault: string | undefined
  let invalid: string | undefined
  let chunked = false
  let closesConnection = false
  let announcesTrailers = false
  let hosts = 0
  let count = 0
  request.forEach((name, value) => {
    count++
    if (!(name === 'authorization' && credentials.knows(value)) && unusual.test(value)) {
      if (controlCharacter.test(value)) fault = 'Expected header values without control characters'
      else invalid = characterFault(name) ?? invalid
    }
    switch (name) {
      case 'host':
        if (++hosts > 1 || !hostPattern.test(value))
          fault = 'Expected one Host header with a name or an address'
        headers.host = value
        break
      case 'content-length':
        if (contentLength !== undefined) fault = 'Expected one Content-Length'
        contentLength = value
        break
      case 'transfer-encoding':
        fault = codingFault(value, chunked) ?? fault
        chunked = true
        break
      case 'trailer':
        announcesTrailers = true
        break
      case 'connection':
        closesConnection = closeOption.test(value)
        break
      default:
        invalid = readField(headers, name, value) ?? invalid
    }
  })
  if (contentLength !== undefined) fault = lengthFault(contentLength, chunked) ?? fault
  // uWebSockets.js takes trailers for the next request, so they must not be sent.
  if (chunked && announcesTrailers) fault ??= 'Expected no trailers: the server does not read them'
  return {
    headers,
    query: request.getQuery() ?? '',
    contentLength: contentLength === undefined ? undefined : Number(contentLength),
    chunked,
    closesConnection,
    fault: refusalOf(fault, count),
    invalid: invalid === undefined ? undefined : refuse('malformed_request', invalid),
  }
}

type TextHeader = Exclude<keyof RequestHeaders, 'event' | 'isFromPage' | 'isForwarded'>

/** Headers that are read and may be sent only once, and their names in RequestHeaders. */
const singleHeaders: ReadonlyMap<string, TextHeader> = new Map([
  ['authorization', 'authorization'],
  ['content-type', 'contentType'],
  ['content-encoding', 'contentEncoding'],
  ['idempotency-key', 'idempotencyKey'],
  ['last-event-id', 'lastEventId'],
  ['strandfast-agent', 'agent'],
  ['strandfast-agent-seed', 'agentSeed'],
  ['webhook-request-origin', 'webhookOrigin'],
] as const)

/** Headers whose value is a list, which may be sent in parts (RFC 9110, 5.3), and their names. */
const listHeaders: ReadonlyMap<string, TextHeader> = new Map([
  ['if-match', 'ifMatch'],
  ['if-none-match', 'ifNoneMatch'],
  ['accept-encoding', 'acceptEncoding'],
  ['x-forwarded-for', 'forwardedFor'],
] as const)

/** Headers without which a write would do something else, so that an empty value is an error. */
const neverEmpty = new Set([
  'idempotency-key',
  'if-match',
  'if-none-match',
  'strandfast-agent',
  'strandfast-agent-seed',
])

/**
 * Reads a header that does not affect where the request ends.
 * @returns why it is refused, if it is
 */
function readField(headers: ReturnType<typeof noHeaders>, name: string, value: string): string | undefined {
  const single = singleHeaders.get(name)
  if (single !== undefined) {
    if (headers[single] !== '') return `Expected one ${name} header`
    headers[single] = single === 'contentEncoding' ? contentCodingOf(value) : value
    return emptyFault(name, value)
  }
  const list = listHeaders.get(name)
  if (list !== undefined) {
    headers[list] = headers[list] === '' ? value : `${headers[list]},${value}`
    if (list === 'forwardedFor') headers.isForwarded = true
    return emptyFault(name, value)
  }
  if (name.startsWith('ce-')) {
    headers.event.push([name.slice(3), value])
    return value === '' ? `Expected a value of ${name}` : undefined
  }
  readOther(headers, name, value)
  return undefined
}

function emptyFault(name: string, value: string): string | undefined {
  return value === '' && neverEmpty.has(name) ? `Expected a value of ${name}` : undefined
}

/** Why a header may not have other characters than visible ASCII; undefined if it may. */
function characterFault(name: string): string | undefined {
  return singleHeaders.has(name) || listHeaders.has(name) || name.startsWith('ce-')
    ? `Expected visible ASCII characters in ${name}${name.startsWith('ce-') ? ', others percent-encoded' : ''}`
    : undefined
}

function refusalOf(fault: string | undefined, headerCount: number): Refusal | undefined {
  if (headerCount > limits.headersMax) return tooManyHeaders
  return fault === undefined ? undefined : refuse('malformed_request', fault)
}

const tooManyHeaders = refuse('headers_too_large', `Expected at most ${limits.headersMax} headers`)

/** Reads a header whose value is only shown, compared or ignored. */
function readOther(headers: ReturnType<typeof noHeaders>, name: string, value: string): void {
  switch (name) {
    case 'x-request-id':
      if (idPattern.test(value)) headers.requestId = value
      break
    case 'origin':
      headers.origin = value
      headers.isFromPage = true
      break
    case 'user-agent':
      headers.userAgent = value
      break
    case 'cookie':
      // Some clients send it in parts (RFC 9113, 8.2.3).
      headers.cookie = headers.cookie === '' ? value : `${headers.cookie}; ${value}`
      break
    case 'sec-fetch-site':
      headers.fetchSite = value
      headers.isFromPage = true
      break
    case 'accept':
      headers.accept = value
      break
    default:
      if (name.startsWith('sec-fetch-')) headers.isFromPage = true
      else if (proxyHeader.test(name)) headers.isForwarded = true
  }
}

/**
 * Headers by which proxies name the client, itself or the address that was requested: RFC 7239, RFC 9110
 * (7.6.3), RFC 8586, and those of nginx, Apache, HAProxy, Envoy, Traefik, Cloudflare, Fastly and others.
 */
const proxyHeader =
  /^(?:(?:forwarded|via|cdn-loop|true-client-ip)$|(?:x-(?:forwarded|real|client|cluster|remote|original|envoy|proxy|amzn|azure|appengine|arr)|proxy|cf|fastly|fly|tailscale|ngrok)-)/

/** A content coding; `x-gzip` is an alias of gzip (RFC 9110, 8.4.1.3). */
function contentCodingOf(value: string): string {
  const coding = value.toLowerCase()
  return coding === 'x-gzip' ? 'gzip' : coding
}

/** uWebSockets.js accepts any value of this header. */
function codingFault(coding: string, chunked: boolean): string | undefined {
  return chunked || coding.toLowerCase() !== 'chunked' ? 'Expected Transfer-Encoding: chunked' : undefined
}

function lengthFault(contentLength: string, chunked: boolean): string | undefined {
  if (!/^\d{1,15}$/.test(contentLength)) return 'Expected Content-Length to be a number'
  return chunked ? 'Expected Content-Length or Transfer-Encoding, not both' : undefined
}

function noHeaders(): RequestHeaders & { event: [name: string, value: string][] } {
  return {
    authorization: '',
    host: '',
    isFromPage: false,
    isForwarded: false,
    fetchSite: '',
    contentType: '',
    contentEncoding: '',
    accept: '',
    acceptEncoding: '',
    ifMatch: '',
    ifNoneMatch: '',
    idempotencyKey: '',
    requestId: '',
    lastEventId: '',
    origin: '',
    forwardedFor: '',
    userAgent: '',
    cookie: '',
    agentSeed: '',
    agent: '',
    webhookOrigin: '',
    event: [],
  }
}

/** The percent-decoded path parameters; undefined if one cannot be decoded. */
export function readParameters(request: HttpRequest, count: number): string[] | undefined {
  const parameters: string[] = []
  for (let index = 0; index < count; index++) {
    const raw = request.getParameter(index) ?? ''
    if (!raw.includes('%')) {
      parameters.push(raw)
      continue
    }
    try {
      parameters.push(decodeURIComponent(raw))
    } catch {
      // Not percent-encoded UTF-8: the caller answers 400.
      return undefined
    }
  }
  return parameters
}
