import { createHash } from 'node:crypto'
import type { Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { canonicalJson, readJson } from '../../src/strand/json.js'
import { agentKeyRotate, agentZoneSet } from './agent-changes.js'
import { agentCreate, agentHead, agentList, agentStatus, keyClaim } from './agents.js'
import { apiKeyCreate, apiKeyDelete, apiKeyList, apiKeysUsed } from './api-keys.js'
import { auditAppend, auditOpen } from './audit.js'
import { authChange, revocationsList, authLookup } from './auth/namespace.js'
import { strandThen } from './as-of.js'
import { edgeAdd, edgeList, edgeRemove } from './graph.js'
import { ingestOne, ingestPieces, isAllOrNone, readOne } from './ingest.js'
import { recordMutate } from './mutations.js'
import { organismCreate, organismGet, organismList } from './organisms.js'
import { policiesGet, policiesSet } from './policies.js'
import { checkpointSign, strandLocate } from './proof.js'
import { authorsEnd, proposalAuthors, proposalDecide, proposalList } from './proposals.js'
import { proposalsSweep } from '../mutations/sweep.js'
import { recordQuery } from './query.js'
import { batchAppend, readRecord, recordAppend, recordFind, recordGet } from './records.js'
import { headsAll, headsCheck, headsMoved, logAppend, logFind, logOpen, logHeads } from './server-log.js'
import { isLargePart, strandImport, strandImportSteps } from './strand-import.js'
import { logPage, streamPage, watch } from './stream.js'
import { mailDue, mailSettle } from '../auth/outbox.js'
import type { CommitGroup, Draft } from '../shard/commit-group.js'
import {
  addContent,
  answeredBefore,
  contentDigest,
  isCheck,
  writeKeyed,
  keyedRequest,
} from './idempotency/answers.js'
import { ingestInOneGroup, ingestKeyed, ingestIdempotent } from './idempotency/ingest.js'
import { isOneLine } from './ingest/reader.js'
import type { Decision, ShardState, Steps, Turn } from '../shard/state.js'
import { agentOf, type CommandTable, type Read, type ShortWrite, type Write } from '../shard/command-table.js'

/** Whether a write takes so little time that other commands can wait for it. */
function isShortWrite(command: Write): command is ShortWrite {
  switch (command.kind) {
    case 'ingestChunk':
    case 'batchAppend':
    case 'uploadsEnd':
      return false
    case 'strandImport':
      return !isLargePart(command)
    case 'agentCreate':
      return command.isMember !== true
    default:
      return !('body' in command) || command.body.length <= limits.shortWriteBytesMax
  }
}

/** Decides a write over several turns, or finds the earlier answer to its Idempotency-Key. */
function* longSteps(state: ShardState, command: Write, turn: Turn): Steps<Decision> {
  switch (command.kind) {
    case 'ingestChunk':
      return yield* ingestSteps(state, command, turn)
    case 'batchAppend':
      return yield* batchSteps(state, command, turn)
    case 'strandImport':
      return yield* strandImportSteps(state, command, turn)
    case 'uploadsEnd':
      return () => ({ kind: 'done' })
    default:
      return decide(state, command, turn.group)
  }
}

function ingestSteps(state: ShardState, command: CommandOf<'ingestChunk'>, turn: Turn): Steps<Decision> {
  const { idempotency } = command.options
  if (idempotency === undefined) {
    return isAllOrNone(command) || isOneLine(command)
      ? ingestInOneGroup(state, command, turn)
      : ingestPieces(state, command, turn)
  }
  if (command.agent === '') return ingestKeyed(state, { command, ...idempotency }, turn)
  const request = keyedRequest(command, { ...idempotency, agent: command.agent })
  return ingestIdempotent(state, { chunk: command, request }, turn)
}

function* batchSteps(state: ShardState, command: CommandOf<'batchAppend'>, turn: Turn): Steps<Decision> {
  const { idempotency } = command.options
  const { agent } = command
  const request = idempotency && keyedRequest(command, { ...idempotency, agent })
  const before = request && answeredBefore(state, turn.group, request)
  if (typeof before === 'function') return before
  const read = yield* batchAppend(state, command, turn)
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

/** Decides a write, or finds the earlier answer to its Idempotency-Key. */
function decide(state: ShardState, command: ShortWrite, group: CommitGroup): Decision {
  const idempotency = 'options' in command ? command.options.idempotency : undefined
  if (idempotency === undefined) return write(state, command, group)
  const request = keyedRequest(command, { ...idempotency, agent: agentOf(command) })
  const before = answeredBefore(state, group, request)
  if (typeof before === 'function') return before
  const { content, run } = prepare(state, command)
  if (content !== undefined) request.content = contentDigest(command, content)
  const same = before && answeredBefore(state, group, request)
  if (same !== undefined) return same
  return writeKeyed(state, { request, group }, { write: () => run(group), isStored: () => !isCheck(command) })
}

/** Parses the body of a write once: its content identifies the request, and `run` carries the write out. */
function prepare(
  state: ShardState,
  command: ShortWrite,
): { content?: string | undefined; run: (group: CommitGroup) => Decision } {
  switch (command.kind) {
    case 'recordAppend': {
      const draft = readRecord(state, command)
      return { content: contentOf(draft), run: (group) => recordAppend(state, { command, draft }, group) }
    }
    case 'ingestOne': {
      const draft = readOne(state, command)
      return { content: contentOf(draft), run: (group) => ingestOne(state, { command, draft }, group) }
    }
    case 'requestClaim': {
      const parsed = readJson(command.body, limits.nestingDepthMax)
      const content = 'code' in parsed ? undefined : canonicalJson(parsed.value)
      return { content, run: () => requestClaim(state) }
    }
    default:
      return { run: (group) => write(state, command, group) }
  }
}

/** A digest of a record's type and body; undefined for a refused record. */
function contentOf(draft: Draft | Refusal): string | undefined {
  if ('code' in draft) return undefined
  const content = createHash('sha256')
  addContent(content, draft, draft.body)
  return content.digest('base64')
}

/** The function that decides each kind of write; a kind without one does not compile. */
const writers: { [Kind in ShortWrite['kind']]: WriteDecision<Extract<ShortWrite, { kind: Kind }>> } = {
  recordAppend: (state, command, group) =>
    recordAppend(state, { command, draft: readRecord(state, command) }, group),
  ingestOne: (state, command, group) => ingestOne(state, { command, draft: readOne(state, command) }, group),
  recordMutate,
  agentCreate,
  policiesSet,
  agentZoneSet,
  agentKeyRotate,
  proposalDecide,
  proposalsSweep,
  authorsEnd,
  edgeAdd,
  edgeRemove,
  strandImport,
  keyClaim,
  requestClaim,
  organismCreate,
  apiKeyCreate,
  apiKeyDelete,
  apiKeysUsed,
  auditOpen: (state, _command, group) => auditOpen(state, group),
  auditAppend,
  authChange,
  mailSettle,
  logOpen,
  logAppend,
}

type WriteDecision<Command> = (state: ShardState, command: Command, group: CommitGroup) => Decision

function write(state: ShardState, command: ShortWrite, group: CommitGroup): Decision {
  return writerOf(command.kind)(state, command, group)
}

function writerOf<Kind extends ShortWrite['kind']>(
  kind: Kind,
): WriteDecision<Extract<ShortWrite, { kind: Kind }>> {
  return writers[kind]
}

/**
 * Claims an Idempotency-Key: only the digest of the request counts. The random value is stored with the
 * answer.
 */
function requestClaim(state: ShardState): Decision {
  const drawn = Buffer.from(state.random(DRAWN_BYTES)).toString('hex')
  return () => ({ kind: 'claimed', drawn })
}

const DRAWN_BYTES = 12

/** The function that answers each kind of read. */
const readers: { [Kind in Read['kind']]: ReadAnswer<Extract<Read, { kind: Kind }>> } = {
  recordGet,
  recordFind,
  recordQuery,
  edgeList,
  strandThen,
  agentHead,
  agentStatus,
  policiesGet,
  proposalList,
  proposalAuthors,
  organismGet,
  organismList,
  agentList,
  streamPage,
  logPage,
  watch,
  strandLocate,
  checkpointSign,
  apiKeyList,
  authLookup,
  revocationsList,
  mailDue,
  headsMoved,
  headsAll,
  headsCheck,
  logHeads,
  logFind,
}

type ReadAnswer<Command> = (state: ShardState, command: Command) => Outcome

function read(state: ShardState, command: Read): Outcome {
  return readerOf(command.kind)(state, command)
}

function readerOf<Kind extends Read['kind']>(kind: Kind): ReadAnswer<Extract<Read, { kind: Kind }>> {
  return readers[kind]
}

/** Whether the caller then reads LMDB in another thread, which requires a flush. */
function readsInOtherThread({ kind }: Read): boolean {
  return kind === 'strandLocate' || kind === 'strandThen'
}

/** Whether a front only passes the answer on to its client, so that later frames may overtake it. */
function isForCallerAlone({ kind }: Read): boolean {
  return ['recordGet', 'recordFind', 'recordQuery', 'edgeList', 'proposalList', 'agentList'].includes(kind)
}

/** The commands of all features, as a shard carries them out. */
export const commands: CommandTable = {
  isShortWrite,
  decide,
  longSteps,
  read,
  isForCallerAlone,
  readsInOtherThread,
}
