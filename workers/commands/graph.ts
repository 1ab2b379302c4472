import type { EdgeCursor, EdgeRow } from '../../src/protocol/graph-messages.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { authorOf } from '../../src/protocol/proposal-messages.js'
import { formatHlc, type Hlc } from '../../src/strand/hlc.js'
import { canonicalJson } from '../../src/strand/json.js'
import type { EdgeAdded, EdgeRemoved } from '../../src/wire/graph.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { PendingRecord } from '../store/write-set.js'
import { requestMutation } from '../mutations/request.js'
import { noSuchAgent, type Decision, type ShardState } from '../shard/state.js'
import { assertReplaceable, edgesOf, type EdgeRange, edges } from '../store/tables/edges.js'
import { targetAgent } from './records.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** Edges between agents. */
export const graphCommands = {
  writes: {
    edgeAdd: { decide: edgeAdd },
    edgeRemove: { decide: edgeRemove },
  },
  reads: {
    edgeList: { answer: edgeList, isForCallerAlone: true },
  },
} satisfies FeatureCommands

/**
 * Adds an edge by a record on the strand of its source; an existing edge gets the new weight
 * (docs/adr/0018-graph.md). Every zone allows this, because it only appends. 404 agent_not_found, 412
 * head_mismatch, 503 clock_skew.
 */
function edgeAdd(state: ShardState, command: CommandOf<'edgeAdd'>, group: CommitGroup): Decision {
  const agent = targetAgent(state, { ...command, emerge: false }, group)
  if ('code' in agent) return agent
  const { dst, edgeType, weight } = command
  assertReplaceable(state.store.environment, { agentNo: agent.no, edgeType, dst })
  const edge = { src: agent.name, dst, edge_type: edgeType, weight }
  const body = Buffer.from(canonicalJson(edge))
  const record = group.append(agent, { type: 'edge/add', body, signing: 'record' })
  if ('code' in record) return record
  const { seq, hlc, hash } = record
  group.changes
    .of(edges)
    .add({ agentNo: agent.no, src: agent.name, dst, edgeType, seq, hlc, live: true, weight })
  const answer: EdgeAdded = { ...edge, record_id: hash, seq, ...clockOf(hlc) }
  return () => ({ kind: 'reply', status: 201, body: JSON.stringify(answer) })
}

/**
 * Removes an edge, which is a mutation: the zone of its source decides whether it happens immediately, by a
 * proposal, or not at all. 404 agent_not_found, edge_not_found; 412 head_mismatch.
 */
function edgeRemove(state: ShardState, command: CommandOf<'edgeRemove'>, group: CommitGroup): Decision {
  const agent = targetAgent(state, { ...command, emerge: false }, group)
  if ('code' in agent) return agent
  const { dst, edgeType } = command
  const done = ({ seq, hlc, hash }: PendingRecord) => {
    const ends = { src: agent.name, dst, edge_type: edgeType }
    const answer: EdgeRemoved = {
      ...ends,
      removed: true,
      record_id: hash,
      seq,
      ...clockOf(hlc),
    }
    return JSON.stringify(answer)
  }
  const mutation = { action: 'remove_edge', dst, edgeType } as const
  return requestMutation(state, { agent, mutation, ...authorOf(command), done }, group)
}

function clockOf(hlc: Hlc): Pick<EdgeAdded, 'timestamp_hlc' | 'timestamp_ms'> {
  return { timestamp_hlc: formatHlc(hlc), timestamp_ms: hlc.ms }
}

/** A page of the edges of an agent; 404 agent_not_found for outbound edges. */
function edgeList(state: ShardState, command: CommandOf<'edgeList'>): Outcome {
  const of = nearEndOf(state, command)
  if (of === undefined) return noSuchAgent(command.agent)
  const { environment } = state.store
  const edges: EdgeRow[] = []
  let reached: EdgeCursor | undefined
  let looked = 0
  for (const { edgeType, other, state: edge } of edgesOf(environment, { ...command, of })) {
    if (edges.length >= command.limit || looked >= command.lookMax) {
      return { kind: 'edges', edges, looked, ...(reached !== undefined && { reached }) }
    }
    looked++
    reached = { edgeType, other }
    if (edge?.live !== true) continue
    const [src, dst] = command.direction === 'out' ? [command.agent, other] : [other, command.agent]
    edges.push({ src, dst, edgeType, weight: edge.weight })
  }
  return { kind: 'edges', edges, looked }
}

function nearEndOf(
  state: ShardState,
  { agent: name, direction }: CommandOf<'edgeList'>,
): EdgeRange['of'] | undefined {
  if (direction === 'in') return { name }
  // A traversal visits many agents and needs only their rows, not their keys.
  const row = state.store.agents.row(name)
  return row === undefined ? undefined : { agentNo: row.no }
}
