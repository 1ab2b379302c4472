import { STATUS_CODES } from 'node:http'
import { errorCatalogue, refuse, statusOf, type ErrorCode } from '../../../base/errors.js'
import { bodyBytesMaxOf, type Route } from '../../routes/routes.js'
import { problemDocuments } from '../../routes/refusal-form.js'
import { problemOf } from '../../../wire/problem.js'
import { BatchWriteBody, RecordWriteBody } from '../../../wire/records.js'
import type { AuthRoute } from '../../routes/auth-route.js'

const codes: readonly ErrorCode[] = Object.entries(errorCatalogue).flatMap(([name]) =>
  isCode(name) ? [name] : [],
)

function isCode(name: string): name is ErrorCode {
  return Object.hasOwn(errorCatalogue, name)
}

/** The whole catalogue of errors. */
export const catalogueRows = codes.map((code) => ({ code, ...errorCatalogue[code] }))

/** The codes that a route can answer with, in the order of the catalogue. */
export function codesOf(route: Route): ErrorCode[] {
  const applicable = new Set<ErrorCode>([
    'malformed_request',
    'rate_limited',
    'internal_error',
    'unavailable',
    ...(route.errors ?? []),
    ...parameterCodes(route),
    ...kindCodes(route),
    // For an unknown query parameter.
    ...(route.anyQuery === true ? [] : (['validation_failed'] as const)),
    ...(isRefusedDuringImport(route) ? (['import_open'] as const) : []),
  ])
  return codes.filter((code) => applicable.has(code))
}

/** An error code of an operation, with its status there. */
export interface Refused {
  code: ErrorCode
  status: number
}

/** The codes that a route can answer with, each with its status. */
export function refusalsOf(route: Route): Refused[] {
  const { adapt } = route.refusals?.('') ?? problemDocuments
  return codesOf(route).map((code) => {
    const isInBody = code === 'invalid_token' && route.docs.tokenInBody === true
    return { code, status: isInBody ? 400 : statusOf(adapt(refuse(code, ''))) }
  })
}

/**
 * Whether the route is refused while the agent that it writes to is being imported; for auth routes, their
 * audit agent.
 */
function isRefusedDuringImport(route: Route): boolean {
  const { method, path, scope } = route
  if (route.kind === 'auth') return method !== 'get' || route.writes === true
  return method !== 'get' && scope !== 'records:read' && path.includes('/:agent')
}

function kindCodes(route: Route): ErrorCode[] {
  if (route.kind === 'auth') return authCodes(route)
  return route.scope === 'none' ? ['overloaded'] : guardedCodes(route)
}

function guardedCodes(route: Route): ErrorCode[] {
  const { docs, scope, method } = route
  // Tokens are checked first, even on routes that do not accept users.
  const found: ErrorCode[] = ['unauthorized', 'invalid_token', 'token_expired', 'token_revoked']
  found.push('forbidden', 'overloaded')
  // Row policies apply to the records of users.
  if ('users' in route && route.users === true && scope !== 'any')
    found.push('grant_too_large', 'policy_pending')
  if (docs.idempotent === true) found.push('idempotency_key_reused')
  if (docs.ifMatch === true) found.push('head_mismatch')
  if (docs.request !== undefined) found.push('too_large')
  if (bodyBytesMaxOf(route) > 0) found.push('too_large', 'unsupported_media_type')
  if (docs.request === RecordWriteBody || docs.request === BatchWriteBody) found.push('reserved_type')
  if (route.kind === 'ingest') {
    found.push('reserved_type', 'unsupported_media_type', 'ingest_rejected', 'too_many_bad_lines')
  }
  if (route.kind === 'stream') found.push('too_many_streams')
  const writes = method !== 'get' && scope !== 'records:read'
  if (writes) found.push('outcome_unknown', 'clock_skew', 'storage_full')
  return found
}

/** Codes for missing things that path and query parameters name. */
function parameterCodes({ path, docs }: Route): ErrorCode[] {
  const found: ErrorCode[] = []
  const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1])
  if (names.length > 0) found.push('validation_failed')
  if (names.includes('organism_id')) found.push('organism_not_found')
  if (names.includes('agent') || docs.query?.['agent'] !== undefined) found.push('agent_not_found')
  if (names.includes('hash') || docs.query?.['hash'] !== undefined) found.push('record_not_found')
  return found
}

/** The error answers of a route, as references to components. */
export function problemAnswers(applicable: readonly Refused[]): Record<string, { $ref: string }> {
  const answers = Object.fromEntries(
    byStatus(applicable).map(([status, group]) => [status, { $ref: referenceOf(responseName(group)) }]),
  )
  return { ...answers, default: { $ref: referenceOf('Problem') } }
}

/** components/responses: one per set of codes that a route answers under one status. */
export class RefusalGroups {
  readonly #named = new Map<string, [status: number, group: readonly ErrorCode[]]>()

  add(route: Route): void {
    for (const [status, group] of byStatus(refusalsOf(route))) {
      this.#named.set(responseName(group), [status, group])
    }
  }

  components(): Record<string, unknown> {
    const named = [...this.#named].toSorted(([left], [right]) => (left < right ? -1 : 1))
    return {
      Problem: {
        description: 'Any other error, in the same form',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
      ...Object.fromEntries(named.map(([name, [status, group]]) => [name, problemResponse(status, group)])),
    }
  }
}

function problemResponse(status: number, group: readonly ErrorCode[]): unknown {
  return {
    description: `${STATUS_CODES[status]}: ${group.map((code) => errorCatalogue[code].title).join('; or: ')}`,
    headers: headersOf(status),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [
            { $ref: '#/components/schemas/Problem' },
            { type: 'object', properties: { code: { enum: [...group] } } },
          ],
        },
        examples: Object.fromEntries(group.map((code) => [code, { value: exampleOf(code, status) }])),
      },
    },
  }
}

/** Headers that an answer of any status can have, besides the request id. */
export const everyAnswerHeaders: readonly string[] = [
  'Cache-Control',
  'X-Content-Type-Options',
  'RateLimit',
  'RateLimit-Policy',
  'Keep-Alive',
]

function headersOf(status: number): Record<string, unknown> {
  const names = ['X-Request-Id', ...everyAnswerHeaders]
  if (status === 401) names.push('WWW-Authenticate')
  if (status === 415) names.push('Accept-Encoding')
  if (status === 429 || status === 503 || status === 507) names.push('Retry-After')
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function exampleOf(code: ErrorCode, status: number): unknown {
  const problem = problemOf(refuse(code, errorCatalogue[code].title), '01994e2c-7f3a-7c51-9a70-3f6f0c1d2b4e')
  return { ...problem, status }
}

function byStatus(applicable: readonly Refused[]): [status: number, group: ErrorCode[]][] {
  const groups = new Map<number, ErrorCode[]>()
  for (const { code, status } of applicable) {
    groups.set(status, [...(groups.get(status) ?? []), code])
  }
  return [...groups].toSorted(([left], [right]) => left - right)
}

const responseName = (group: readonly ErrorCode[]): string => group.join('-or-')
const referenceOf = (name: string): string => `#/components/responses/${name}`

function authCodes(route: AuthRoute): ErrorCode[] {
  const { caller, docs, method, organism, whileOff, writes } = route
  const found: ErrorCode[] = ['license_required', ...callerCodes[caller]]
  if (whileOff === undefined) found.push('auth_disabled', 'overloaded')
  if (organism === 'initialised') found.push('namespace_not_found', 'overloaded')
  if (docs.request !== undefined) found.push('too_large', 'unsupported_media_type')
  if (method !== 'get' || writes === true) found.push('outcome_unknown', 'clock_skew', 'storage_full')
  return found
}

const callerCodes: Readonly<Record<AuthRoute['caller'], readonly ErrorCode[]>> = {
  anyone: [],
  user: ['unauthorized', 'invalid_token', 'token_expired', 'token_revoked'],
  admin: ['unauthorized', 'forbidden'],
}

/** The credentials that an auth route accepts. */
export function authSecurity(route: AuthRoute): unknown[] {
  if (route.caller === 'anyone') return []
  return route.caller === 'user' ? [{ userToken: [] }] : [{ rootKey: [] }, { scopedKey: [authScope(route)] }]
}

/** The `x-scope` of an auth route. */
export function authScope({ caller, organism }: AuthRoute): string {
  const admin = organism === undefined ? 'admin:*' : 'admin:organisms'
  return { anyone: 'none', user: 'user', admin }[caller]
}
