import type { Policy, PolicyClaims } from '../auth/row-policy.js'
import type { EdgeAction, KeyAction, ProposalState, RecordAction } from '../strand/proposal.js'
import type { Zone } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'

/*
 * Mutations, and the proposals in which they wait if the zone of an agent does not allow them at once
 * (docs/adr/0014-proposals.md). A proposal is in the shard of its agent.
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

/** Removes an edge of the agent. */
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

/** The line of a principal: two keys of one line count as one. */
export function lineOf({ principal, line }: Author): string {
  return line ?? principal
}

/** What a caller can say of a proposal. */
export type VoteName = 'approve' | 'reject' | 'cancel'

/** One vote on a proposal; `withdrawn` ends the approval of a key that was deleted or has expired. */
export interface Vote extends Author {
  vote: VoteName | 'withdrawn'
  atMs: number
  /** The seq of its record; absent in rows of earlier versions and in imported ones. */
  seq?: number
}

/** The approvals that count: those that were not withdrawn. */
export function approvalsOf(votes: readonly Vote[]): Vote[] {
  const withdrawn = new Set(
    votes.filter(({ vote }) => vote === 'withdrawn').map(({ principal }) => principal),
  )
  return votes.filter(({ vote, principal }) => vote === 'approve' && !withdrawn.has(principal))
}

/** What is known of a principal, a key or a user, that has proposed or approved something. */
export interface Standing {
  principal: string
  /** The key or the account is there, and has not expired. */
  valid: boolean
  /** Of a user: the claims that its tokens carry from now on. */
  claims?: PolicyClaims
  /** Of a user: the lines of keys that made the account, could sign in to it, or last wrote its app_metadata. */
  lines?: readonly string[]
}

/** Whether the standing of a principal is looked up before its proposal is applied: it can be deleted, or expire. */
export function canEnd(principal: string): boolean {
  return principal.startsWith('key_') || principal.startsWith('user:')
}

/**
 * Principals that were active on this server in a proposal and can end: its proposer, and those who approved it. Those
 * of imported proposals may belong to another server.
 */
export function authorsOf({ proposer, votes, importedAtMs }: ProposalRow): string[] {
  const voters = approvalsOf(votes).flatMap(({ principal, seq }) => (seq === undefined ? [] : [principal]))
  return [...(importedAtMs === undefined ? [proposer] : []), ...voters].filter(canEnd)
}

/** A proposal as it is kept. */
export interface ProposalRow {
  agent: string
  /** Seq of its `sys/proposal` record, which with the agent makes its id. */
  seq: number
  /** Hash of that record. */
  hash: string
  mutation: Mutation
  /** The zone of the agent when the proposal was made; its rule holds. */
  zone: Zone
  state: ProposalState
  proposer: string
  /** The first key of the proposer's line, where that is another. */
  line?: string
  votes: Vote[]
  createdAtMs: number
  /** When it was imported, from another server or from this one before a restore. */
  importedAtMs?: number
  /** When it applies itself; absent where it waits for approval. */
  effectiveAtMs?: number
  expiresAtMs: number
  /** Seq of the imported record by which it was carried out. */
  effectSeq?: number
  /** When it came to its end. */
  endedAtMs?: number
  /** Seq of the record that ended it; may be absent, like that of a vote. */
  endSeq?: number
  /** It was read from the strand's records: its row has only their places. */
  ofStrand?: true
  /** Why it was rejected without such a vote: the code of what prevented it. */
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
 * Gives an agent another key pair. The seed is absent when the shard is to draw it. With `check` nothing is written:
 * the outcome is the idempotent answer, the refusal, or `done`.
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
  vote: VoteName
  /** When the voting key was made; absent for the root key. */
  keyMadeAtMs?: number
  /** Whether the principal may do everything (`admin:*`). */
  admin: boolean
  /** Whether there are unlimited keys with `admin:*` beside the root key. */
  otherAdmins?: boolean
  /** Of the authors of the proposal, for an approval. */
  standings?: readonly Standing[]
  options: WriteOptions
}

/**
 * Ends some of the proposals that are due. Answered by `swept`, with the authors whose standings it lacks: their
 * proposals, and later ones of the same agents, wait for the next sweep.
 */
interface ProposalsSweep {
  kind: 'proposalsSweep'
  standings?: readonly Standing[]
  options: WriteOptions
}

/** The authors of one proposal, or of open ones from a place on. Answered by `authors`. */
interface ProposalAuthors {
  kind: 'proposalAuthors'
  of?: { agent: string; seq: number }
  after?: ProposalPlace
}

/** Cancels the open proposals of principals that have ended, and withdraws their approvals. Answered by `authors`. */
interface AuthorsEnd {
  kind: 'authorsEnd'
  principals: readonly string[]
  after?: ProposalPlace
  options: WriteOptions
}

/** What the maker of a proposal is answered. */
export interface ProposedAs {
  proposalId: string
  /** When it applies itself; absent where it waits for approval. */
  effectiveAtMs?: number
}

/** Where a page of proposals continues: the number of an agent, and the seq after which to look. */
export interface ProposalPlace {
  agentNo: number
  seq: number
}

/** A page of the shard's proposals, by agent and seq. */
interface ProposalList {
  kind: 'proposalList'
  /** Absent for those of all agents. */
  agent?: string
  /** Whether those about API keys are shown, too. */
  keys: boolean
  state?: ProposalState
  after?: ProposalPlace
  limit: number
}

/** Whether proposals that are due are left. */
interface SweptOutcome {
  kind: 'swept'
  left: boolean
  /** Whose standings are needed to apply what is due. */
  authors?: string[]
}

/** Authors of proposals, and where to continue; no place at the end. */
interface AuthorsOutcome {
  kind: 'authors'
  principals: string[]
  next?: ProposalPlace
}

/** Proposals in wire JSON, and where to continue; no place at the end. */
interface ProposalsOutcome {
  kind: 'proposals'
  rows: string[]
  next?: ProposalPlace
}

/** The settings that shards need for proposals. */
export interface ProposalRules {
  governedAutoApproveSecs: number
}

/** Everything about zones and proposals that a shard can be asked. */
export type ProposalCommand =
  | AgentZoneSet
  | AgentKeyRotate
  | ProposalDecide
  | ProposalsSweep
  | ProposalList
  | ProposalAuthors
  | AuthorsEnd

/** Everything that it can answer to that, beside replies. */
export type ProposalOutcome = SweptOutcome | ProposalsOutcome | AuthorsOutcome
