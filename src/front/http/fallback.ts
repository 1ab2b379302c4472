import { refuse } from '../../base/errors.js'
import type { Route } from '../routes/routes.js'
import type { Exchange } from './exchange.js'
import {
  openRequest,
  takeRequest,
  type HandlerRules,
  type OpenedRequest,
  type Opening,
  type RequestHead,
} from './head.js'
import type { HttpDoor } from '../door/door.js'

/** What no route takes: CORS preflights, 404, and 405 where another method has the path. */
export function addFallbacks(door: HttpDoor, routes: readonly Route[], opening: Opening): void {
  const paths = pathsOf(routes)
  const uncounted = { opening, watch: { done() {} } }
  const preflights: HandlerRules = { ...uncounted, headOnly: false, takesBody: false, rate: 'global' }
  door.route('options', '/*', (response, request) => {
    const opened = openRequest(response, request, preflights)
    // Of the library's buffers, which live only until this returns.
    const path = request.getUrl()
    takeRequest(opened, preflights, () => answerOptions(opened, patternsOf(paths, path), opening))
  })
  door.route('any', '/*', (response, request) => {
    const path = request.getUrl()
    const rules: HandlerRules = {
      ...uncounted,
      headOnly: request.getCaseSensitiveMethod() === 'HEAD',
      takesBody: true,
      rate: isAuthPath(path) ? 'auth' : 'global',
    }
    const opened = openRequest(response, request, rules)
    takeRequest(opened, rules, () => refuseUnknown(opened.exchange, methodsOf(patternsOf(paths, path))))
  })
}

/** 404 where no method has the path, and 405 where others have it. */
function refuseUnknown(exchange: Exchange, allowed: readonly string[]): void {
  if (allowed.length === 0) {
    exchange.refuse(refuse('not_found', 'Expected a path of /openapi.json'))
    return
  }
  const detail = `Expected one of ${allowed.join(', ')}`
  exchange.refuse(refuse('method_not_allowed', detail), { headers: [['Allow', allowed.join(', ')]] })
}

/** Paths below the prefixes of auth routes count as auth routes (docs/OPERATIONS.md, Rate limits). */
function isAuthPath(path: string): boolean {
  return /^\/v1\/(?:organisms\/[^/]+\/)?auth\//.test(path)
}

interface PathPattern {
  pattern: RegExp
  methods: readonly string[]
  /** Events are delivered there. */
  takesEvents: boolean
}

/** The answer to OPTIONS: to a preflight of a browser, and to a sender of web hooks that asks whether it may deliver. */
function answerOptions(
  { exchange, head }: OpenedRequest,
  found: readonly PathPattern[],
  { webhooks }: Opening,
): void {
  const methods = [...methodsOf(found), 'OPTIONS'].join(', ')
  const cors: [string, string][] = [
    ['Access-Control-Allow-Methods', methods],
    [
      'Access-Control-Allow-Headers',
      'Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, X-Request-Id',
    ],
    ['Access-Control-Max-Age', '600'],
  ]
  const allowed = found.some(({ takesEvents }) => takesEvents) ? allowedOrigin(head, webhooks) : undefined
  const grant: [string, string][] =
    allowed === undefined
      ? []
      : [
          ['WebHook-Allowed-Origin', allowed],
          ['WebHook-Allowed-Rate', webhooks.allowedRate],
        ]
  exchange.answer({
    // Senders take no other success than 200 for a grant (CloudEvents HTTP 1.1 Web Hooks, 4.2).
    status: allowed === undefined ? 204 : 200,
    body: '',
    contentType: 'text/plain',
    headers: [['Allow', methods], ...grant, ...(exchange.allowedOrigin === '' ? [] : cors)],
  })
}

/** The sender of web hooks that may deliver, or `*`; undefined where none asks, or it is not named by the setting. */
function allowedOrigin(
  { headers: { webhookOrigin } }: RequestHead,
  { origins }: Opening['webhooks'],
): string | undefined {
  if (webhookOrigin === '') return undefined
  if (origins.has('*')) return '*'
  return origins.has(webhookOrigin.toLowerCase()) ? webhookOrigin : undefined
}

function pathsOf(routes: readonly Route[]): PathPattern[] {
  return routes.map((route) => ({
    pattern: new RegExp(`^${route.path.replaceAll('.', '\\.').replaceAll(/:[a-z_]+/g, '[^/]+')}$`),
    methods:
      route.method === 'get'
        ? ['GET', 'HEAD']
        : [route.method === 'del' ? 'DELETE' : route.method.toUpperCase()],
    takesEvents: route.kind === 'ingest',
  }))
}

/** The routes of a path; `*` means all of the server (RFC 9110, 9.3.7). */
function patternsOf(paths: readonly PathPattern[], path: string): readonly PathPattern[] {
  return path === '*' ? paths : paths.filter(({ pattern }) => pattern.test(path))
}

function methodsOf(found: readonly PathPattern[]): string[] {
  return [...new Set(found.flatMap(({ methods }) => methods))].sort()
}
