import { byAgentInKey, type MovedTable, type RowMover } from '../store/row-move.js'
import { tableSpecs } from '../store/table-specs.js'
import { agentRowOf, type AgentRow } from '../store/tables/agent.js'

const withNumber: RowMover = ({ shard: old, key, value }, { agents }) => {
  const row = agentRowOf(key.toString(), value)
  const { shard, no } = agents.find({ shard: old, no: row.no })
  const moved: AgentRow = { ...row, no }
  return [{ shard, key, value: Buffer.from(JSON.stringify(moved)) }]
}

/** Moves the rows of each table that is moved row by row. */
export const rowMovers = new Map<MovedTable, RowMover>([
  ['agents', withNumber],
  ['names', byAgentInKey],
  ...tableSpecs.flatMap(({ moves }) => moves),
])
