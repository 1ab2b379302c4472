import { refuse } from '../../base/errors.js'
import type { Route } from '../routes/routes.js'
import type { Exchange } from './exchange.js'
import {
  openRequest,
  admitByRate,
  type HandlerRules,
  type OpenedRequest,
  type Opening,
  type RequestHead,
} from './head.js'
import type { HttpListener } from '../engine/http-listener.js'

/** Handles requests that no route handles: CORS preflights, 404, and 405 if the path has other methods. */
export function addFallbacks(listener: HttpListener, routes: readonly Route[], opening: Opening): void {
  const paths = pathsOf(routes)
  const uncounted = { opening, watch: { done() {} } }
  const preflights: HandlerRules = { ...uncounted, headOnly: false, takesBody: false, rate: 'global' }
  listener.route('options', '/*', (response, request) => {
    const opened = openRequest(response, request, preflights)
    // Read now: the library's buffers are valid only until this returns.
    const path = request.getUrl()
    admitByRate(opened, preflights, () => answerOptions(opened, patternsOf(paths, path), opening))
  })
  listener.route('any', '/*', (response, request) => {
    const path = request.getUrl()
    const rules: HandlerRules = {
      ...uncounted,
      headOnly: request.getCaseSensitiveMethod() === 'HEAD',
      takesBody: true,
      rate: isAuthPath(path) ? 'auth' : 'global',
    }
    const opened = openRequest(response, request, rules)
    admitByRate(opened, rules, () => refuseUnknown(opened.exchange, methodsOf(patternsOf(paths, path))))
  })
}

/** 404 if the path has no methods, 405 if it has others. */
function refuseUnknown(exchange: Exchange, allowed: readonly string[]): void {
  if (allowed.length === 0) {
    exchange.refuse(refuse('not_found', 'Unknown path: /openapi.json lists all paths'))
    return
  }
  const detail = `Expected one of ${allowed.join(', ')}`
  exchange.refuse(refuse('method_not_allowed', detail), { headers: [['Allow', allowed.join(', ')]] })
}

/** Paths below the prefixes of auth routes count as auth routes (docs/NETWORK.md). */
function isAuthPath(path: string): boolean {
  return /^\/v1\/(?:organisms\/[^/]+\/)?auth\//.test(path)
}

interface PathPattern {
  pattern: RegExp
  methods: readonly string[]
  takesEvents: boolean
}

/** Answers OPTIONS: a browser's preflight, or a sender of web hooks that asks whether it may deliver. */
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
      'Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, Strandfast-Agent, X-Request-Id',
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
    // Senders accept no other status than 200 as a grant (CloudEvents HTTP 1.1 Web Hooks, 4.2).
    status: allowed === undefined ? 204 : 200,
    body: '',
    contentType: 'text/plain',
    headers: [['Allow', methods], ...grant, ...(exchange.allowedOrigin === '' ? [] : cors)],
  })
}

/**
 * The allowed sender of web hooks, or `*`; undefined if the request names none or the setting does not list
 * it.
 */
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
    takesEvents: route.kind === 'ingest' && route.takesEvents === true,
  }))
}

/** The routes of a path; `*` means the whole server (RFC 9110, 9.3.7). */
function patternsOf(paths: readonly PathPattern[], path: string): readonly PathPattern[] {
  return path === '*' ? paths : paths.filter(({ pattern }) => pattern.test(path))
}

function methodsOf(found: readonly PathPattern[]): string[] {
  return [...new Set(found.flatMap(({ methods }) => methods))].sort()
}
