import { agentRowOf } from '../tables/agent.js'
import type { Environment } from '../environment.js'
import { differs, invalidRows } from '../row-faults.js'
import { tableSpecs } from '../table-specs.js'

/**
 * Faults that the check of a single strand cannot find: counts that must agree, and rows that must be valid.
 */
export function* tableFaults(environment: Environment): Generator<string> {
  const { agents, names } = environment
  yield* invalidRows(agents, (key, value) => agentRowOf(key.toString(), value))
  yield* differs(['agents', agents], ['names', names])
  for (const { faults } of tableSpecs) yield* faults(environment)
}
