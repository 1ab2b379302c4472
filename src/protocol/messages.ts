import { limits } from '../base/limits/limits.js'
import type { AgentList, KeyClaim, NamesOutcome } from './agent-messages.js'
import type { Refusal } from '../base/errors.js'
import type { GrantText } from '../auth/grant.js'
import type { Policy } from '../auth/row-policy.js'
import type { Hlc } from '../strand/hlc.js'
import type { RecordPosition } from '../strand/record-position.js'
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
  MailAttempted,
} from './auth-messages.js'
import type { Signing, UserAccess, WriteOptions } from './command-options.js'
import type { GraphCommand, GraphOutcome } from './graph-messages.js'
import type { StrandImport, ImportedOutcome, AuditRequiredOutcome } from './import-messages.js'
import type { OrganismCommand, OrganismAnswer } from './organism-messages.js'
import type { Author, ProposalCommand, ProposalOutcome, ProposalRules } from './proposal-messages.js'
import type {
  BatchAppend,
  IngestChunk,
  IngestOne,
  PageCursor,
  RecordAppend,
  RecordFind,
  RecordGet,
  RecordMutate,
  RecordQuery,
  RecordsFoundOutcome,
  UploadsEnd,
} from './record-messages.js'
import type { ServerLogCommand, ServerLogOutcome } from './server-log-messages.js'

/*
 * Messages between fronts and shard threads. Each is a plain value that crosses threads in frames (frame.ts).
 * Bodies reach the shard as received and return as wire JSON, so that a front neither parses nor renders
 * records (docs/adr/0003-shards-render-wire-bodies.md).
 */

/** Creates an agent. Without a seed, the key pair is derived from the master seed. */
export interface AgentCreate {
  kind: 'agentCreate'
  agent: string
  zone: Zone
  seed?: Uint8Array
  /** Whether it is one of many agents of a new organism, for all of which other callers must not wait. */
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

/** Replaces the row policies of an agent. The policies were checked before. */
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

/**
 * Binds an Idempotency-Key to a request that belongs to no single agent, in the shard of the key; 422 if the
 * key is bound to another request. Answered by `claimed`.
 */
export interface RequestClaim {
  kind: 'requestClaim'
  /** The key, which determines the shard. */
  agent: string
  body: Uint8Array
  options: WriteOptions
}

/** Reads a page of a strand for a stream, from `fromSeq` or from the first record at or after `since`. */
export interface StreamPage {
  kind: 'streamPage'
  agent: string
  fromSeq: number
  since?: Hlc
  types?: string[]
  limit: number
}

/** Reads a page of the whole shard in log order, after `after`. */
export interface LogPage {
  kind: 'logPage'
  after: RecordPosition
  /**
   * Positions of cursors from before a reshard, one list per former number of shards; records up to them are
   * skipped.
   */
  seen?: readonly RecordPosition[][]
  agents?: string[]
  types?: string[]
  limit: number
}

/** Starts or stops sending commits of `agent` (empty: of all agents) as events. Answered by `watching`. */
export interface Watch {
  kind: 'watch'
  agent: string
  on: boolean
  /** The number of the front at the receiving thread; set by the link. */
  front: number
}

/** Signs a checkpoint of an agent's strand (docs/FORMAT.md, Tree, proof, checkpoint). */
export interface CheckpointSign {
  kind: 'checkpointSign'
  agent: string
  size: number
  root: string
  /**
   * The key that may sign. `then`: the key in force after the `size` records, if it still is. `now`: the
   * current key, to which the strand's rotations lead (docs/FORMAT.md, A checkpoint of the past).
   */
  by: 'then' | 'now'
}

export interface StrandLocate {
  kind: 'strandLocate'
  agent: string
  /** The record whose seq is requested, if any. */
  hash?: string
  access?: UserAccess
}

/** Brings the store up to its log, for a reader without the shard. Answered by `flushed`. */
export interface StoreFlush {
  kind: 'storeFlush'
  /** Whether the shard then pauses writes to its store until `storeResume`, or for `limits.storePauseMs`. */
  rest: boolean
}

/** Ends the pause of a shard. Answered by `done`. */
export interface StoreResume {
  kind: 'storeResume'
}

export interface Sent {
  /**
   * The id of the principal, by which a shard schedules reads and long writes fairly; absent for the server
   * itself.
   */
  caller?: string
}

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
    | UploadsEnd
    | RequestClaim
    | GraphCommand
    | OrganismCommand
    | StrandImport
    | RecordAppend
    | BatchAppend
    | IngestOne
    | IngestChunk
    | RecordGet
    | RecordFind
    | RecordMutate
    | RecordQuery
    | StreamPage
    | LogPage
    | Watch
    | CheckpointSign
    | StrandLocate
    | StoreFlush
    | StoreResume
    | ApiKeyCreate
    | ApiKeyList
    | ApiKeyDelete
    | ApiKeysUsed
    | AuditCommand
    | AuthChange
    | AuthLookup
    | RevocationsList
    | MailDue
    | MailAttempted
    | ServerLogCommand
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

/**
 * Rows in wire JSON, separated by commas, as UTF-8 bytes to avoid decoding and encoding; without a cursor at
 * the end.
 */
export interface RowsOutcome {
  kind: 'rows'
  rows: Uint8Array
  /** The number of rows. */
  count: number
  cursor?: PageCursor
  /** For a query: the indexes of conditions that compare a number with a text of a record, or the reverse. */
  mismatched?: number[]
}

/** Events for one stream. `end`: they reach the last commit, so the next one arrives as an event. */
export interface PageOutcome {
  kind: 'page'
  events: StreamEvent[]
  /** The seq of the next page, after skipped events. */
  nextSeq: number
  reached: Hlc
  end: boolean
}

export interface IngestedOutcome {
  kind: 'ingested'
  accepted: number
  rejected: number
  /** Refused lines that were stored as records. */
  kept?: number
  /** Accepted lines that were already stored. */
  duplicates?: number
  /** The number of refused lines by code; absent in idempotent answers of earlier versions. */
  rejectedByCode?: Record<string, number>
  /** The first refused lines. */
  faults: LineFault[]
  agents: AgentIngested[]
  replayed?: boolean
}

/**
 * Whether an outcome is stored under its Idempotency-Key. An outcome with refusals and nothing accepted is
 * not, like any refusal, so that the caller can correct the request. Nor is an outcome of lines that name no
 * agent.
 */
export function isStoredOutcome({ accepted, rejected, kept = 0, agents }: IngestedOutcome): boolean {
  return (accepted + kept > 0 || rejected === 0) && agents.some(({ agent }) => agent !== '')
}

export interface AgentIngested {
  agent: string
  accepted: number
  rejected: number
  firstSeq: number
  lastSeq: number
  chainHead: string
}

export interface LineFault {
  line: number
  agent: string
  refusal: Refusal
}

export interface LocatedOutcome {
  kind: 'located'
  shard: number
  agentNo: number
  strand: string
  publicKey: string
  /** Earlier keys, each with the seq of the rotation that named its successor. */
  retiredKeys: readonly { publicKey: string; lastSeq: number }[]
  headSeq: number
  headHash: string
  /** The seq of the requested record. */
  seq?: number
  /** For a user: the records that its policies allow. */
  readable?: GrantText
}

/** The HLC of the shard's last record when watching begins. */
export interface WatchingOutcome {
  kind: 'watching'
  reached: Hlc
}

/** An Idempotency-Key is bound to the request. */
export interface ClaimedOutcome {
  kind: 'claimed'
  /** 24 random hex digits for a name that the server chooses, the same for each repeated request. */
  drawn: string
}

/** The number of the last log segment in the store. */
export interface FlushedOutcome {
  kind: 'flushed'
  segment: number
}

/** The command was executed and has no result. */
export interface DoneOutcome {
  kind: 'done'
}

export type Outcome =
  | Refusal
  | ReplyOutcome
  | NamesOutcome
  | RowsOutcome
  | PageOutcome
  | IngestedOutcome
  | LocatedOutcome
  | RecordsFoundOutcome
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
  | AuditRequiredOutcome
  | AuthOutcome
  | RevocationsOutcome
  | MailDueOutcome
  | ServerLogOutcome

/** A committed record for streams. `data` is the wire JSON of the event. */
export interface StreamEvent {
  agent: string
  seq: number
  hlc: string
  /** Distinguishes records of its shard with the same HLC (src/strand/record-position.ts). */
  tie?: string
  /** Set for `sys/*` and `edge/*`, which only streams that name them show. */
  isSystem?: true
  data: string
}

export interface ShardSettings {
  shard: number
  path: string
  /** 32 bytes. */
  masterSeed: Uint8Array
  recordBytesMax: number
  signing: Signing
  auth: AuthRules
  proposals: ProposalRules
}
