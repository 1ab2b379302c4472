import type { Refusal } from '../base/errors.js'
import type { Policy } from '../auth/row-policy.js'
import type { Condition } from '../strand/condition.js'
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
 * What the front thread and the shard workers say to each other. Each message is a plain value; frames of them
 * cross the thread border (frame.ts). Bodies travel as the bytes that came in and leave as wire JSON text, so that
 * the front thread neither parses nor renders records (docs/adr/0003-shards-render-wire-bodies.md).
 */

/** Makes an agent. The seed is absent when the key pair is derived from the master seed. */
export interface AgentCreate {
  kind: 'agentCreate'
  agent: string
  zone: Zone
  seed?: Uint8Array
  options: WriteOptions
}

/** The shard's agents by name, after `after`, with `prefix`. */
export interface AgentList {
  kind: 'agentList'
  prefix: string
  after: string
  limit: number
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
 * Ties an Idempotency-Key to one request that no single agent stands for, on the shard that owns the key; 422 when it
 * is tied to another. Answered by `claimed`.
 */
export interface RequestClaim {
  kind: 'requestClaim'
  /** The key, which decides the shard. */
  agent: string
  /** What is asked under it. */
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

/** One page of the whole shard in the order of its log: behind the place `after`. */
export interface LogPage {
  kind: 'logPage'
  after: LogPlace
  /** What was told by the shards of other numbers of them, each list by their numbers: it is left out. */
  seen?: readonly LogPlace[][]
  agents?: string[]
  limit: number
}

/** From now on tell (or no more) of the commits of `agent`; of all agents when it is empty. Answered by `watching`. */
export interface Watch {
  kind: 'watch'
  agent: string
  on: boolean
}

/** Signs a checkpoint of an agent's strand (docs/FORMAT.md, Tree, proof, checkpoint). */
export interface CheckpointSign {
  kind: 'checkpointSign'
  agent: string
  size: number
  root: string
  /**
   * Which key may sign. `then`: the one in force after the `size` records, if it still is. `now`: the one in force now,
   * for which the strand's rotations vouch (docs/FORMAT.md, A checkpoint of the past).
   */
  by: 'then' | 'now'
}

/** What a reader needs to walk a strand by itself. */
export interface StrandLocate {
  kind: 'strandLocate'
  agent: string
  /** When given, the record whose seq is asked for. */
  hash?: string
  access?: UserAccess
}

/** Everything that a shard can be asked. */
export type Command =
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

/** Names of one shard, in order, and how many it has in all that match. */
export interface NamesOutcome {
  kind: 'names'
  names: string[]
  total: number
}

/** Rows in wire JSON, UTF-8, and where to go on; no cursor at the end. As texts they would be decoded and encoded again. */
export interface RowsOutcome {
  kind: 'rows'
  rows: Uint8Array[]
  cursor?: PageCursor
}

/** Events for one stream; `end` when they reach what is committed now, so that the next commit comes as an event. */
export interface PageOutcome {
  kind: 'page'
  events: StreamEvent[]
  /** Where the next page starts, whatever events were left out. */
  nextSeq: number
  reached: Hlc
  end: boolean
}

/** What became of an ingest chunk. */
export interface IngestedOutcome {
  kind: 'ingested'
  accepted: number
  rejected: number
  /** Refused lines that were kept as records. */
  kept?: number
  /** Accepted lines that had been written before. */
  duplicates?: number
  /** How many lines were refused with each code; answers that were kept by an earlier version lack it. */
  rejectedByCode?: Record<string, number>
  /** The first of them. */
  faults: LineFault[]
  agents: AgentIngested[]
  replayed?: boolean
}

/**
 * Whether an outcome is kept under its Idempotency-Key. One of which nothing was accepted and something refused is found
 * anew each time, like any refusal, so that it can be put right; and so is what became of lines that name no agent.
 */
export function isKept({ accepted, rejected, kept = 0, agents }: IngestedOutcome): boolean {
  return (accepted + kept > 0 || rejected === 0) && agents.some(({ agent }) => agent !== '')
}

/** The lines of one agent that an ingest chunk brought. */
export interface AgentIngested {
  agent: string
  accepted: number
  rejected: number
  firstSeq: number
  lastSeq: number
  chainHead: string
}

/** Why one line was not taken. */
export interface LineFault {
  line: number
  agent: string
  refusal: Refusal
}

/** Where a strand stands now. */
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
  /** The seq of the record asked for. */
  seq?: number
  /** For a user: the conditions of the policies that let it read, of one of which all must hold of a record. */
  readable?: Condition[][]
}

/** What is committed when watching begins: HLC of the shard's last record. */
export interface WatchingOutcome {
  kind: 'watching'
  reached: Hlc
}

/** An Idempotency-Key is tied to the request. */
export interface ClaimedOutcome {
  kind: 'claimed'
  /** 24 hex digits of chance, the same whenever the request comes again: for a name that it leaves to the server. */
  drawn: string
}

/** A plain yes. */
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

/** One committed record as streams tell it. `data` is the wire JSON of the event. */
export interface StreamEvent {
  agent: string
  seq: number
  hlc: string
  /** Tells it from the next one of its shard, where that has the same HLC (src/strand/log-place.ts). */
  tie?: string
  data: string
}

/** Figures of one shard since it started. */
export interface ShardFigures {
  records: number
  commits: number
  commitSecs: number
  agents: number
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

/** What the thread of a shard worker is given. */
export interface ShardWorkerData {
  settings: ShardSettings
  /** Memory of its `Heartbeat`. */
  heartbeat: SharedArrayBuffer
}
