import { Type, type TSchema } from 'typebox'
import { limits } from '../../../base/limits/limits.js'
import type { Route } from '../../routes/routes.js'
import { second } from '../../../wire/example-values.js'
import { OrganismId } from '../../../wire/organisms.js'
import { AgentAddress, agentNamePattern } from '../../../wire/primitives.js'
import { ProposalId } from '../../../wire/proposals.js'
import { schemaOf } from './schemas.js'

const organismExample = 'acme'

/** components/parameters: path parameters that many operations share. */
const sharedSchemas: Readonly<Record<string, TSchema>> = {
  agent: { ...AgentAddress, example: 'sensors' },
  name: Type.String({ pattern: agentNamePattern, description: 'Name of a collection', example: 'sensors' }),
  hash: Type.String({
    pattern: '^(sha256:)?[0-9a-f]{64}$',
    description: 'Hash of a record, bare hex or with sha256:',
    example: second,
  }),
  organism_id: { ...OrganismId, example: organismExample },
  proposal_id: { ...ProposalId, example: 'p_3_sensors' },
}

const headerParameters = {
  'Idempotency-Key': Type.String({
    minLength: 1,
    maxLength: limits.idempotencyKeyCharsMax,
    pattern: '^[ -~]+$',
    description:
      'Visible ASCII characters, and blanks between them; anything else gets 400, as do an empty key and two keys. ' +
      `The same key and body get the stored first answer for ${limits.idempotencyHours} hours, with ` +
      'Idempotency-Replayed: true; another body gets 422. A single JSON value is compared by value, not by its text',
  }),
  'If-Match': Type.String({
    description:
      'Write only if the chain head has this hash, in quotes as in the ETag of the head, or one of several hashes separated ' +
      'by commas; `*`: only if the agent exists. Weak tags never match (RFC 9110, 13.1.1)',
    example: `"${second}"`,
  }),
  'Last-Event-ID': Type.String({ description: 'The id of the last received event: continue after it' }),
  'Strandfast-Agent': Type.Unsafe<string>({
    ...AgentAddress,
    description: 'The agent of all records, instead of the `service.name` of their resources',
  }),
  'Strandfast-Agent-Seed': Type.String({
    pattern: '^[0-9a-fA-F]{64}$',
    description:
      "The Ed25519 seed of the agent's key at the end of the export, if the server does not have it; stored encrypted, " +
      'never logged, never returned',
  }),
  'Content-Encoding': Type.Enum(['gzip', 'identity'], { description: 'Compression of the body' }),
}

/** components/parameters: the parameters that many operations share. */
export function parameterComponents(): Record<string, unknown> {
  const inPath = Object.entries(sharedSchemas).map(([name, schema]) => [name, pathParameter(name, schema)])
  const inHeader = Object.entries(headerParameters).map(([name, schema]) => [
    name,
    parameter({ name, in: 'header', required: false }, schema),
  ])
  return Object.fromEntries([...inPath, ...inHeader])
}

/** The parameters of one operation: path, query and headers. */
export function parametersOf(route: Route): unknown[] {
  return [
    ...pathNames(route.path).map((name) => inPath(route, name)),
    ...Object.entries(route.docs.query ?? {}).map(([name, schema]) => {
      const required = route.docs.required?.includes(name) === true
      return parameter({ name, in: 'query', required }, schema)
    }),
    ...headersOf(route).map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ]
}

/** Names of the parameters in a path, in order. */
export function pathNames(path: string): string[] {
  return path.split('/').flatMap((part) => (part.startsWith(':') ? [part.slice(1)] : []))
}

function headersOf(route: Route): string[] {
  const { docs, kind } = route
  const names: string[] = []
  if (docs.idempotent === true) names.push('Idempotency-Key')
  if (docs.ifMatch === true) names.push('If-Match')
  if (kind === 'stream') names.push('Last-Event-ID')
  if (kind === 'ingest' || kind === 'import') names.push('Content-Encoding')
  if (docs.agentHeader === true) names.push('Strandfast-Agent')
  if (kind === 'import') names.push('Strandfast-Agent-Seed')
  return names
}

/** A path parameter: of the route, or a reference to one that many operations share. */
function inPath({ docs }: Route, name: string): unknown {
  const own = docs.path?.[name]
  return own === undefined ? { $ref: `#/components/parameters/${name}` } : pathParameter(name, own)
}

function pathParameter(name: string, schema: TSchema): unknown {
  return parameter({ name, in: 'path', required: true }, schema)
}

/** A parameter. Its description and example are placed beside the schema, where readers expect them. */
function parameter(head: { name: string; in: string; required: boolean }, schema: TSchema): unknown {
  const { example, ...shown } = { example: undefined, ...schema }
  const description = 'description' in shown ? { description: shown.description } : {}
  return { ...head, ...description, schema: schemaOf(shown), ...(example === undefined ? {} : { example }) }
}
