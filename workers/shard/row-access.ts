import { grantOfPolicies, type Grant } from '../../src/auth/grant.js'
import { allows, type JudgedRecord, type PolicyAction } from '../../src/auth/row-policy.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import type { UserAccess } from '../../src/protocol/command-options.js'
import type { Effort } from '../../src/strand/condition.js'
import type { RecordAction } from '../../src/strand/proposal.js'
import { noSuchAgent, type ShardState } from './state.js'
import type { Agent } from '../store/tables/agent.js'
import { limits } from '../../src/base/limits/limits.js'

/*
 * Row policies where records are read and written (docs/adr/0012-row-policies.md). A command without `access`
 * comes from a key, which policies do not bind.
 */

/** 403, in the same words for an agent that does not exist: users must not learn names. */
export const notAllowed: Refusal = refuse('forbidden', 'Expected a row policy of the agent to allow this')

/** The action of policies that allows a user to change a record so. */
export function policyActionOf(action: RecordAction): 'delete' | 'erase' {
  return action === 'erase' ? 'erase' : 'delete'
}

/** What the policies of an agent grant the caller; undefined for a key, which may do anything; 403 grant_too_large. */
export function grantOf(
  agent: Agent,
  action: PolicyAction,
  access: UserAccess | undefined,
): Grant | Refusal | undefined {
  return access === undefined ? undefined : grantOfPolicies(agent.policies, action, access.claims)
}

/** Whether that is a refusal. */
export function isRefused(grant: Grant | Refusal | undefined): grant is Refusal {
  return grant !== undefined && 'code' in grant
}

/**
 * Whether a grant covers a record. In a search, this is asked before anything else about the
 * record: a hidden record must cost nothing that depends on the search, or time would reveal its content.
 */
export function covers(grant: Grant | undefined, record: JudgedRecord, effort?: Effort): boolean {
  return grant === undefined || allows(grant.policies, record, effort)
}

/** Whether an agent has any policy for that action. */
export function hasPolicy(agent: Agent | undefined, action: PolicyAction): agent is Agent {
  return agent?.policies.some(({ actions }) => actions.includes(action)) === true
}

/** The agent to be read; 404, and for users 403 unless it has a read policy. */
export function agentToRead(
  state: ShardState,
  { agent: name, access }: { agent: string; access?: UserAccess },
): Agent | Refusal {
  const agent = state.store.agents.find(name)
  if (access !== undefined && !hasPolicy(agent, 'read')) return notAllowed
  return agent ?? noSuchAgent(name)
}

/**
 * What one call for a page may cost a shard, which answers nobody else meanwhile. A call that has used it up ends, and
 * its caller continues with another one. It is checked between records, so one record can exceed it.
 */
export class PageBudget {
  /** What comparing costs. */
  readonly effort: Effort = { bytes: 0 }
  #records = 0
  #bytes = 0

  get spent(): boolean {
    return (
      this.#records >= limits.pageScanRecordsMax || this.#bytes + this.effort.bytes >= limits.pageWorkBytesMax
    )
  }

  /** Counts a record that was read, whatever becomes of it. */
  read(bodyBytes: number): void {
    this.#records++
    this.#bytes += bodyBytes
  }
}
