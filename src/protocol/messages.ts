import { limits } from '../base/limits/limits.js'
import type { AgentList, NamesOutcome } from './agent-messages.js'
import type { Refusal } from '../base/errors.js'
import type { GrantText } from '../auth/grant.js'
import type { Policy } from '../auth/row-policy.js'
import type { Hlc } from '../strand/hlc.js'
import type { LogPlace } from '../strand/log-place.js'
import type { Zone } from '../strand/zone.js'
import type {
  ApiKeyCreate,
  ApiKeyDelete,
  ApiKeyList,
  ApiKeyMadeOutcome,
  ApiKeysUsed,
  ApiKeysOutcome,
} from './api-key-messages.js'
import type { AuditCommand, AuditedOutcome } from './audit-messages.js'
import type {
  AuthChange,
  RevocationsList,
  RevocationsOutcome,
  AuthLookup,
  AuthOutcome,
  AuthRules,
  MailDue,
  MailDueOutcome,
  MailSettle,
} from './auth-messages.js'
import type { Signing, UserAccess, WriteOptions } from './command-options.js'
import type { GraphCommand, GraphOutcome } from './graph-messages.js'
import type { ImportCommand, ImportedOutcome, ImportUntoldOutcome } from './import-messages.js'
import type { OrganismCommand, OrganismAnswer } from './organism-messages.js'
import type { Author, ProposalCommand, ProposalOutcome, ProposalRules } from './proposal-messages.js'
import type {
  BatchAppend,
  IngestChunk,
  IngestOne,
  PageCursor,
  RecordAppend,
  RecordGet,
  RecordMutate,
  RecordQuery,
} from './record-messages.js'
import type { ServerLogCommand, ServerLogOutcome } from './server-log-messages.js'

/*
 * Messages between the front thread and the shard workers. Each is a plain value; they cross between threads in frames
 * (frame.ts). Bodies are sent to the shard as they arrived and come back as wire JSON text, so that the front thread
 * neither parses nor renders records (docs/adr/0003-shards-render-wire-bodies.md).
 */

/** Makes an agent. The seed is absent when the key pair is derived from the master seed. */
export interface AgentCreate {
  kind: 'agentCreate'
  agent: string
  zone: Zone
  seed?: Uint8Array
  /** One of many agents of an organism that is being made: others do not wait for all of them. */
  isMember?: true
  options: WriteOptions
}

export interface AgentStatus {
  kind: 'agentStatus'
  agent: string
  access?: UserAccess
}

export interface AgentHead {
  kind: 'agentHead'
  agent: string
  access?: UserAccess
}

/** Replaces the row policies of an agent, which were checked already. */
export interface PoliciesSet extends Author {
  kind: 'policiesSet'
  agent: string
  policies: Policy[]
  options: WriteOptions
}

export interface PoliciesGet {
  kind: 'policiesGet'
  agent: string
}

/** Claims a public key for one agent, on the shard that owns the key; claiming again for the same agent is fine. */
export interface KeyClaim {
  kind: 'keyClaim'
  publicKey: string
  agent: string
}

/**
 * Ties an Idempotency-Key to a request that belongs to no single agent, on the shard that owns the key; 422 when it is
 * tied to another request. Answered by `claimed`.
 */
export interface RequestClaim {
  kind: 'requestClaim'
  /** The key, which decides the shard. */
  agent: string
  /** The request. */
  body: Uint8Array
  options: WriteOptions
}

/** One page of a strand for a stream: from `fromSeq`, or from the first record at or after `since`. */
export interface StreamPage {
  kind: 'streamPage'
  agent: string
  fromSeq: number
  since?: Hlc
  limit: number
}

/** One page of the whole shard in the order of its log, after the place `after`. */
export interface LogPage {
  kind: 'logPage'
  after: LogPlace
  /**
   * Places from cursors that were made when the directory had another number of shards, one list for each such number:
   * records up to them are left out.
   */
  seen?: readonly LogPlace[][]
  agents?: string[]
  limit: number
}

/**
 * Starts or stops sending the commits of `agent` to a front as events; of all agents when it is empty. Answered by
 * `watching`.
 */
export interface Watch {
  kind: 'watch'
  agent: string
  on: boolean
  /** The number that the front has at the thread that it is sent to; the link to that puts it in. */
  front: number
}

/** Signs a checkpoint of an agent's strand (docs/FORMAT.md, Tree, proof, checkpoint). */
export interface CheckpointSign {
  kind: 'checkpointSign'
  agent: string
  size: number
  root: string
  /**
   * Which key may sign. `then`: the one in force after the `size` records, if it still is. `now`: the one in force now,
   * which the strand's rotations lead to (docs/FORMAT.md, A checkpoint of the past).
   */
  by: 'then' | 'now'
}

/** What a reader needs to go through a strand by itself. */
export interface StrandLocate {
  kind: 'strandLocate'
  agent: string
  /** The record whose seq is wanted, if given. */
  hash?: string
  access?: UserAccess
}

/** Brings the shard's store up to its log, for whoever reads the store without the shard. Answered by `flushed`. */
export interface StoreFlush {
  kind: 'storeFlush'
  /** Whether the shard then rests, so that its store stays as it is, until `storeGoOn`, or `limits.storeRestMs`. */
  rest: boolean
}

/** Ends the rest of a shard. Answered by `done`. */
export interface StoreGoOn {
  kind: 'storeGoOn'
}

/** Who sent a command. */
export interface Sent {
  /** Id of the principal: a shard takes reads and long writes of callers in turn. Absent for the server itself. */
  caller?: string
}

/** Everything that a shard can be asked. */
export type Command = Sent &
  (
    | AgentCreate
    | AgentList
    | AgentStatus
    | AgentHead
    | PoliciesSet
    | PoliciesGet
    | ProposalCommand
    | KeyClaim
    | RequestClaim
    | GraphCommand
    | OrganismCommand
    | ImportCommand
    | RecordAppend
    | BatchAppend
    | IngestOne
    | IngestChunk
    | RecordGet
    | RecordMutate
    | RecordQuery
    | StreamPage
    | LogPage
    | Watch
    | CheckpointSign
    | StrandLocate
    | StoreFlush
    | StoreGoOn
    | ApiKeyCreate
    | ApiKeyList
    | ApiKeyDelete
    | ApiKeysUsed
    | AuditCommand
    | AuthChange
    | AuthLookup
    | RevocationsList
    | MailDue
    | MailSettle
    | ServerLogCommand
  )

/** Names the caller of a command, unless it is a short write of a record, which the shard does not take in turn. */
export function sentBy<C extends Command>(caller: string, command: C): C {
  const isRecord = command.kind === 'recordAppend' || command.kind === 'ingestOne'
  if (isRecord && command.body.length <= limits.shortWriteBytesMax) return command
  return { ...command, caller }
}

/** A command by its kind. */
export type CommandOf<K extends Command['kind']> = Extract<Command, { kind: K }>

/** A finished answer in wire JSON. */
export interface ReplyOutcome {
  kind: 'reply'
  status: number
  body: string
  replayed?: boolean
  /** It shows a record that is deleted or erased. */
  gone?: true
}

/**
 * Rows in wire JSON, UTF-8, and where to continue; no cursor at the end. They are bytes, because texts would be decoded
 * and encoded again.
 */
export interface RowsOutcome {
  kind: 'rows'
  rows: Uint8Array[]
  cursor?: PageCursor
  /** Of a query: the conditions, by their places, that compare a number with a record's text, or the reverse. */
  mismatched?: number[]
}

/** Events for one stream; `end` when they reach the last commit, so that the next one comes as an event. */
export interface PageOutcome {
  kind: 'page'
  events: StreamEvent[]
  /** Where the next page starts, including events that were left out. */
  nextSeq: number
  reached: Hlc
  end: boolean
}

/** The result of an ingest chunk. */
export interface IngestedOutcome {
  kind: 'ingested'
  accepted: number
  rejected: number
  /** Refused lines that were kept as records. */
  kept?: number
  /** Accepted lines that had already been written before. */
  duplicates?: number
  /** How many lines were refused with each code; idempotent answers of earlier versions lack it. */
  rejectedByCode?: Record<string, number>
  /** The first of them. */
  faults: LineFault[]
  agents: AgentIngested[]
  replayed?: boolean
}

/**
 * Whether an outcome is kept under its Idempotency-Key. Like any refusal, one in which nothing was accepted and
 * something refused is decided again each time, so that the caller can correct the request; so is an outcome of lines
 * that name no agent.
 */
export function isKept({ accepted, rejected, kept = 0, agents }: IngestedOutcome): boolean {
  return (accepted + kept > 0 || rejected === 0) && agents.some(({ agent }) => agent !== '')
}

/** The lines of one agent in an ingest chunk. */
export interface AgentIngested {
  agent: string
  accepted: number
  rejected: number
  firstSeq: number
  lastSeq: number
  chainHead: string
}

/** Why one line was refused. */
export interface LineFault {
  line: number
  agent: string
  refusal: Refusal
}

/** Where a strand is now. */
export interface LocatedOutcome {
  kind: 'located'
  shard: number
  agentNo: number
  strand: string
  publicKey: string
  /** The keys before it, each with the seq of the rotation by which it named the next. */
  retiredKeys: readonly { publicKey: string; lastSeq: number }[]
  headSeq: number
  headHash: string
  /** The seq of the wanted record. */
  seq?: number
  /** For a user: what the policies allow it to read. */
  readable?: GrantText
}

/** What is committed when watching begins: HLC of the shard's last record. */
export interface WatchingOutcome {
  kind: 'watching'
  reached: Hlc
}

/** An Idempotency-Key is tied to the request. */
export interface ClaimedOutcome {
  kind: 'claimed'
  /** 24 random hex digits, the same whenever the request is repeated: for a name that the server is to choose. */
  drawn: string
}

/** The number of the last segment of the log that the store has. */
export interface FlushedOutcome {
  kind: 'flushed'
  segment: number
}

/** The command was carried out; there is nothing more to say. */
export interface DoneOutcome {
  kind: 'done'
}

/** Everything that a shard can answer. */
export type Outcome =
  | Refusal
  | ReplyOutcome
  | NamesOutcome
  | RowsOutcome
  | PageOutcome
  | IngestedOutcome
  | LocatedOutcome
  | ApiKeysOutcome
  | ApiKeyMadeOutcome
  | AuditedOutcome
  | WatchingOutcome
  | ClaimedOutcome
  | FlushedOutcome
  | DoneOutcome
  | ProposalOutcome
  | GraphOutcome
  | OrganismAnswer
  | ImportedOutcome
  | ImportUntoldOutcome
  | AuthOutcome
  | RevocationsOutcome
  | MailDueOutcome
  | ServerLogOutcome

/** One committed record for streams. `data` is the wire JSON of the event. */
export interface StreamEvent {
  agent: string
  seq: number
  hlc: string
  /** Distinguishes it from the next record of its shard if that has the same HLC (src/strand/log-place.ts). */
  tie?: string
  data: string
}

/** What a shard worker is started with. */
export interface ShardSettings {
  shard: number
  /** Directory of the shard's store. */
  path: string
  /** 32 bytes. */
  masterSeed: Uint8Array
  recordBytesMax: number
  signing: Signing
  auth: AuthRules
  proposals: ProposalRules
}
