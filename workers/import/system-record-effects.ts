import { unreachable } from '../../src/base/assert.js'
import { limits } from '../../src/base/limits/limits.js'
import type { Effect } from '../../src/protocol/import-messages.js'
import { eraseType, genesisType, importedType, keyRotateType } from '../../src/strand/record-type.js'
import { isSystemType } from '../../src/strand/record-type.js'
import { systemBodies } from '../../src/wire/system-records.js'

/** A system record: its header, and its body, which is JSON. */
export interface SystemRecord {
  agent: string
  type: string
  seq: number
  prev: string
  /** The time of its clock, Unix milliseconds. */
  atMs: number
  body: unknown
}

/** An earlier record of the strand that a record names. */
export interface Target {
  seq: number
  /** Absent if the record names only the seq. */
  hash?: string
  /** Proposals are targets of votes and of what they led to; user records are targets of changes. */
  kind: 'proposal' | 'record'
}

/**
 * What a record of the strand does to the tables of the store (nothing, in most cases) and which records it
 * names; or what is wrong with it.
 */
export type ReadRecordEffect = { effect?: Effect; targets?: readonly Target[] } | { fault: string }

const badBody: ReadRecordEffect = { fault: 'The body of the system record is invalid' }

/**
 * Reads what an imported record does. Proposals, votes and policies do nothing: only their form is checked
 * (docs/adr/0022-import.md).
 */
export function effectOf(record: SystemRecord): ReadRecordEffect {
  // A record may have the type `constructor` or `__proto__`, which every object inherits.
  const read = Object.hasOwn(readers, record.type) ? readers[record.type] : undefined
  if (read === undefined) {
    return isSystemType(record.type) ? { fault: `The system record has the unknown type ${record.type}` } : {}
  }
  const found = read(record)
  if ('fault' in found) return found
  const isLater = found.targets?.some(({ seq }) => seq >= record.seq) === true
  return isLater ? { fault: 'The record names a record that is not before it' } : found
}

const readers: Readonly<Record<string, (record: SystemRecord) => ReadRecordEffect>> = {
  [genesisType]: ({ body, atMs }) => {
    const read = systemBodies.genesis.value(body)
    if ('code' in read) return badBody
    const { zone, created_at_ms: createdAtMs } = read.value
    if (createdAtMs > atMs + limits.clockAheadMsMax) {
      return { fault: 'The agent was created after its first record' }
    }
    return { effect: { kind: 'genesis', zone, createdAtMs } }
  },
  [keyRotateType]: ({ body }) => {
    const read = systemBodies.keyRotate.value(body)
    if ('code' in read) return badBody
    const { public_key: publicKey } = read.value
    return { effect: { kind: 'key', publicKey }, targets: proposalOf(read.value) }
  },
  'sys/tombstone': ({ body }) => recordEffect(body, 'delete'),
  'sys/restore': ({ body }) => recordEffect(body, 'restore'),
  [eraseType]: ({ body }) => recordEffect(body, 'erase'),
  'sys/zone': ({ body }) => {
    const read = systemBodies.zone.value(body)
    if ('code' in read) return badBody
    return { effect: { kind: 'zone', zone: read.value.zone }, targets: proposalOf(read.value) }
  },
  'sys/policy': ({ body }) => {
    const read = systemBodies.policy.value(body)
    return 'code' in read ? badBody : { targets: proposalOf(read.value) }
  },
  'sys/proposal': readProposal,
  'sys/vote': ({ body }) => {
    const read = systemBodies.vote.value(body)
    if ('code' in read) return badBody
    const { proposal: hash, proposal_seq: seq } = read.value
    return { targets: [{ seq, hash, kind: 'proposal' }] }
  },
  'sys/applied': ({ body, seq: ownSeq }) => {
    const read = systemBodies.applied.value(body)
    if ('code' in read) return badBody
    const { proposal: hash, proposal_seq: seq, effect_seq: effectSeq } = read.value
    if (effectSeq !== undefined && (effectSeq <= seq || effectSeq >= ownSeq)) return badBody
    return { targets: [{ seq, hash, kind: 'proposal' }] }
  },
  [importedType]: ({ body, seq, prev }) => {
    const read = systemBodies.imported.value(body)
    return 'code' in read || read.value.records !== seq || read.value.head !== prev ? badBody : {}
  },
  'edge/add': ({ body, agent }) => {
    const read = systemBodies.edgeAdd.value(body)
    if ('code' in read || read.value.src !== agent) return badBody
    const { dst, edge_type: edgeType, weight } = read.value
    return { effect: { kind: 'edge', dst, edgeType, live: true, weight } }
  },
  'edge/remove': ({ body, agent }) => {
    const read = systemBodies.edgeRemove.value(body)
    if ('code' in read || read.value.src !== agent) return badBody
    const { dst, edge_type: edgeType } = read.value
    return {
      effect: { kind: 'edge', dst, edgeType, live: false, weight: 0 },
      targets: proposalOf(read.value),
    }
  },
}

function recordEffect(body: unknown, action: 'delete' | 'restore' | 'erase'): ReadRecordEffect {
  const read = systemBodies.record.value(body)
  if ('code' in read) return badBody
  const { target, target_seq: targetSeq } = read.value
  return {
    effect: { kind: 'record', action, target, targetSeq },
    targets: [{ seq: targetSeq, hash: target, kind: 'record' }, ...proposalOf(read.value)],
  }
}

/** The proposal that led to a change. */
function proposalOf({ proposal_seq: seq }: { proposal_seq?: number }): Target[] {
  return seq === undefined ? [] : [{ seq, kind: 'proposal' }]
}

function readProposal({ body, atMs }: SystemRecord): ReadRecordEffect {
  const read = systemBodies.proposal.value(body)
  if ('code' in read) return badBody
  const { value } = read
  const latestMs = Math.max(value.effective_at_ms ?? 0, value.expires_at_ms)
  if (latestMs > atMs + limits.importProposalMsMax) return { fault: 'The proposal ends too late' }
  switch (value.action) {
    case 'zone':
    case 'policies':
    case 'rotate_key':
    case 'remove_edge':
      return {}
    case 'delete':
    case 'restore':
    case 'erase':
      return { targets: [{ seq: value.target_seq, hash: value.target, kind: 'record' }] }
    default:
      return unreachable(value)
  }
}
