import { refuse } from '../base/errors.js'
import type { Route } from '../routes/routes.js'
import type { Exchange } from './exchange.js'
import { openRequest, takeRequest, type HandlerRules, type Opening } from './head.js'
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
    takeRequest(opened, preflights, () => answerOptions(opened.exchange, methodsOf(paths, path)))
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
    takeRequest(opened, rules, () => refuseUnknown(opened.exchange, methodsOf(paths, path)))
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
}

function answerOptions(exchange: Exchange, allowed: readonly string[]): void {
  const methods = [...allowed, 'OPTIONS'].join(', ')
  const cors: [string, string][] = [
    ['Access-Control-Allow-Methods', methods],
    [
      'Access-Control-Allow-Headers',
      'Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, X-Request-Id',
    ],
    ['Access-Control-Max-Age', '600'],
  ]
  exchange.answer({
    status: 204,
    body: '',
    headers: [['Allow', methods], ...(exchange.allowedOrigin === '' ? [] : cors)],
  })
}

function pathsOf(routes: readonly Route[]): PathPattern[] {
  return routes.map((route) => ({
    pattern: new RegExp(`^${route.path.replaceAll('.', '\\.').replaceAll(/:[a-z_]+/g, '[^/]+')}$`),
    methods:
      route.method === 'get'
        ? ['GET', 'HEAD']
        : [route.method === 'del' ? 'DELETE' : route.method.toUpperCase()],
  }))
}

function methodsOf(paths: readonly PathPattern[], path: string): string[] {
  return [
    ...new Set(paths.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods)),
  ].sort()
}
