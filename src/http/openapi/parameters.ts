import { Type, type TSchema } from 'typebox'
import { limits } from '../../base/limits.js'
import { organismIdPattern } from '../../base/organism-id.js'
import type { Route } from '../../routes/routes.js'
import { OrganismId } from '../../wire/organisms.js'
import { PasskeyId } from '../../wire/passkeys.js'
import { AgentAddress, agentNamePattern } from '../../wire/primitives.js'
import { ProposalId } from '../../wire/proposals.js'
import { BatchWriteBody } from '../../wire/records.js'
import { schemaOf } from './schemas.js'

/** Path parameters that mean the same wherever they stand. */
const pathSchemas: Readonly<Record<string, TSchema>> = {
  agent: AgentAddress,
  name: Type.String({ pattern: agentNamePattern, description: 'Name of a collection' }),
  hash: Type.String({
    pattern: '^(sha256:)?[0-9a-f]{64}$',
    description: 'Hash of a record, bare hex or with sha256:',
  }),
  key_id: Type.String({ minLength: 1, description: 'Id of a scoped key' }),
  organism_id: OrganismId,
  proposal_id: ProposalId,
  email: Type.String({ minLength: 1, description: 'E-mail of a user, percent-encoded' }),
  provider: Type.Enum(['google', 'github'], { description: 'The service that vouches for the user' }),
  sid: Type.String({ pattern: '^[0-9a-f]{32}$', description: 'Id of a session' }),
  passkey_id: PasskeyId,
}

/** Values that stand in the examples of examples.ts, too. */
const parameterExamples: Readonly<Record<string, string>> = {
  agent: 'sensors',
  name: 'sensors',
  hash: '4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce',
  key_id: 'key_6f1c9a52e07b4d3388a1c2f0',
  ts: '2026-01-01T00:00:00Z',
  src: 'boiler-2',
  edge_type: 'feeds',
  dst: 'sensors',
  organism_id: 'acme',
  proposal_id: 'p_3_sensors',
  email: 'ada@example.org',
  provider: 'google',
  sid: '8d1f6c3a5b7e4920a1c3e5f708192a3b',
  passkey_id: 'F6h2Qm0bT3yUeXo4tWzJ1w',
}

/** Query parameters without which the operation answers 400, by operationId. */
export const requiredQuery: Readonly<Record<string, readonly string[]>> = {
  getStrandProof: ['hash'],
  getStrandConsistency: ['from'],
  getLogConsistency: ['from'],
  getLogProof: ['agent'],
  getStrandAsOf: ['ts'],
  deleteGraphEdges: ['src', 'edge_type', 'dst'],
  getAuthOauthByProviderAuthorize: ['redirect_uri'],
  getAuthOauthByProviderCallback: ['state'],
}

const headerParameters = {
  'Idempotency-Key': Type.String({
    minLength: 1,
    maxLength: limits.idempotencyKeyCharsMax,
    description:
      `The same key and body are answered as at the first time, for ${limits.idempotencyHours} hours, ` +
      'with Idempotency-Replayed: true; another body is answered 422',
  }),
  'If-Match': Type.String({
    pattern: '^"(sha256:)?[0-9a-f]{64}"$',
    description: 'Write only while this is the chain head: its hash in quotes, as in the ETag of the head',
  }),
  'Last-Event-ID': Type.String({ description: 'The id of the last event that was seen: go on behind it' }),
  'Strandfast-Agent-Seed': Type.String({
    pattern: '^[0-9a-fA-F]{64}$',
    description:
      "The Ed25519 seed of the agent's key at the end of the export, where the server does not have it; sealed, never " +
      'logged, never given back',
  }),
  'Content-Encoding': Type.Enum(['gzip', 'identity'], { description: 'How the body is packed' }),
}

/** Path parameters that stand under components/parameters. */
const shared = new Set(['agent', 'name', 'hash', 'organism_id', 'proposal_id'])

const signing = Type.Enum(['record', 'group'], {
  description: 'Sign every record, or the last of each commit, which seals the ones before it',
})
const onError = Type.Enum(['skip', 'keep', 'reject_all'], {
  default: 'skip',
  description:
    'Leave bad lines out; keep each as a signed record of type `ingest/rejected` with the body `{line, code, detail, text}` ' +
    '(`base64` instead of `text` where it is not UTF-8; of one that no record can hold its beginning, with the `bytes` and ' +
    '`sha256` of all of it), so that 200 means that all of it is on disk; or write nothing when one is bad',
})

const dedupe = Type.Enum(['body'], {
  description:
    'Write no record that the same caller has written to the same agent by ingest with `dedupe=body` within ' +
    `${limits.idempotencyHours} hours, with the same type and the same body in canonical form: it counts as accepted, and ` +
    'among `duplicates`. A CloudEvent is always known by its `source` and `id`',
})
const integers = Type.Enum(['text'], {
  description:
    'Keep integers beyond ±(2^53-1) as strings of their digits, which are refused otherwise: other readers of JSON would ' +
    'round them',
})

/** components/parameters: the ones that many operations share. */
export function parameterComponents(): Record<string, unknown> {
  const inPath = [...shared].map((name) => [name, pathParameter(name)])
  const inHeader = Object.entries(headerParameters).map(([name, schema]) => [
    name,
    parameter({ name, in: 'header', required: false }, schema),
  ])
  return Object.fromEntries([...inPath, ...inHeader])
}

/** The parameters of one operation: path, query and headers. */
export function parametersOf(route: Route, operationId: string): unknown[] {
  return [
    ...pathNames(route.path).map((name) => pathReference(name)),
    ...Object.entries(queryOf(route)).map(([name, schema]) => {
      const required = requiredQuery[operationId]?.includes(name) === true
      return parameter({ name, in: 'query', required }, schema)
    }),
    ...headersOf(route).map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ]
}

/** Names of the parameters in a path, in order. */
export function pathNames(path: string): string[] {
  return path.split('/').flatMap((part) => (part.startsWith(':') ? [part.slice(1)] : []))
}

/** The query parameters that a route documents, and those that its kind brings with it. */
function queryOf(route: Route): Record<string, TSchema> {
  const own = route.docs.query ?? {}
  if (route.kind === 'ingest') return { ...own, on_error: onError, dedupe, integers, signing }
  return route.docs.request === BatchWriteBody ? { ...own, signing } : own
}

function headersOf({ docs, kind }: Route): string[] {
  const names: string[] = []
  if (docs.idempotent === true) names.push('Idempotency-Key')
  if (docs.ifMatch === true) names.push('If-Match')
  if (kind === 'stream') names.push('Last-Event-ID')
  if (kind === 'ingest' || kind === 'import') names.push('Content-Encoding')
  if (kind === 'import') names.push('Strandfast-Agent-Seed')
  return names
}

/**
 * The organism of a path that is described by reference to another. It holds no reference itself: tools that resolve
 * them put the target in the place of what stands beside.
 */
export const organismParameter = {
  name: 'organism_id',
  in: 'path',
  required: true,
  schema: { type: 'string', pattern: organismIdPattern },
  example: parameterExamples['organism_id'],
}

/** A parameter of a path, by reference where many operations share it. */
function pathReference(name: string): unknown {
  return shared.has(name) ? { $ref: `#/components/parameters/${name}` } : pathParameter(name)
}

function pathParameter(name: string): unknown {
  return parameter({ name, in: 'path', required: true }, pathSchemas[name] ?? Type.String({ minLength: 1 }))
}

/** A parameter; its description stands beside the schema, where readers look for it. */
function parameter(head: { name: string; in: string; required: boolean }, schema: TSchema): unknown {
  const description = 'description' in schema ? { description: schema.description } : {}
  const example = head.required ? parameterExamples[head.name] : undefined
  return { ...head, ...description, schema: schemaOf(schema), ...(example === undefined ? {} : { example }) }
}
