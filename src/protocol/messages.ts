import type { Refusal } from '../base/errors.js'
import { limits } from '../base/limits/limits.js'
import type { AgentCommand, AgentOutcome } from './agent-messages.js'
import type { ApiKeyCommand, ApiKeyOutcome } from './api-key-messages.js'
import type { AuditCommand, AuditedOutcome } from './audit-messages.js'
import type { AuthCommand, AuthCommandOutcome } from './auth-messages.js'
import type { GraphCommand, GraphOutcome } from './graph-messages.js'
import type { ImportOutcome, StrandImport } from './import-messages.js'
import type { OrganismAnswer, OrganismCommand } from './organism-messages.js'
import type { ProposalCommand, ProposalOutcome } from './proposal-messages.js'
import type { RecordCommand, RecordOutcome } from './record-messages.js'
import type { ServerLogCommand, ServerLogOutcome } from './server-log-messages.js'
import type { FlushedOutcome, StoreCommand } from './store-tasks.js'
import type { StreamCommand, StreamOutcome } from './stream-messages.js'

/*
 * Messages between fronts and shard threads. Each is a plain value that crosses threads in frames (frame.ts).
 * Bodies reach the shard as received and return as wire JSON, so that a front neither parses nor renders
 * records (docs/adr/0003-shards-render-wire-bodies.md).
 */

export interface Sent {
  /**
   * The id of the principal, by which a shard schedules reads and long writes fairly; absent for the server
   * itself.
   */
  caller?: string
}

export type Command = Sent &
  (
    | AgentCommand
    | ApiKeyCommand
    | AuditCommand
    | AuthCommand
    | GraphCommand
    | OrganismCommand
    | ProposalCommand
    | RecordCommand
    | ServerLogCommand
    | StoreCommand
    | StrandImport
    | StreamCommand
  )

/**
 * Adds the caller to a command, except to a short write of a record, which the shard does not schedule by
 * caller.
 */
export function sentBy<C extends Command>(caller: string, command: C): C {
  const isRecord = command.kind === 'recordAppend' || command.kind === 'ingestOne'
  if (isRecord && command.body.length <= limits.shortWriteBytesMax) return command
  return { ...command, caller }
}

export type CommandOf<K extends Command['kind']> = Extract<Command, { kind: K }>

/** A complete answer in wire JSON. */
export interface ReplyOutcome {
  kind: 'reply'
  status: number
  body: string
  replayed?: boolean
  /** Whether it shows a deleted or erased record. */
  deleted?: true
}

/** The command was executed and has no result. */
export interface DoneOutcome {
  kind: 'done'
}

export type Outcome =
  | Refusal
  | ReplyOutcome
  | DoneOutcome
  | AgentOutcome
  | ApiKeyOutcome
  | AuditedOutcome
  | AuthCommandOutcome
  | FlushedOutcome
  | GraphOutcome
  | ImportOutcome
  | OrganismAnswer
  | ProposalOutcome
  | RecordOutcome
  | ServerLogOutcome
  | StreamOutcome
