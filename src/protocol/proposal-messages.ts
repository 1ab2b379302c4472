import type { Policy } from '../auth/row-policy.js'
import type { EdgeAction, KeyAction, ProposalState, RecordAction } from '../strand/proposal.js'
import type { Zone } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'

/*
 * Mutations, and the proposals that they wait in where the zone of an agent does not let them happen at once
 * (docs/adr/0014-proposals.md). A proposal lives in the shard of its agent.
 */

/** A mutation of one record. */
export interface RecordMutation {
  action: RecordAction
  /** The record's hash. */
  target: string
  targetSeq: number
}

/** A change of the agent itself. */
export type AgentMutation =
  | { action: 'zone'; zone: Zone }
  | { action: 'policies'; policies: readonly Policy[] }
  /** The new key, with its seed sealed for the agent, hex; the seed is dropped when the proposal has ended. */
  | { action: 'rotate_key'; publicKey: string; sealedSeed?: string; reason?: 'compromise' }

/** Takes an edge of the agent away. */
export interface EdgeMutation {
  action: EdgeAction
  dst: string
  edgeType: string
}

/** Makes a scoped key that may decide about proposals; its SHA-256 is dropped when the proposal has ended. */
export interface KeyMutation {
  action: KeyAction
  keyId: string
  name: string
  scopes: string[]
  agents: string[]
  madeBy: string
  line: string
  digest?: string
  expiresAtMs?: number
}

/** Everything that the zone of an agent decides about. */
export type Mutation = RecordMutation | EdgeMutation | AgentMutation | KeyMutation

/** Who asks for something. */
export interface Author {
  /** Id of the principal: `root`, the id of a scoped key, `user:<namespace>:<user_id>`. */
  principal: string
  /** The first key of its line, where that is another (docs/adr/0033-lines-of-keys.md). */
  line?: string
}

/** Who asks for a command, by itself. */
export function authorOf({ principal, line }: Author): Author {
  return line === undefined ? { principal } : { principal, line }
}

/** The line that somebody is of: no two of one line count as two. */
export function lineOf({ principal, line }: Author): string {
  return line ?? principal
}

/** One vote on a proposal. */
export interface Vote extends Author {
  vote: 'approve' | 'reject' | 'cancel'
  atMs: number
  /** Of its record; absent in rows that were written before this was kept, or imported. */
  seq?: number
}

/** A proposal as it is kept. */
export interface ProposalRow {
  agent: string
  /** Seq of its `sys/proposal` record, which with the agent makes its id. */
  seq: number
  /** Hash of that record. */
  hash: string
  mutation: Mutation
  /** The zone of the agent when it was made, whose rule it follows. */
  zone: Zone
  state: ProposalState
  proposer: string
  /** The first key of the proposer's line, where that is another. */
  line?: string
  votes: Vote[]
  createdAtMs: number
  /** When it was imported from another server, or from this one before it was restored. */
  importedAtMs?: number
  /** When it applies itself; absent where it waits for approval. */
  effectiveAtMs?: number
  expiresAtMs: number
  /** Seq of the imported record by which it was carried out. */
  effectSeq?: number
  /** When it came to its end. */
  endedAtMs?: number
  /** Seq of the record that ended it; absent as that of a vote may be. */
  endSeq?: number
  /** It was put together from the strand's records: of its row only their places are left. */
  ofStrand?: true
  /** Why it was rejected, where nobody voted so: the code of what stood in its way. */
  reason?: string
}

/** Changes the zone of an agent. */
interface AgentZoneSet extends Author {
  kind: 'agentZoneSet'
  agent: string
  zone: Zone
  options: WriteOptions
}

/**
 * Gives an agent another key pair. The seed is absent when the shard is to draw it. `check`: nothing is written, and the
 * answer is what was answered before, why it would be refused, or `done`.
 */
interface AgentKeyRotate extends Author {
  kind: 'agentKeyRotate'
  agent: string
  seed?: Uint8Array
  check?: true
  /** Why, where that matters to whoever trusts the old key. */
  reason?: 'compromise'
  options: WriteOptions
}

/** A vote on one proposal, or its withdrawal. */
interface ProposalDecide extends Author {
  kind: 'proposalDecide'
  agent: string
  /** Of the proposal. */
  seq: number
  vote: Vote['vote']
  /** When the key was made that votes; absent for the root key. */
  keyMadeAtMs?: number
  /** Whether the principal may do everything (`admin:*`). */
  admin: boolean
  options: WriteOptions
}

/** Ends the proposals whose time has come, some of them. Answered by `swept`. */
interface ProposalsSweep {
  kind: 'proposalsSweep'
  options: WriteOptions
}

/** A proposal as its maker is answered. */
export interface ProposedAs {
  proposalId: string
  /** When it applies itself; absent where it waits for approval. */
  effectiveAtMs?: number
}

/** Where a page of proposals goes on: the number of an agent, and the seq behind which to look. */
export interface ProposalPlace {
  agentNo: number
  seq: number
}

/** A page of the shard's proposals, by agent and seq. */
interface ProposalList {
  kind: 'proposalList'
  /** Absent: those of all agents. */
  agent?: string
  /** Whether those about API keys are shown, too. */
  keys: boolean
  state?: ProposalState
  after?: ProposalPlace
  limit: number
}

/** Whether proposals whose time has come are left. */
interface SweptOutcome {
  kind: 'swept'
  left: boolean
}

/** Proposals in wire JSON, and where to go on; no place at the end. */
interface ProposalsOutcome {
  kind: 'proposals'
  rows: string[]
  next?: ProposalPlace
}

/** What shards decide proposals by. */
export interface ProposalRules {
  governedAutoApproveSecs: number
}

/** Everything about zones and proposals that a shard can be asked. */
export type ProposalCommand = AgentZoneSet | AgentKeyRotate | ProposalDecide | ProposalsSweep | ProposalList

/** Everything that it can answer to that, beside replies. */
export type ProposalOutcome = SweptOutcome | ProposalsOutcome
