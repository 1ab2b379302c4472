import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { CommitGroup } from '../shard/commit-group.js'
import {
  agentOf,
  type CommandTable,
  type LongWriteEntry,
  type QueuedWrite,
  type Read,
  type ReadEntry,
  type ShortWrite,
  type Write,
  type WriteEntry,
} from '../shard/command-table.js'
import type { Decision, ShardState, Steps, Turn } from '../shard/state.js'
import { answeredBefore, contentDigest, isCheck, keyedRequest, writeKeyed } from './idempotency/answers.js'
import { agentChangeCommands } from './agent-changes.js'
import { agentCommands } from './agents.js'
import { apiKeyCommands } from './api-keys.js'
import { auditCommands } from './audit.js'
import { namespaceCommands } from './auth/namespace.js'
import { asOfCommands } from './as-of.js'
import { graphCommands } from './graph.js'
import { claimCommands } from './idempotency/claim.js'
import { ingestCommands } from './ingest.js'
import { mutationCommands } from './mutations.js'
import { organismCommands } from './organisms.js'
import { policyCommands } from './policies.js'
import { proofCommands } from './proof.js'
import { proposalCommands } from './proposals.js'
import { queryCommands } from './query.js'
import { recordCommands } from './records.js'
import { serverLogCommands } from './server-log.js'
import { importCommands } from './strand-import.js'
import { streamCommands } from './stream.js'
import { mailCommands } from '../auth/outbox.js'
import { sweepCommands } from '../mutations/sweep.js'

type LongWrite = Exclude<Write, QueuedWrite>

/** The commands of all features. A kind without an entry does not compile. */
const writes: { [K in ShortWrite['kind']]: WriteEntry<CommandOf<K>> } = {
  ...agentChangeCommands.writes,
  ...agentCommands.writes,
  ...apiKeyCommands.writes,
  ...auditCommands.writes,
  ...namespaceCommands.writes,
  ...graphCommands.writes,
  ...claimCommands.writes,
  ...ingestCommands.writes,
  ...mutationCommands.writes,
  ...organismCommands.writes,
  ...policyCommands.writes,
  ...proposalCommands.writes,
  ...recordCommands.writes,
  ...serverLogCommands.writes,
  ...importCommands.writes,
  ...mailCommands.writes,
  ...sweepCommands.writes,
}

const longWrites: { [K in LongWrite['kind']]: LongWriteEntry<CommandOf<K>> } = {
  ...ingestCommands.longWrites,
  ...recordCommands.longWrites,
}

const reads: { [K in Read['kind']]: ReadEntry<CommandOf<K>> } = {
  ...agentCommands.reads,
  ...apiKeyCommands.reads,
  ...namespaceCommands.reads,
  ...asOfCommands.reads,
  ...graphCommands.reads,
  ...organismCommands.reads,
  ...policyCommands.reads,
  ...proofCommands.reads,
  ...proposalCommands.reads,
  ...queryCommands.reads,
  ...recordCommands.reads,
  ...serverLogCommands.reads,
  ...streamCommands.reads,
  ...mailCommands.reads,
}

function writeOf<K extends ShortWrite['kind']>(kind: K): WriteEntry<CommandOf<K>> {
  return writes[kind]
}

function longWriteOf<K extends LongWrite['kind']>(kind: K): LongWriteEntry<CommandOf<K>> {
  return longWrites[kind]
}

function readOf<K extends Read['kind']>(kind: K): ReadEntry<CommandOf<K>> {
  return reads[kind]
}

const isLongWrite = (command: Write): command is LongWrite => command.kind in longWrites

function isShortWrite(command: Write): command is ShortWrite {
  if (command.kind === 'uploadsEnd' || isLongWrite(command)) return false
  const { isLong = hasLongBody } = writeOf(command.kind)
  return !isLong(command)
}

function hasLongBody(command: ShortWrite): boolean {
  return 'body' in command && command.body.length > limits.shortWriteBytesMax
}

function* longSteps(state: ShardState, command: Write, turn: Turn): Steps<Decision> {
  if (command.kind === 'uploadsEnd') return () => ({ kind: 'done' })
  if (isLongWrite(command)) return yield* longWriteOf(command.kind).steps(state, command, turn)
  const { steps } = writeOf(command.kind)
  return steps === undefined ? decide(state, command, turn.group) : yield* steps(state, command, turn)
}

function decide(state: ShardState, command: ShortWrite, group: CommitGroup): Decision {
  const entry = writeOf(command.kind)
  const idempotency = 'options' in command ? command.options.idempotency : undefined
  if (idempotency === undefined) return entry.decide(state, command, group)
  const request = keyedRequest(command, { ...idempotency, agent: agentOf(command) })
  const before = answeredBefore(state, group, request)
  if (typeof before === 'function') return before
  const prepared = entry.prepare?.(state, command)
  const content = prepared?.content()
  if (content !== undefined) request.content = contentDigest(command, content)
  const same = before && answeredBefore(state, group, request)
  if (same !== undefined) return same
  const write = () => prepared?.run(group) ?? entry.decide(state, command, group)
  return writeKeyed(state, { request, group }, { write, isStored: () => !isCheck(command) })
}

function read(state: ShardState, command: Read): Outcome {
  return readOf(command.kind).answer(state, command)
}

/** The commands of all features, as a shard carries them out. */
export const commands: CommandTable = {
  isShortWrite,
  decide,
  longSteps,
  read,
  isForCallerAlone: ({ kind }) => readOf(kind).isForCallerAlone === true,
  isReadElsewhere: ({ kind }) => readOf(kind).isReadElsewhere === true,
}
