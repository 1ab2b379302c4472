import { policyFaults } from '../../src/auth/row-policy.js'
import { unreachable } from '../../src/base/assert.js'
import type { Effect } from '../../src/protocol/import-messages.js'
import { authorOf, type Mutation } from '../../src/protocol/proposal-messages.js'
import { eraseType, genesisType, keyRotateType } from '../../src/strand/record-type.js'
import { isSystemType } from '../../src/strand/record-type.js'
import { systemBodies } from '../../src/wire/system-records.js'

/**
 * The effect of a record on the tables of the store, which user records do not have; or what is wrong with
 * the record.
 */
export type ReadEffect = { effect?: Effect } | { fault: string }

const badBody: ReadEffect = { fault: 'The body of the system record is invalid' }

/** Reads the effect of a record, whose body is JSON and whose signature was verified. */
export function effectOf(agent: string, type: string, body: unknown): ReadEffect {
  // A record may have the type `constructor` or `__proto__`, which every object inherits.
  const read = Object.hasOwn(readers, type) ? readers[type] : undefined
  if (read !== undefined) return read(body, agent)
  return isSystemType(type) ? { fault: `The system record has the unknown type ${type}` } : {}
}

const readers: Readonly<Record<string, (body: unknown, agent: string) => ReadEffect>> = {
  [genesisType]: (body) => {
    const read = systemBodies.genesis.value(body)
    if ('code' in read) return badBody
    const { zone, created_at_ms: createdAtMs } = read.value
    return { effect: { kind: 'genesis', zone, createdAtMs } }
  },
  [keyRotateType]: (body) => {
    const read = systemBodies.keyRotate.value(body)
    if ('code' in read) return badBody
    return { effect: { kind: 'key', publicKey: read.value.public_key, ...mutatedBy(read.value) } }
  },
  'sys/tombstone': (body) => recordEffect(body, 'delete'),
  'sys/restore': (body) => recordEffect(body, 'restore'),
  [eraseType]: (body) => recordEffect(body, 'erase'),
  'sys/zone': (body) => {
    const read = systemBodies.zone.value(body)
    if ('code' in read) return badBody
    return { effect: { kind: 'zone', zone: read.value.zone, ...mutatedBy(read.value) } }
  },
  'sys/policy': (body) => {
    const read = systemBodies.policy.value(body)
    if ('code' in read || policyFaults(read.value.policies).length > 0) return badBody
    return { effect: { kind: 'policies', policies: read.value.policies, ...mutatedBy(read.value) } }
  },
  'sys/proposal': proposalEffect,
  'sys/vote': (body) => {
    const read = systemBodies.vote.value(body)
    if ('code' in read) return badBody
    const { proposal, proposal_seq: proposalSeq, vote } = read.value
    return { effect: { kind: 'vote', proposal, proposalSeq, vote, ...authorOf(read.value) } }
  },
  'sys/applied': (body) => {
    const read = systemBodies.applied.value(body)
    if ('code' in read) return badBody
    const { proposal, proposal_seq: proposalSeq, state, reason } = read.value
    return {
      effect: { kind: 'applied', proposal, proposalSeq, state, ...(reason !== undefined && { reason }) },
    }
  },
  'edge/add': (body, agent) => {
    const read = systemBodies.edgeAdd.value(body)
    if ('code' in read || read.value.src !== agent) return badBody
    const { dst, edge_type: edgeType, weight } = read.value
    return { effect: { kind: 'edge', dst, edgeType, live: true, weight } }
  },
  'edge/remove': (body, agent) => {
    const read = systemBodies.edgeRemove.value(body)
    if ('code' in read || read.value.src !== agent) return badBody
    const { dst, edge_type: edgeType } = read.value
    return { effect: { kind: 'edge', dst, edgeType, live: false, weight: 0, ...mutatedBy(read.value) } }
  },
}

function recordEffect(body: unknown, action: 'delete' | 'restore' | 'erase'): ReadEffect {
  const read = systemBodies.record.value(body)
  if ('code' in read) return badBody
  const { target, target_seq: targetSeq } = read.value
  return { effect: { kind: 'record', action, target, targetSeq, ...mutatedBy(read.value) } }
}

function mutatedBy({ proposal_seq: seq }: { proposal_seq?: number }): { mutatedBy?: number } {
  return seq === undefined ? {} : { mutatedBy: seq }
}

function proposalEffect(body: unknown): ReadEffect {
  const read = systemBodies.proposal.value(body)
  if ('code' in read) return badBody
  const { principal: proposer, line } = authorOf(read.value)
  const { in_zone: zone, effective_at_ms: effectiveAtMs, expires_at_ms: expiresAtMs } = read.value
  const effect: Effect = {
    kind: 'proposal',
    mutation: mutationOf(read.value),
    zone,
    proposer,
    ...(line !== undefined && { line }),
    expiresAtMs,
    ...(effectiveAtMs !== null && { effectiveAtMs }),
  }
  return { effect }
}

type ProposalBody = Extract<
  ReturnType<(typeof systemBodies)['proposal']['value']>,
  { value: unknown }
>['value']

function mutationOf(body: ProposalBody): Mutation {
  switch (body.action) {
    case 'zone':
      return { action: body.action, zone: body.zone }
    case 'policies':
      return { action: body.action, policies: body.policies }
    case 'rotate_key':
      return {
        action: body.action,
        publicKey: body.public_key,
        ...(body.reason !== undefined && { reason: body.reason }),
      }
    case 'remove_edge':
      return { action: body.action, edgeType: body.edge_type, dst: body.dst }
    case 'delete':
    case 'restore':
    case 'erase':
      return { action: body.action, target: body.target, targetSeq: body.target_seq }
    default:
      return unreachable(body)
  }
}
