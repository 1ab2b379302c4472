import { STATUS_CODES } from 'node:http'
import type { TSchema } from 'typebox'
import { rootPathOf } from '../../routes/auth/auth-routes.js'
import type { MediaText } from '../../routes/route.js'
import type { Route } from '../../routes/routes.js'
import { scopes } from '../../../wire/api-keys.js'
import { parameterComponents, parametersOf } from './parameters.js'
import {
  authScope,
  authSecurity,
  catalogueRows,
  everyAnswerHeaders,
  problemAnswers,
  RefusalGroups,
  refusalsOf,
} from './problems.js'
import { isText, jsonContent, schemaComponents } from './schemas.js'

/*
 * The OpenAPI document is generated from the route table and from the schemas that validate requests, so it
 * always matches the server.
 */

const introduction = `Strandfast keeps JSON records in append-only strands: each record is signed with Ed25519 and names the hash of the \
one before it. The server confirms a write once it is on disk. Any strand can be exported and verified offline, with \
nothing but the file and the public key.

An agent owns one strand. A collection is an agent that is created by its first write.

Every error is \`application/problem+json\` (RFC 9457) with a stable \`code\`. Each answer has \`X-Request-Id\`.`

/** Tags in the order of the document; other tags follow. */
const tagDescriptions: Readonly<Record<string, string>> = {
  Records: 'Append, read, query, delete and restore records.',
  Agents: 'The owners of strands: their zone, public key and chain head.',
  Ingest: 'Streams of records, one per line, at the pace of the disk.',
  Streams: 'Records as they are written, as server-sent events, with replay from any time.',
  Graph: 'Typed, directed edges between agents.',
  Strands: 'Exports, signed checkpoints and proofs for readers that do not trust this server.',
  'Server log':
    'The heads of all strands, in one strand: for witnesses, and for readers that have an earlier checkpoint.',
  Organisms:
    'Groups of agents that are created together. After init, every route below `/v1/auth` has a counterpart below ' +
    '`/v1/organisms/{organism_id}/auth`, with separate users, keys and sessions: a credential of one namespace is not ' +
    'valid in another. A counterpart can also answer 404 `organism_not_found` and `namespace_not_found`, and its routes ' +
    'for administrators accept the scope `admin:organisms` as well.',
  Proposals: 'Mutations that need an approval.',
  Authentication: 'Users, sessions and tokens.',
  Administration: 'Scoped API keys.',
  Operation: 'Health, metrics and this document.',
}

const headers = {
  'X-Request-Id': [
    'Id of the request: the one that was sent (1 to 128 printable ASCII characters except `@` and `%`), or a generated ' +
      'one. Audit records always have a generated id: the same one if none was sent',
  ],
  ETag: ['The chain head in quotes, as used in If-Match'],
  'Idempotency-Replayed': [
    '`true` if this is the stored answer to an earlier request with the same Idempotency-Key',
  ],
  'WWW-Authenticate': ['`Bearer`; on ingest routes `Basic` in a second header'],
  'Retry-After': ['Seconds to wait', 'integer'],
  'Accept-Encoding': ['The accepted content codings; absent if the media type is the reason'],
  'Cache-Control': ['`no-store`, except for pages, their files, this document and public keys'],
  'X-Content-Type-Options': ['`nosniff`'],
  RateLimit: [
    'The rest of each quota that applies to the request, as `"global";r=57` (draft-ietf-httpapi-ratelimit-headers); `t` ' +
      'is the number of seconds until the next request is allowed. Absent if no limit applies',
  ],
  'RateLimit-Policy': ['The quotas, as `"global";q=200;w=2`: `q` requests, restored within `w` seconds'],
  'Keep-Alive': [
    '`timeout=` and the seconds that an idle connection stays open; absent if it is closed after the answer',
  ],
} as const

/**
 * The OpenAPI 3.1 document of these routes.
 * @param version of the server, as in package.json
 */
export function openApiDocument(routes: readonly Route[], version: string): object {
  const steps = openApiSteps(routes, version)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** Generates the document in steps of a few milliseconds, so that the server can do other work in between. */
export function* openApiSteps(
  routes: readonly Route[],
  version: string,
): Generator<undefined, object, undefined> {
  const paths: Record<string, Record<string, unknown>> = {}
  const refusals = new RefusalGroups()
  for (const route of routes) {
    refusals.add(route)
    const path = openApiPath(route.path)
    const method = route.method === 'del' ? 'delete' : route.method
    paths[path] = { ...paths[path], [method]: operationOf(route) }
    yield
  }
  const schemas = schemaComponents(routes)
  yield
  const responses = refusals.components()
  yield
  return {
    openapi: '3.1.0',
    info: {
      title: 'Strandfast',
      version,
      summary: 'Append-only, signed, hash-chained JSON records',
      description: introduction,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This server' }],
    tags: tagsOf(routes),
    paths,
    components: {
      schemas,
      responses,
      parameters: parameterComponents(),
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, [description, type = 'string']]) => [
          name,
          { description, schema: { type } },
        ]),
      ),
      securitySchemes: securitySchemes(),
    },
    'x-error-catalogue': catalogueRows,
  }
}

function openApiPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}')
}

function tagsOf(routes: readonly Route[]): unknown[] {
  const used = new Set(routes.map((route) => route.docs.tag))
  const known = Object.keys(tagDescriptions).filter((name) => used.has(name))
  const others = [...used].filter((name) => tagDescriptions[name] === undefined)
  return [...known, ...others].map((name) => {
    const description = tagDescriptions[name]
    return description === undefined ? { name } : { name, description }
  })
}

function securitySchemes(): Record<string, unknown> {
  const ticket =
    'A ticket of POST /v1/stream/tickets, for clients that cannot send headers: it opens one stream, and reopens it from the same address'
  return {
    rootKey: { type: 'http', scheme: 'bearer', description: 'The root key: every scope, every agent' },
    scopedKey: {
      type: 'http',
      scheme: 'bearer',
      description:
        `A key of POST /v1/admin/api-keys with the named scope, one of ${scopes.join(', ')}; ` +
        'every key is also accepted as the password of HTTP Basic, with any user name',
    },
    userToken: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'The token of a user; on routes of agents, the row policies of the agent apply',
    },
    streamTicket: { type: 'apiKey', in: 'query', name: 'ticket', description: ticket },
  }
}

function operationOf(route: Route): unknown {
  const { docs, scope } = route
  const operationId = operationIdOf(route)
  const parameters = parametersOf(route)
  const requestBody = requestBodyOf(route)
  const answers = Object.entries(docs.answers).map(([status, answer]) => [
    status,
    answerOf(route, status, answer),
  ])
  return {
    operationId,
    summary: docs.summary,
    tags: [docs.tag],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: { ...Object.fromEntries(answers), ...problemAnswers(refusalsOf(route)) },
    security: securityOf(route),
    'x-scope': route.kind === 'auth' ? authScope(route) : scope,
    ...twinOf(route),
  }
}

/**
 * Names the operation of the root namespace to which an operation of an organism's namespace is equivalent,
 * so that readers can skip it.
 */
function twinOf(route: Route): object {
  const path = route.kind === 'auth' ? rootPathOf(route) : undefined
  return path === undefined ? {} : { 'x-twin-of': operationIdOf({ method: route.method, path }) }
}

function securityOf(route: Route): unknown[] {
  if (route.kind === 'auth') return authSecurity(route)
  const { scope, orScopes = [], kind, users } = route
  if (scope === 'none') return []
  const scoped =
    scope === 'any' ? [{ scopedKey: [] }] : [scope, ...orScopes].map((name) => ({ scopedKey: [name] }))
  const keys = [{ rootKey: [] }, ...scoped]
  const others = users === true ? [{ userToken: [] }] : []
  return kind === 'stream' ? [...keys, ...others, { streamTicket: [] }] : [...keys, ...others]
}

function requestBodyOf({ docs: { request, requestOptional } }: Route): unknown {
  if (request === undefined) return undefined
  if (!isText(request))
    return { required: requestOptional !== true, content: { 'application/json': jsonContent(request) } }
  const others = Object.entries(request.others ?? {}).map(([mediaType, { schema, examples }]) => [
    mediaType,
    jsonContent(schema, examples),
  ])
  const content = { [request.mediaType]: textContent(request), ...Object.fromEntries(others) }
  return { required: true, description: request.description, content }
}

function answerOf(route: Route, status: string, answer: TSchema | MediaText): unknown {
  const names = ['X-Request-Id', ...everyAnswerHeaders]
  if (route.docs.idempotent === true) names.push('Idempotency-Replayed')
  if (route.path.endsWith('/head')) names.push('ETag')
  const shown = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
  if (!isText(answer)) {
    const description = STATUS_CODES[status] ?? 'Answer'
    return { description, headers: shown, content: { 'application/json': jsonContent(answer) } }
  }
  const content = { [answer.mediaType]: textContent(answer) }
  return { description: answer.description, headers: shown, content }
}

function textContent({ mediaType, example }: MediaText): unknown {
  // Type generators read an object without declared members as an empty object.
  const schema =
    mediaType === 'application/json' ? { type: 'object', additionalProperties: true } : { type: 'string' }
  return { schema, ...(example === undefined ? {} : { example }) }
}

/**
 * A name for generated clients, from method and path: `postAgentRecords`, `deleteAgentRecord`. A plural
 * before a parameter becomes a singular; another word before a parameter is followed by the parameter's name.
 */
export function operationIdOf({ method, path }: Pick<Route, 'method' | 'path'>): string {
  const keepsVersion = existsWithout.has(path)
  const parts = path.split('/').filter((part) => part !== '' && (keepsVersion || part !== 'v1'))
  const words = parts.flatMap((part, index) => {
    if (part.startsWith(':')) return []
    const parameter = parts[index + 1]
    if (parameter?.startsWith(':') !== true) return [pascal(part)]
    return part.endsWith('s') ? [pascal(part.slice(0, -1))] : [pascal(part), 'By', pascal(parameter)]
  })
  return (method === 'del' ? 'delete' : method) + words.join('')
}

/** Paths that also exist without `/v1`. Their operation ids include the version, because ids are unique. */
const existsWithout = new Set(['/v1/metrics'])

function pascal(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}
