import type { PolicyAction } from '../../src/auth/row-policy.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits.js'
import { isServerAgent } from '../../src/base/organism-id.js'
import type { CommandOf, Outcome, UserAccess, WriteOptions } from '../../src/protocol/messages.js'
import { readJson } from '../../src/strand/json.js'
import { batchDone, recordView, writeResponse } from '../../src/wire/render.js'
import type { CommitGroup, Draft, PendingRecord } from '../commit-group.js'
import { agentToRead, covers, grantOf, hasPolicy, notAllowed, type Grant } from '../row-access.js'
import {
  findAgent,
  importOpen,
  noSuchAgent,
  refused,
  type Decision,
  type ShardState,
} from '../shard-state.js'
import { publicKeyOf, type Agent } from '../store/agents.js'
import { makeAgent } from './agents.js'
import { draftOf, faulty, isObject, readDraft, type DraftRules } from './drafts.js'

/** Appends one record (contract.md 5, POST …/records). */
export function recordAppend(
  state: ShardState,
  command: CommandOf<'recordAppend'>,
  group: CommitGroup,
): Decision {
  const draft = readDraft(command.body, draftRules(state, command.options))
  if ('code' in draft) return draft
  return appendOne(state, { ...command, draft }, group)
}

/** Appends a draft to the agent it is for, which is made when it may emerge; for users 403 unless a policy allows it. */
export function appendOne(state: ShardState, write: Target & { draft: Draft }, group: CommitGroup): Decision {
  const agent = targetAgent(state, write, group)
  if ('code' in agent) return agent
  if (!covers(grantOf(agent, 'write', write.access), write.draft.body)) return notAllowed
  const record = group.append(agent, write.draft)
  if ('code' in record) return record
  return () => ({ kind: 'reply', status: 201, body: writeResponse(agent.name, record) })
}

/** Appends a batch: all or none, or each by itself (contract.md 5, POST …/records/batch). */
export function batchAppend(
  state: ShardState,
  command: CommandOf<'batchAppend'>,
  group: CommitGroup,
): Decision {
  const read = readBatch(command.body, draftRules(state, command.options))
  if ('code' in read) return read
  // One more for the genesis record of an agent that emerges.
  const skew = group.reserve(read.drafts.length + 1)
  if (skew !== undefined) return skew
  const agent = targetAgent(state, command, group)
  if ('code' in agent) return agent
  const batch = allowedBatch(read, grantOf(agent, 'write', command.access))
  if ('code' in batch) return batch
  const results: (PendingRecord | Refusal)[] = []
  for (const draft of batch.drafts) {
    results.push('code' in draft ? draft : group.append(agent, draft))
  }
  return () => ({
    kind: 'reply',
    status: 201,
    body: batchDone(
      results.map((result) =>
        'code' in result
          ? JSON.stringify({ error: { code: result.code, detail: result.detail } })
          : writeResponse(agent.name, result),
      ),
    ),
  })
}

/** One record by its hash; a deleted or erased one is shown as such (contract.md 5). */
export function recordGet(state: ShardState, command: CommandOf<'recordGet'>): Outcome {
  const agent = agentToRead(state, command)
  if ('code' in agent) return refused(agent)
  const record = state.store.findRecord(agent, command.hash)
  const seen = record !== undefined && covers(grantOf(agent, 'read', command.access), record.body)
  if (!seen) return refused(noSuchRecord(command.hash))
  const deleted = state.store.isDeleted(agent, record.seq, agent.head.seq)
  return {
    kind: 'reply',
    status: 200,
    body: recordView(record, publicKeyOf(agent, record.keyIndex), deleted),
  }
}

/** 404 for a record that the agent's strand does not have. */
export function noSuchRecord(hash: string): Refusal {
  return refuse('record_not_found', `Expected the hash of a record of this agent, got ${hash}`)
}

/** How the drafts of a write are made. */
export function draftRules(state: ShardState, options: WriteOptions): DraftRules {
  return { recordBytesMax: state.recordBytesMax, signing: options.signing ?? state.signing }
}

/** What a write goes to. */
interface Target {
  agent: string
  emerge: boolean
  options: WriteOptions
  access?: UserAccess
  /** The policy that a user needs; `write` when absent. */
  needs?: PolicyAction
}

/**
 * The agent that a write goes to: there, or made by this write; 404, 412. For users one that has a policy for it, or
 * 403: a user makes none.
 */
export function targetAgent(state: ShardState, write: Target, group: CommitGroup): Agent | Refusal {
  if (isServerAgent(write.agent)) return ownWritesOnly
  const agent = findAgent(state, group, write.agent)
  const isUser = write.access !== undefined
  if (isUser && !hasPolicy(agent, write.needs ?? 'write')) return notAllowed
  const ifMatch = write.options.ifMatch
  if (ifMatch !== undefined && agent?.head.hash !== ifMatch) {
    const mayRead = !isUser || hasPolicy(agent, 'read')
    return refuse('head_mismatch', 'Expected the chain head named by If-Match', {
      ...(mayRead && { extra: { chain_head: agent?.head.hash ?? null } }),
    })
  }
  if (agent !== undefined) return agent.importing ? importOpen(agent.name) : agent
  // Agents of organisms are made by their organism only.
  if (!write.emerge || write.agent.includes('::')) return noSuchAgent(write.agent)
  // The agent emerges together with the record that it emerges from.
  return group.reserve(2) ?? makeAgent(state, { agent: write.agent, zone: 'governed' }, group)
}

/** 403 for writes to strands on which the server tells of its strands and of itself, and of nothing else. */
const ownWritesOnly = refuse(
  'forbidden',
  'Expected another agent: only the server writes to its log and its audit strand',
)

interface Batch {
  atomic: boolean
  drafts: (Draft | Refusal)[]
}

function readBatch(bytes: Uint8Array, rules: DraftRules): Batch | Refusal {
  // The request, the list and the item stand around each body.
  const parsed = readJson(bytes, limits.nestingDepthMax + 3)
  if ('code' in parsed) return parsed
  const { value } = parsed
  if (!isObject(value)) return faulty('', 'Expected an object with the member records')
  const { atomic = true } = value
  if (typeof atomic !== 'boolean') return faulty('/atomic', 'Expected true or false')
  const records = value['records']
  if (!Array.isArray(records) || records.length === 0) return faulty('/records', 'Expected a list of records')
  for (const member of Object.keys(value)) {
    if (member !== 'records' && member !== 'atomic') return faulty('', 'Expected only records and atomic')
  }
  if (records.length > limits.batchRecordsMax) {
    return refuse('too_large', `Expected at most ${limits.batchRecordsMax} records, got ${records.length}`)
  }
  const drafts = records.map((item: unknown, index) => draftOf(item, `/records/${index}`, rules))
  return atomic || drafts.every((draft) => 'code' in draft) ? wholeBatch(drafts) : { atomic, drafts }
}

/** The batch with what a user's policies do not allow refused in its place; 403 for one that is all or none. */
function allowedBatch(batch: Batch, grant: Grant): Batch | Refusal {
  if (grant === undefined) return batch
  const drafts = batch.drafts.map((draft, index) =>
    'code' in draft || covers(grant, draft.body) ? draft : notAllowedAt(`/records/${index}/data`),
  )
  const none = drafts.every((draft) => 'code' in draft)
  return batch.atomic || none ? wholeBatch(drafts) : { atomic: false, drafts }
}

function notAllowedAt(pointer: string): Refusal {
  const { code, detail } = notAllowed
  return { code, detail, faults: [{ pointer, code, detail }] }
}

/** A batch that is all or none, or of which nothing is good, is refused for every fault in it at once. */
function wholeBatch(drafts: (Draft | Refusal)[]): Batch | Refusal {
  const refusals = drafts.filter((draft) => 'code' in draft)
  const [first] = refusals
  if (first === undefined) return { atomic: true, drafts }
  return {
    ...first,
    faults: refusals.flatMap((refusal) => refusal.faults ?? []).slice(0, limits.ingestFaultsMax),
  }
}
