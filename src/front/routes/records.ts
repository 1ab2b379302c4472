import { Type } from 'typebox'
import { second } from '../../wire/example-values.js'
import { limits } from '../../base/limits/limits.js'
import { refuse, type Refusal } from '../../base/errors.js'
import type { FoundRecord } from '../../protocol/record-messages.js'
import { compareHlc, formatHlc } from '../../strand/hlc.js'
import {
  BatchWriteBody,
  BatchWritten,
  RecordView,
  RecordWriteBody,
  RecordsFound,
  WriteResponse,
} from '../../wire/records.js'
import { json, unexpected } from './answers.js'
import {
  collectionParameter,
  agentRefusal,
  faultyParameter,
  hashParameter,
  reachableAgent,
  reachesStrand,
  Signed,
  withAccess,
  writeOptions,
} from './parameters.js'
import type { AddressedCommand, CommandRoute, HandlerRoute, RouteRequest } from './route.js'

/** Bytes of JSON around the body of a record: member names, the type and white space. */
const WRAPPER_BYTES = 65_536

/**
 * A route that appends to a named agent, which must exist, or to a collection, which its first write creates.
 */
function appendRoute(path: string, emerge: boolean): CommandRoute {
  return {
    kind: 'command',
    method: 'post',
    path: `${path}/records`,
    scope: 'records:write',
    users: true,
    // The shard limits the canonical body; JSON can be longer than its canonical form.
    bodyBytesMax: limits.recordBytesMax * 2 + WRAPPER_BYTES,
    errors: emerge ? ['import_open'] : [],
    docs: {
      summary: emerge
        ? 'Append a record to a collection, which the first write creates'
        : 'Append a record to an agent',
      tag: 'Records',
      query: { signing: Signed },
      request: RecordWriteBody,
      answers: { 201: WriteResponse },
      idempotent: true,
      ifMatch: true,
    },
    toCommand: (request) => appendCommand(request, 'recordAppend', emerge),
  }
}

function batchRoute(path: string, emerge: boolean): CommandRoute {
  return {
    kind: 'command',
    method: 'post',
    path: `${path}/records/batch`,
    scope: 'records:write',
    users: true,
    bodyBytesMax: limits.batchBytesMax,
    errors: emerge ? ['import_open'] : [],
    docs: {
      summary: emerge ? 'Append a batch to a collection' : 'Append a batch to an agent',
      tag: 'Records',
      query: { signing: Signed },
      request: BatchWriteBody,
      answers: { 201: BatchWritten },
      idempotent: true,
      ifMatch: true,
    },
    toCommand: (request) => appendCommand(request, 'batchAppend', emerge),
  }
}

function appendCommand(
  request: RouteRequest,
  kind: 'recordAppend' | 'batchAppend',
  emerge: boolean,
): AddressedCommand | Refusal {
  const agent = emerge ? reachableCollection(request) : reachableAgent(request, request.params[0])
  if (typeof agent !== 'string') return agent
  const options = writeOptions(request)
  if ('code' in options) return options
  return { agent, command: withAccess(request, { kind, agent, emerge, body: request.body, options }) }
}

function reachableCollection(request: RouteRequest): string | Refusal {
  const name = collectionParameter(request.params[0])
  if (typeof name !== 'string') return name
  return agentRefusal(request, name) ?? name
}

const get: CommandRoute = {
  kind: 'command',
  method: 'get',
  path: '/v1/agents/:agent/records/:hash',
  scope: 'records:read',
  users: true,
  docs: { summary: 'One record by its hash', tag: 'Records', answers: { 200: RecordView } },
  toCommand(request) {
    const agent = reachableAgent(request, request.params[0])
    if (typeof agent !== 'string') return agent
    const hash = hashParameter(request.params[1], ':hash')
    if (typeof hash !== 'string') return hash
    return { agent, command: withAccess(request, { kind: 'recordGet', agent, hash }) }
  },
}

/** A hash, or at least the digits of one that are enough to find few records among billions. */
const hashDigits = /^(?:sha256:)?([0-9a-f]{8,64})$/

/** GET /v1/records/:hash_digits: the records of all agents that the caller may read, newest first. */
const find: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/v1/records/:hash_digits',
  scope: 'records:read',
  users: true,
  errors: ['record_not_found'],
  docs: {
    summary: 'Find a record by its hash, or by the first 8 or more digits, among all agents',
    path: {
      hash_digits: Type.String({
        pattern: '^(sha256:)?[0-9a-f]{8,64}$',
        description: 'The first 8 to 64 hex digits of the hash of a record',
        example: second.slice(0, 8),
      }),
    },
    tag: 'Records',
    answers: { 200: RecordsFound },
  },
  async handle(request, context) {
    const digits = hashDigits.exec(request.params[0] ?? '')?.[1]
    if (digits === undefined)
      return faultyParameter(':hash_digits', 'Expected the first 8 to 64 hex digits of a hash')
    const limit = limits.recordsFoundMax
    const found: FoundRecord[] = []
    const outcomes = await context.requestAll(withAccess(request, { kind: 'recordFind', digits, limit }))
    for (const outcome of outcomes) {
      if (outcome.kind !== 'recordsFound') return unexpected(outcome)
      found.push(...outcome.records.filter(({ agent }) => reachesStrand(request.principal, agent)))
    }
    if (found.length === 0)
      return refuse('record_not_found', `No record has a hash that begins with ${digits}`)
    const newest = found.sort((one, other) => compareHlc(other.hlc, one.hlc)).slice(0, limit)
    return json(200, { records: newest.map(foundView) })
  },
}

function foundView({ agent, seq, hash, type, hlc }: FoundRecord): RecordsFound['records'][number] {
  return { agent, record_id: hash, seq, type, timestamp_hlc: formatHlc(hlc), timestamp_ms: hlc.ms }
}

export const recordRoutes = [
  appendRoute('/v1/agents/:agent', false),
  appendRoute('/v1/collections/:name', true),
  batchRoute('/v1/agents/:agent', false),
  batchRoute('/v1/collections/:name', true),
  get,
  find,
]
