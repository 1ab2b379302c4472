import { createHash } from 'node:crypto'
import type { Policy, PolicyAction } from '../../src/auth/row-policy.js'
import { assert } from '../../src/base/assert.js'
import { asBuffer } from '../../src/base/bytes.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { missingMember, refuseAll } from '../../src/base/faults.js'
import { limits } from '../../src/base/limits/limits.js'
import { isServerAgent } from '../../src/strand/organism-id.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { FoundRecord, RecordAppend } from '../../src/protocol/record-messages.js'
import { locateFault } from '../../src/strand/json-fault.js'
import { readJson } from '../../src/strand/json.js'
import { batchDone, recordView, writeResponse } from '../../src/wire/render.js'
import type { CommitGroup, Draft } from '../shard/commit-group.js'
import type { StoredRecord } from '../store/tables/record-codec.js'
import type { PendingRecord } from '../store/write-set.js'
import { splitBatch } from './batch-split.js'
import { addContent } from './idempotency/answers.js'
import {
  PageBudget,
  agentToRead,
  covers,
  grantOf,
  hasPolicy,
  isRefused,
  refuserOf,
} from '../mutations/row-access.js'
import {
  findAgent,
  importOpen,
  noSuchAgent,
  type Decision,
  type ShardState,
  type PreparedWrite,
  type Steps,
  type Turn,
} from '../shard/state.js'
import { publicKeyOf } from '../store/tables/agents.js'
import type { Agent } from '../store/tables/agent.js'
import { makeAgent } from '../shard/new-agent.js'
import {
  answeredBefore,
  contentDigest,
  keyedRequest,
  preparedDraft,
  writeKeyed,
} from './idempotency/answers.js'
import { draftOf, faulty, isObject, readDraft, type DraftRules } from './drafts.js'
import type { FeatureCommands } from '../shard/command-table.js'
import { isDeleted } from '../store/tables/mutations.js'

/** Records. */
export const recordCommands = {
  writes: {
    recordAppend: { decide: recordAppend, prepare: prepareRecord },
  },
  longWrites: {
    batchAppend: { steps: batchAppend },
  },
  reads: {
    recordGet: { answer: recordGet, isForCallerAlone: true },
    recordFind: { answer: recordFind, isForCallerAlone: true },
  },
} satisfies FeatureCommands

/** Appends a record (POST …/records). */
function recordAppend(state: ShardState, command: CommandOf<'recordAppend'>, group: CommitGroup): Decision {
  return prepareRecord(state, command).run(group)
}

function prepareRecord(state: ShardState, command: CommandOf<'recordAppend'>) {
  return preparedDraft(readRecord(state, command), (draft, group) =>
    appendOne(state, { ...command, draft }, group),
  )
}

function readRecord(
  state: ShardState,
  { body, options }: Pick<CommandOf<'recordAppend'>, 'body' | 'options'>,
): Draft | Refusal {
  return readDraft(body, draftRules(state, options))
}

/**
 * Appends a draft to its agent, which is created if `emerge` allows it; for users 403 unless a policy allows
 * it.
 */
export function appendOne(
  state: ShardState,
  write: WriteTarget & { draft: Draft },
  group: CommitGroup,
): Decision {
  const agent = targetAgent(state, write, group)
  if ('code' in agent) return agent
  const { access, draft } = write
  const grant = grantOf(agent, 'write', access)
  if (isRefused(grant)) return grant
  if (!covers(grant, draft)) return refuserOf(state, agent, { action: 'write', access })(draft)
  const record = group.append(agent, draft)
  if ('code' in record) return record
  return () => ({ kind: 'reply', status: 201, body: writeResponse(agent.name, record) })
}

/** Appends a batch (POST …/batch), or finds the earlier answer to its Idempotency-Key. */
function* batchAppend(state: ShardState, command: CommandOf<'batchAppend'>, turn: Turn): Steps<Decision> {
  const { agent, options } = command
  const request = options.idempotency && keyedRequest(command, { ...options.idempotency, agent })
  const before = request && answeredBefore(state, turn.group, request)
  if (typeof before === 'function') return before
  const read = yield* prepareBatch(state, command, turn)
  if ('code' in read) return before ?? read
  const { ready, content } = read
  if (request !== undefined) request.content = contentDigest(command, content)
  const { group } = turn
  // The same batch may have been sent in another notation, or written by another request while this one was
  // parsed.
  const earlier = request && answeredBefore(state, group, request)
  if (earlier !== undefined) return earlier
  if (request === undefined) return ready(group)
  return writeKeyed(state, { request, group }, { write: () => ready(group), isStored: () => true })
}

/**
 * Parses a batch over several turns (POST …/records/batch). `ready` then writes all or none of its records,
 * or each by itself, in one group.
 * @returns `content`: a digest of the records if the batch has an Idempotency-Key
 */
function* prepareBatch(
  state: ShardState,
  command: CommandOf<'batchAppend'>,
  turn: Turn,
): Steps<{ ready: PreparedWrite; content: string } | Refusal> {
  const { access } = command
  const agent = findAgent(state, turn.group, command.agent)
  if (access !== undefined && !hasPolicy(agent, 'write'))
    return refuserOf(state, agent, { action: 'write', access })()
  const read = yield* readBatch(state, command, turn)
  if ('code' in read) return read
  return { ready: (group) => writeBatch(state, { command, read }, group), content: read.content ?? '' }
}

function writeBatch(
  state: ShardState,
  { command, read }: { command: CommandOf<'batchAppend'>; read: Batch },
  group: CommitGroup,
): Decision {
  // One more reading for the genesis record of a new agent.
  const skew = group.reserve(read.drafts.length + 1)
  if (skew !== undefined) return skew
  const agent = targetAgent(state, command, group)
  if ('code' in agent) return agent
  const batch = allowedBatch(state, read, { agent, access: command.access })
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

/** A record by its hash, with its state if it is deleted or erased. */
function recordGet(state: ShardState, command: CommandOf<'recordGet'>): Outcome {
  const agent = agentToRead(state, command)
  if ('code' in agent) return agent
  const grant = grantOf(agent, 'read', command.access)
  if (isRefused(grant)) return grant
  const record = state.store.findRecord(agent, command.hash)
  if (record === undefined || !covers(grant, record)) return noSuchRecord(command.hash)
  const deleted = isDeleted(state.store.environment, agent, { seq: record.seq, asOfSeq: agent.head.seq })
  return {
    kind: 'reply',
    status: 200,
    body: recordView(record, publicKeyOf(agent, record.keyIndex), deleted),
    ...((deleted || record.erased === true) && ({ deleted: true } as const)),
  }
}

/** The records of all agents of the shard that the caller may read and whose hash begins with the digits. */
function recordFind({ store }: ShardState, { digits, limit, access }: CommandOf<'recordFind'>): Outcome {
  const records: FoundRecord[] = []
  const budget = new PageBudget()
  for (const record of store.recordsByDigits(digits)) {
    if (records.length === limit || budget.spent) break
    budget.read(record.body.length)
    const { agentNo, seq, hash, type, hlc } = record
    const agent = store.agents.nameOf(agentNo)
    if (access !== undefined && !mayRead(store.agents.find(agent), record, access)) continue
    records.push({ agent, seq, hash, type, hlc })
  }
  return { kind: 'recordsFound', records }
}

/** Whether the policies of an agent let a user read a record of it. */
function mayRead(
  agent: Agent | undefined,
  record: StoredRecord,
  access: NonNullable<RecordAppend['access']>,
): boolean {
  if (agent === undefined || !hasPolicy(agent, 'read')) return false
  const grant = grantOf(agent, 'read', access)
  return !isRefused(grant) && covers(grant, record)
}

/** 404 for a hash that is not on the strand of the agent. */
export function noSuchRecord(hash: string): Refusal {
  return refuse('record_not_found', `Record ${hash} not found on the strand of this agent`)
}

export function draftRules(state: ShardState, options: RecordAppend['options']): DraftRules {
  return { recordBytesMax: state.recordBytesMax, signing: options.signing ?? state.signing }
}

interface WriteTarget extends Pick<RecordAppend, 'agent' | 'emerge' | 'options' | 'access'> {
  /** The policy that a user needs; `write` if absent. */
  needs?: PolicyAction
}

/**
 * The agent of a write, which exists or is created by the write; 404, 412. A user gets 403 forbidden or
 * policy_pending unless the agent exists and has a policy for the action.
 */
export function targetAgent(state: ShardState, write: WriteTarget, group: CommitGroup): Agent | Refusal {
  if (isServerAgent(write.agent)) return serverOnly
  const agent = findAgent(state, group, write.agent)
  const { access, needs: action = 'write' } = write
  const isUser = access !== undefined
  if (isUser && !hasPolicy(agent, action)) return refuserOf(state, agent, { action, access })()
  const ifMatch = write.options.ifMatch
  if (ifMatch !== undefined && !matchesHead(agent, ifMatch)) {
    const mayRead = !isUser || hasPolicy(agent, 'read')
    return refuse('head_mismatch', 'The chain head does not match If-Match: read it again', {
      ...(mayRead && { extra: { chain_head: agent?.head.hash ?? null } }),
    })
  }
  if (agent !== undefined) return agent.importing ? importOpen(agent.name) : agent
  if (!write.emerge || !mayEmerge(write.agent)) return noSuchAgent(write.agent)
  // The agent is created together with its first record.
  return group.reserve(2) ?? makeAgent(state, { agent: write.agent, zone: 'governed' }, group)
}

/** Whether `If-Match` matches the head of an agent. */
function matchesHead(agent: Agent | undefined, ifMatch: string): boolean {
  if (agent === undefined) return false
  return ifMatch === agent.head.hash || ifMatch === '*' || ifMatch.split(',').includes(agent.head.hash)
}

/** The refusal if no API key may write to the agent or create it; 403, 404, 409. */
export function emergeRefusal(state: ShardState, name: string, group: CommitGroup): Refusal | undefined {
  if (isServerAgent(name)) return serverOnly
  const agent = findAgent(state, group, name)
  if (agent === undefined) return mayEmerge(name) ? undefined : noSuchAgent(name)
  return agent.importing ? importOpen(name) : undefined
}

/** Whether a write may create the agent; agents of organisms are created only by their organism. */
function mayEmerge(name: string): boolean {
  return !name.includes('::')
}

/** 403 for writes to the server log and the audit strand. */
const serverOnly = refuse('forbidden', 'Only the server can write to the server log and the audit strand')

interface Batch {
  atomic: boolean
  drafts: (Draft | Refusal)[]
  /**
   * The policies by which the drafts were judged, and the verdicts; the policies may change before the write.
   */
  judged?: { policies: readonly Policy[]; allowed: boolean[] }
  /** A digest of the records if the batch has an Idempotency-Key. */
  content?: string
}

/** Parses the records of a batch over several turns. */
function* readBatch(
  state: ShardState,
  { agent, body, options, access }: CommandOf<'batchAppend'>,
  turn: Turn,
): Steps<Batch | Refusal> {
  const split = yield* splitBatch(asBuffer(body), turn)
  if ('code' in split) return locateFault(body, split)
  const { frame, items } = split
  const atomic = atomicOf(frame, items.length)
  if (typeof atomic !== 'boolean') return atomic
  const rules = draftRules(state, options)
  const target = access === undefined ? undefined : findAgent(state, turn.group, agent)
  const policies = target?.policies ?? []
  const grant = target === undefined ? undefined : grantOf(target, 'write', access)
  if (isRefused(grant)) return grant
  const drafts: (Draft | Refusal)[] = []
  const allowed: boolean[] = []
  const content = options.idempotency && createHash('sha256').update(`${atomic}\n`)
  for (const [index, item] of items.entries()) {
    const draft = batchDraft(item, `/records/${index}`, rules)
    if ('fault' in draft) return locateFault(body, draft.fault)
    drafts.push(draft.draft)
    if (content !== undefined) addContent(content, draft.draft, item)
    allowed.push('code' in draft.draft || covers(grant, draft.draft))
    if (turn.spent()) yield
  }
  const more = {
    ...(access !== undefined && { judged: { policies, allowed } }),
    ...(content !== undefined && { content: content.digest('base64') }),
  }
  if (!atomic && !drafts.every((draft) => 'code' in draft)) return { atomic, drafts, ...more }
  const whole = wholeBatch(drafts)
  return 'code' in whole ? whole : { ...whole, ...more }
}

/** Whether a batch is all or none; checks its members. */
function atomicOf(frame: unknown, count: number): boolean | Refusal {
  if (!isObject(frame)) return faulty('', 'Expected an object with the member records')
  const { atomic = true } = frame
  if (typeof atomic !== 'boolean') return faulty('/atomic', 'Expected true or false')
  const records = frame['records']
  if (records === undefined) return refuseAll(missingMember('', 'records'), [])
  if (!Array.isArray(records) || records.length === 0) return faulty('/records', 'Expected a list of records')
  assert(records.length === count, 'the batch was split into all of its records')
  for (const member of Object.keys(frame)) {
    if (member !== 'records' && member !== 'atomic')
      return faulty('', 'Unknown member: expected only records and atomic')
  }
  return atomic
}

/** The draft of a record of a batch, or the fault of the whole request. */
function batchDraft(
  item: Uint8Array,
  pointer: string,
  rules: DraftRules,
): { draft: Draft | Refusal } | { fault: Refusal } {
  // The limit applies to the canonical form of a record, which can be shorter than its text.
  if (item.length > rules.recordBytesMax * 2 + limits.requestBytesMax) {
    return { draft: refuse('too_large', `Expected a record of at most ${rules.recordBytesMax} bytes`) }
  }
  const parsed = readJson(item, limits.nestingDepthMax + 1)
  return 'code' in parsed ? { fault: parsed } : { draft: draftOf(parsed.value, pointer, rules) }
}

/** The batch without the records that the policies of a user do not allow; 403 if it is all or none. */
function allowedBatch(
  state: ShardState,
  batch: Batch,
  { agent, access }: { agent: Agent; access: RecordAppend['access'] },
): Batch | Refusal {
  if (access === undefined) return batch
  const { policies, allowed } = batch.judged ?? { policies: undefined, allowed: [] }
  const grant = grantOf(agent, 'write', access)
  if (isRefused(grant)) return grant
  const isAllowed = (draft: Draft, index: number) =>
    policies === agent.policies ? allowed[index] === true : covers(grant, draft)
  const refused = refuserOf(state, agent, { action: 'write', access })
  const drafts = batch.drafts.map((draft, index) =>
    'code' in draft || isAllowed(draft, index) ? draft : refusedAt(refused(draft), `/records/${index}/data`),
  )
  const none = drafts.every((draft) => 'code' in draft)
  return batch.atomic || none ? wholeBatch(drafts) : { atomic: false, drafts }
}

function refusedAt(refusal: Refusal, pointer: string): Refusal {
  const { code, detail } = refusal
  return { ...refusal, faults: [{ pointer, code, detail }] }
}

/** Refuses a batch with all of its faults, if it has any. */
function wholeBatch(drafts: (Draft | Refusal)[]): Batch | Refusal {
  const refusals = drafts.filter((draft) => 'code' in draft)
  const [first] = refusals
  if (first === undefined) return { atomic: true, drafts }
  return {
    ...first,
    faults: refusals.flatMap((refusal) => refusal.faults ?? []).slice(0, limits.ingestFaultsMax),
  }
}
