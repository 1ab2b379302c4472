import { grantOfPolicies, type Grant } from '../../src/auth/grant.js'
import { allows, type JudgedRecord, type PolicyAction } from '../../src/auth/row-policy.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import type { UserAccess } from '../../src/protocol/command-options.js'
import type { Effort } from '../../src/strand/condition.js'
import type { RecordAction } from '../../src/strand/proposal.js'
import { pendingPolicies } from './pending.js'
import { noSuchAgent, type ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import { limits } from '../../src/base/limits/limits.js'

/*
 * Enforces row policies on reads and writes (docs/adr/0012-row-policies.md). A command without `access` comes
 * from an API key, to which policies do not apply.
 */

/** 403; the same for an agent that does not exist, so that users cannot probe for names. */
export const notAllowed: Refusal = refuse('forbidden', 'No row policy of the agent allows this')

/**
 * Refuses an action of a user on an agent: 403 policy_pending with the time if the policies that allow it
 * apply after a delay, otherwise `notAllowed`. Only a user whom they will allow the action learns of them.
 * @returns the refusal of one record, or of the action on any record
 */
export function refuserOf(
  state: ShardState,
  agent: Agent | undefined,
  { action, access }: { action: PolicyAction; access: UserAccess | undefined },
): (record?: JudgedRecord) => Refusal {
  const pending = agent === undefined || agent.importing ? undefined : pendingPolicies(state, agent)
  const atMs = pending?.effectiveAtMs
  const grant = pending && grantOf(pending, action, access)
  if (atMs === undefined || grant === undefined || isRefused(grant)) return () => notAllowed
  const refusal = refuse(
    'policy_pending',
    `The row policies that allow this apply at ${new Date(atMs).toISOString()}, unless they are rejected before`,
    { extra: { effective_at_ms: atMs } },
  )
  return (record) => {
    const isGranted = record === undefined ? grant.policies.length > 0 : covers(grant, record)
    return isGranted ? refusal : notAllowed
  }
}

/** The policy action that a user needs for a change of a record. */
export function policyActionOf(action: RecordAction): 'delete' | 'erase' {
  return action === 'erase' ? 'erase' : 'delete'
}

/**
 * The caller's grant by the policies of an agent; undefined for an API key, which may do anything; 403
 * grant_too_large.
 */
export function grantOf(
  agent: Pick<Agent, 'policies'>,
  action: PolicyAction,
  access: UserAccess | undefined,
): Grant | Refusal | undefined {
  return access === undefined ? undefined : grantOfPolicies(agent.policies, action, access.claims)
}

export function isRefused(grant: Grant | Refusal | undefined): grant is Refusal {
  return grant !== undefined && 'code' in grant
}

/**
 * Whether a grant covers a record. A search checks this before its own conditions, because the time for a
 * hidden record must not depend on the search, or it would reveal the content.
 */
export function covers(grant: Grant | undefined, record: JudgedRecord, effort?: Effort): boolean {
  return grant === undefined || allows(grant.policies, record, effort)
}

export function hasPolicy(agent: Agent | undefined, action: PolicyAction): boolean {
  return agent?.policies.some(({ actions }) => actions.includes(action)) === true
}

/**
 * The agent to read; 404 if it does not exist, but for a user 403 forbidden or policy_pending unless it has a
 * read policy.
 */
export function agentToRead(
  state: ShardState,
  { agent: name, access }: { agent: string; access?: UserAccess },
): Agent | Refusal {
  const agent = state.store.agents.find(name)
  if (access !== undefined && !hasPolicy(agent, 'read'))
    return refuserOf(state, agent, { action: 'read', access })()
  return agent ?? noSuchAgent(name)
}

/**
 * The work that one page may cost a shard, which serves no other command during that time. A read that has
 * spent it returns a partial page, and the caller requests the next one. It is checked between records, so
 * one record can exceed it.
 */
export class PageBudget {
  /** The bytes that were compared. */
  readonly effort: Effort = { bytes: 0 }
  #records = 0
  #bytes = 0

  get spent(): boolean {
    return (
      this.#records >= limits.pageScanRecordsMax || this.#bytes + this.effort.bytes >= limits.pageWorkBytesMax
    )
  }

  /** Counts a record that was read, whether or not it is returned. */
  read(bodyBytes: number): void {
    this.#records++
    this.#bytes += bodyBytes
  }
}
