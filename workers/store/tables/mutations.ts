import { assert } from '../../../src/base/assert.js'
import type { Environment } from '../environment.js'
import { byAgentInKey } from '../row-move.js'
import type { TableSpec } from '../table-spec.js'
import type { Agent } from './agent.js'
import { mutationKey } from './tables.js'

/** A deletion or restoration that is accepted but not on disk yet. */
export interface PendingMutation {
  agentNo: number
  targetSeq: number
  mutationSeq: number
  deleted: boolean
}

/** Deletions and restorations. */
export class MutationChanges {
  readonly rows: PendingMutation[] = []
  /** Hashes of the records that are deleted, restored or erased, for the fronts. */
  readonly changed: string[] = []
}

export const mutations: TableSpec<Environment, MutationChanges> = {
  open: (environment) => environment,
  moves: { mutations: byAgentInKey },
  changes: () => new MutationChanges(),
  rows: ({ rows }) => rows.length,
  put(environment, { rows }) {
    for (const { agentNo, targetSeq, mutationSeq, deleted } of rows)
      environment.mutations.put(mutationKey(agentNo, targetSeq, mutationSeq), Buffer.of(deleted ? 1 : 0))
  },
}

/** Whether a record is deleted as of `asOfSeq`. */
export function isDeleted(
  environment: Environment,
  agent: Agent,
  { seq, asOfSeq }: { seq: number; asOfSeq: number },
): boolean {
  if (!agent.mutated) return false
  const range = {
    start: mutationKey(agent.no, seq, asOfSeq),
    end: mutationKey(agent.no, seq, 0),
    reverse: true,
    inclusiveEnd: true,
    limit: 1,
  }
  for (const { value } of environment.mutations.getRange(range)) {
    assert(value.length === 1 && (value[0] === 0 || value[0] === 1), 'a mutation deletes or restores')
    return value[0] === 1
  }
  return false
}
