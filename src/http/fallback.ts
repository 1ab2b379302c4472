import { refuse } from '../base/errors.js'
import type { Route } from '../routes/route.js'
import { answersHead, openExchange, type Handling } from './handle.js'
import { readHead } from './request.js'
import type { HttpRequest, HttpResponse, TemplatedApp } from './uws.js'

const uncounted = { done() {} }

/** What no route takes: CORS preflights, 404, and 405 where another method has the path. */
export function addFallbacks(app: TemplatedApp, routes: readonly Route[], handling: Handling): void {
  const paths = pathsOf(routes)
  app.options('/*', (response, request) => answerOptions(response, request, { paths, handling }))
  app.any('/*', (response, request) => {
    const path = request.getUrl()
    const head = readHead(request)
    const exchange = openExchange(response, head, { handling, watch: uncounted })
    if (typeof head === 'string') {
      exchange.refuse(refuse('malformed_request', head), { closing: 'at once' })
      return
    }
    const limited = handling.admission.limit(response, head.headers, isAuthPath(path))
    if (limited !== undefined) {
      exchange.refuse(limited.refusal, { headers: limited.headers })
      return
    }
    const allowed = methodsOf(paths, path)
    if (allowed.length === 0) {
      exchange.refuse(refuse('not_found', 'Expected a path of /openapi.json'))
      return
    }
    const detail = `Expected one of ${allowed.join(', ')}`
    exchange.refuse(refuse('method_not_allowed', detail), { headers: [['Allow', allowed.join(', ')]] })
  })
}

/** Paths below those of auth routes count as such for the rate limits (contract.md 2.5). */
function isAuthPath(path: string): boolean {
  return /^\/v1\/(?:organisms\/[^/]+\/)?auth\//.test(path)
}

interface PathPattern {
  pattern: RegExp
  methods: readonly string[]
}

function answerOptions(
  response: HttpResponse,
  request: HttpRequest,
  { paths, handling }: { paths: readonly PathPattern[]; handling: Handling },
): void {
  const allowed = methodsOf(paths, request.getUrl())
  const head = readHead(request)
  const exchange = openExchange(response, head, { handling, watch: uncounted })
  if (typeof head === 'string') {
    exchange.refuse(refuse('malformed_request', head), { closing: 'at once' })
    return
  }
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
    methods: answersHead(route)
      ? ['GET', 'HEAD']
      : [route.method === 'del' ? 'DELETE' : route.method.toUpperCase()],
  }))
}

function methodsOf(paths: readonly PathPattern[], path: string): string[] {
  return [
    ...new Set(paths.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods)),
  ].sort()
}
