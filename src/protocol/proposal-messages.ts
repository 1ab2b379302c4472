import type { Policy, PolicyAction, PolicyClaims } from '../auth/row-policy.js'
import {
  anyOf,
  type Check,
  type Checked,
  fields,
  isHash,
  isKeyNumber,
  isKeyText,
  isText,
  isTrue,
  listOf,
  oneOf,
  optional,
} from '../base/shape.js'
import { type ProposalState, recordActions } from '../strand/proposal.js'
import { type Zone, zones } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'

/*
 * Mutations, and the proposals in which they wait if the zone of an agent does not allow them directly
 * (docs/adr/0014-proposals.md). A proposal is in the shard of its agent.
 */

const isRecordMutation = fields({ action: oneOf(...recordActions), target: isHash, targetSeq: isKeyNumber })
export type RecordMutation = Checked<typeof isRecordMutation>

const isPolicy = fields({
  actions: listOf(oneOf<PolicyAction>('read', 'write', 'delete', 'erase')),
  conditions: listOf(fields({ field: isText, op: isText })),
  types: optional(listOf(isText)),
})

export const isPolicies: Check<readonly Policy[]> = (value): value is Policy[] => listOf(isPolicy)(value)

const isAgentMutation = anyOf(
  fields({ action: oneOf('zone'), zone: oneOf(...zones) }),
  fields({ action: oneOf('policies'), policies: isPolicies }),
  /**
   * The new key. `sealedSeed` is its seed sealed for the agent, hex; it is deleted when the proposal ends.
   */
  fields({
    action: oneOf('rotate_key'),
    publicKey: isHash,
    sealedSeed: optional(isText),
    reason: optional(oneOf('compromise')),
  }),
)
export type AgentMutation = Checked<typeof isAgentMutation>

const isEdgeMutation = fields({ action: oneOf('remove_edge'), dst: isKeyText, edgeType: isKeyText })
export type EdgeMutation = Checked<typeof isEdgeMutation>

const isKeyMutation = fields({
  action: oneOf('make_api_key'),
  keyId: isKeyText,
  name: isText,
  scopes: listOf(isText),
  agents: listOf(isText),
  madeBy: isText,
  line: isText,
  digest: optional(isText),
  expiresAtMs: optional(isKeyNumber),
})
/** Creates a scoped key that may vote. `digest`, its SHA-256, is deleted when the proposal ends. */
export type KeyMutation = Checked<typeof isKeyMutation>

/** A mutation that the zone of an agent may restrict. */
export type Mutation = RecordMutation | EdgeMutation | AgentMutation | KeyMutation

/** The principal that sends a command. */
export interface Author {
  /** The id of the principal: `root`, the id of a scoped key, or `user:<namespace>:<user_id>`. */
  principal: string
  /** The first key of its lineage; absent for that key itself (docs/adr/0033-lines-of-keys.md). */
  line?: string
}

/** Returns only the author of a command. */
export function authorOf({ principal, line }: Author): Author {
  return line === undefined ? { principal } : { principal, line }
}

/** The lineage of a principal. Keys of one lineage count as one voter. */
export function lineageOf({ principal, line }: Author): string {
  return line ?? principal
}

/** A vote that a caller can cast. */
export type VoteName = 'approve' | 'reject' | 'cancel'

const isVote = fields({
  principal: isText,
  line: optional(isText),
  vote: oneOf<VoteName | 'withdrawn'>('approve', 'reject', 'cancel', 'withdrawn'),
  atMs: isKeyNumber,
  /** The seq of its record; absent in rows of earlier versions. */
  seq: optional(isKeyNumber),
})

/** A vote on a proposal. `withdrawn` ends the approval of a key that was deleted or has expired. */
export type Vote = Checked<typeof isVote>

export function approvalsOf(votes: readonly Vote[]): Vote[] {
  const withdrawn = new Set(
    votes.filter(({ vote }) => vote === 'withdrawn').map(({ principal }) => principal),
  )
  return votes.filter(({ vote, principal }) => vote === 'approve' && !withdrawn.has(principal))
}

/** The state of a key or user that has proposed or approved something. */
export interface Standing {
  principal: string
  /** Whether the key or account exists and has not expired. */
  valid: boolean
  /** For a user: the claims of its next tokens. */
  claims?: PolicyClaims
  /**
   * For a user: the lineages of keys that created the account, could sign in to it, or last wrote its
   * app_metadata.
   */
  lineages?: readonly string[]
}

/** Whether a principal can be deleted or expire, so that its state is read before its proposal is applied. */
export function canEnd(principal: string): boolean {
  return principal.startsWith('key_') || principal.startsWith('user:')
}

/** Returns the proposer and the approvers of a proposal that can end. */
export function authorsOf({ proposer, votes }: ProposalRow): string[] {
  return [proposer, ...approvalsOf(votes).map(({ principal }) => principal)].filter(canEnd)
}

export const isProposalRow = fields({
  agent: isText,
  /** The seq of its `sys/proposal` record; with the agent, it forms the id. */
  seq: isKeyNumber,
  hash: isHash,
  mutation: anyOf(isRecordMutation, isEdgeMutation, isAgentMutation, isKeyMutation),
  /** The zone of the agent when the proposal was created, whose rule applies. */
  zone: oneOf(...zones),
  state: oneOf<ProposalState>('proposed', 'approved', 'applied', 'rejected', 'cancelled', 'expired'),
  proposer: isText,
  /** The first key of the proposer's lineage; absent for that key itself. */
  line: optional(isText),
  votes: listOf(isVote),
  createdAtMs: isKeyNumber,
  /** When an earlier version imported it; such a proposal is never applied. */
  importedAtMs: optional(isKeyNumber),
  /** When it is applied automatically; absent if it waits for approval. */
  effectiveAtMs: optional(isKeyNumber),
  expiresAtMs: isKeyNumber,
  endedAtMs: optional(isKeyNumber),
  /** The seq of the record that ended it; may be absent, like that of a vote. */
  endSeq: optional(isKeyNumber),
  /** The proposal was read from the records of the strand; the row only points to them. */
  ofStrand: optional(isTrue),
  /** Why it was rejected without a vote: the code of the obstacle. */
  reason: optional(isText),
})

export type ProposalRow = Checked<typeof isProposalRow>

interface AgentZoneSet extends Author {
  kind: 'agentZoneSet'
  agent: string
  zone: Zone
  options: WriteOptions
}

/**
 * Rotates the key pair of an agent. Without a seed, the shard draws one. With `check`, nothing is written:
 * the outcome is the idempotent answer, the refusal, or `done`.
 */
interface AgentKeyRotate extends Author {
  kind: 'agentKeyRotate'
  agent: string
  seed?: Uint8Array
  check?: true
  /** The reason, if it matters to verifiers that trust the old key. */
  reason?: 'compromise'
  options: WriteOptions
}

interface ProposalDecide extends Author {
  kind: 'proposalDecide'
  agent: string
  seq: number
  vote: VoteName
  /** When the voting key was created; absent for the root key. */
  keyMadeAtMs?: number
  /** Whether the principal has `admin:*`. */
  admin: boolean
  /** Whether unlimited keys with `admin:*` exist beside the root key. */
  otherAdmins?: boolean
  /** For an approval: the state of the proposal's authors. */
  standings?: readonly Standing[]
  options: WriteOptions
}

/**
 * Processes due proposals. Answered by `swept`, with authors whose state is needed: their proposals, and later ones
 * of the same agents, wait for the next sweep.
 */
interface ProposalsSweep {
  kind: 'proposalsSweep'
  standings?: readonly Standing[]
  options: WriteOptions
}

/** Reads the authors of one proposal, or of open proposals after a cursor. Answered by `authors`. */
interface ProposalAuthors {
  kind: 'proposalAuthors'
  of?: { agent: string; seq: number }
  after?: ProposalCursor
}

/**
 * Cancels the open proposals of principals that have ended, and withdraws their approvals. Answered by
 * `authors`.
 */
interface AuthorsEnd {
  kind: 'authorsEnd'
  principals: readonly string[]
  after?: ProposalCursor
  options: WriteOptions
}

export interface ProposedAs {
  proposalId: string
  /** When it is applied automatically; absent if it waits for approval. */
  effectiveAtMs?: number
}

/** The position after which a page of proposals continues. */
export interface ProposalCursor {
  agentNo: number
  seq: number
}

/** Reads a page of the shard's proposals, by agent and seq. */
interface ProposalList {
  kind: 'proposalList'
  /** Absent for all agents. */
  agent?: string
  /** Whether proposals of API keys are included. */
  keys: boolean
  state?: ProposalState
  after?: ProposalCursor
  limit: number
}

/** The result of a sweep; `left` if due proposals remain. */
interface SweptOutcome {
  kind: 'swept'
  left: boolean
  /** The authors whose state is needed to apply due proposals. */
  authors?: string[]
}

/** Authors of proposals; without `next` at the end. */
interface AuthorsOutcome {
  kind: 'authors'
  principals: string[]
  next?: ProposalCursor
}

/** Proposals in wire JSON; without `next` at the end. */
interface ProposalsOutcome {
  kind: 'proposals'
  rows: string[]
  next?: ProposalCursor
}

/** The settings that shards need for proposals. */
export interface ProposalRules {
  governedAutoApproveSecs: number
}

export type ProposalCommand =
  | AgentZoneSet
  | AgentKeyRotate
  | ProposalDecide
  | ProposalsSweep
  | ProposalList
  | ProposalAuthors
  | AuthorsEnd

export type ProposalOutcome = SweptOutcome | ProposalsOutcome | AuthorsOutcome
