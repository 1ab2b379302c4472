import type { GrantText } from '../auth/grant.js'
import type { Policy } from '../auth/row-policy.js'
import type { Zone } from '../strand/zone.js'
import type { UserAccess, WriteOptions } from './command-options.js'
import type { Author } from './proposal-messages.js'

/* Messages about agents, their names, strands and policies. */

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

export interface HeadGet {
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

/** Lists the shard's agents by name, after `after`, with `prefix`. */
export interface AgentList {
  kind: 'agentList'
  prefix: string
  /** Only names that contain this text, ignoring case. */
  contains?: string
  after: string
  limit: number
  /** Whether the status of each agent is included. */
  statuses?: true
}

/**
 * Names of one shard, in order; `total` counts all that match or, with `contains`, those among the examined
 * names.
 */
export interface NamesOutcome {
  kind: 'names'
  names: string[]
  total: number
  /** The status of each name as wire JSON, if requested. */
  statuses?: string[]
  /** The last examined name, if names after it may match although the page is not full. */
  cut?: string
}

/**
 * Claims a public key for one agent, in the shard of the key. A repeated claim for the same agent succeeds.
 */
export interface KeyClaim {
  kind: 'keyClaim'
  publicKey: string
  agent: string
}

/** An Idempotency-Key is bound to the request. */
export interface ClaimedOutcome {
  kind: 'claimed'
  /** 24 random hex digits for a name that the server chooses, the same for each repeated request. */
  drawn: string
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

export type AgentCommand =
  | AgentCreate
  | AgentStatus
  | HeadGet
  | PoliciesSet
  | PoliciesGet
  | RequestClaim
  | CheckpointSign
  | StrandLocate
  | AgentList
  | KeyClaim

export type AgentOutcome = NamesOutcome | ClaimedOutcome | LocatedOutcome
