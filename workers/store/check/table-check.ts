import { agentRowOf } from '../tables/agent.js'
import type { CheckedTable } from '../tables/checked-table.js'
import type { Environment } from '../environment.js'
import { openProposalCount } from '../tables/proposals.js'

/**
 * Faults that the check of a single strand cannot find: counts that must agree, and rows that must be JSON.
 */
export function* tableFaults(environment: Environment): Generator<string> {
  yield* pairFaults(environment)
  const { agents, apiKeys, organisms, auth, authEnded, idempotency, proposals } = environment
  const json = { agents, apiKeys, organisms, auth, authEnded, idempotency, proposals }
  for (const [name, table] of Object.entries(json)) yield* jsonFaults(name, table)
  yield* accountFaults(environment)
}

/** Pairs of tables that must have the same number of rows. */
function* pairFaults(environment: Environment): Generator<string> {
  const { names, agents, edges, edgesIn, proposalsOpen, proposalTargets, proposalDues } = environment
  yield* differs(['agents', agents], ['names', names])
  yield* differs(['edges by destination', edgesIn], ['edges', edges])
  yield* differs(['targets of proposals', proposalTargets], ['open proposals', proposalsOpen])
  const open = proposalsOpen.getKeysCount({}) - heldProposals(environment)
  const dues = proposalDues.getKeysCount({})
  if (dues !== open) yield `There are ${dues} due times of proposals and ${open} open proposals`
}

/**
 * Open proposals of agents whose import has not ended, which an earlier version has imported: they have no
 * due time.
 */
function heldProposals(environment: Environment): number {
  let held = 0
  for (const { value } of environment.agents.getRange({})) {
    const row = agentRowOf(value)
    if (row.importing === true) held += openProposalCount(environment, row.no)
  }
  return held
}

function* differs(
  [oneName, one]: [string, CheckedTable],
  [otherName, other]: [string, CheckedTable],
): Generator<string> {
  const counts = [one.getKeysCount({}), other.getKeysCount({})]
  if (counts[0] !== counts[1]) yield `There are ${counts[0]} ${oneName} and ${counts[1]} ${otherName}`
}

function* jsonFaults(name: string, table: CheckedTable): Generator<string> {
  for (const { value } of table.getRange({})) {
    if (!isJson(value.toString())) yield `A row of ${name} is not JSON`
  }
}

function isJson(text: string): boolean {
  try {
    return JSON.parse(text) !== undefined
  } catch {
    return false
  }
}

/** Checks that each e-mail has its account and each account its e-mail. */
function* accountFaults({ auth }: Environment): Generator<string> {
  for (const { key, value } of auth.getRange({})) {
    const [namespace = '', row = ''] = key.toString().split('\0')
    const [, kind, ...rest] = row.split(':')
    const find = (other: string) => {
      const found = auth.get(Buffer.from(`${namespace}\0auth:${other}`))
      return found === undefined ? undefined : (JSON.parse(found.toString()) as { value: unknown }).value
    }
    const stored = (JSON.parse(value.toString()) as { value: unknown }).value
    if (kind === 'email' && find(`user:${String(stored)}`) === undefined) {
      yield 'An e-mail has no account'
    }
    if (kind === 'user' && find(`email:${(stored as { email: string }).email}`) !== rest.join(':')) {
      yield 'An account is not found by its e-mail'
    }
  }
}
