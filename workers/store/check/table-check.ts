import { fields, isNumber } from '../../../src/base/shape.js'
import { agentRowOf } from '../tables/agent.js'
import { apiKeyRowOf } from '../tables/api-keys.js'
import { authRowOf, kindOfKey, revocationOf } from '../tables/auth-table.js'
import type { CheckedTable } from '../tables/checked-table.js'
import type { Environment } from '../environment.js'
import { decodeAnswer } from '../tables/idempotency.js'
import { organismRowOf } from '../tables/organisms.js'
import { storedProposal } from '../tables/past-proposals.js'
import { openProposalCount } from '../tables/proposals.js'
import { InvalidRow } from '../tables/row-shape.js'
import { jsonOf } from '../tables/tables.js'

const isImporting = fields({ no: isNumber, importing: (value): value is true => value === true })

/**
 * Faults that the check of a single strand cannot find: counts that must agree, and rows that must be valid.
 */
export function* tableFaults(environment: Environment): Generator<string> {
  yield* rowFaults(environment)
  yield* pairFaults(environment)
  yield* accountFaults(environment)
}

/** The rows that the program refuses to read. */
function* rowFaults(environment: Environment): Generator<string> {
  const { agents, apiKeys, organisms, auth, authEnded, idempotency, proposals } = environment
  yield* invalidRows(agents, (key, value) => agentRowOf(key.toString(), value))
  yield* invalidRows(apiKeys, (key, value) => apiKeyRowOf(key.toString(), value))
  yield* invalidRows(organisms, (key, value) => organismRowOf(key.toString(), value))
  yield* invalidRows(auth, (key, value) => {
    const kind = kindOfKey(key)
    if (kind !== undefined) authRowOf(kind, key, value)
  })
  yield* invalidRows(authEnded, revocationOf)
  yield* invalidRows(idempotency, decodeAnswer)
  yield* invalidRows(proposals, (key, value) => {
    if (storedProposal(value) === undefined) throw new InvalidRow(`proposals ${key.toString('hex')}`)
  })
}

function* invalidRows(table: CheckedTable, read: (key: Buffer, value: Buffer) => unknown): Generator<string> {
  for (const { key, value } of table.getRange({})) {
    try {
      read(key, value)
    } catch (error) {
      if (!(error instanceof InvalidRow)) throw error
      yield error.message
    }
  }
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
    const row = jsonOf(value)
    if (isImporting(row)) held += openProposalCount(environment, row.no)
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
