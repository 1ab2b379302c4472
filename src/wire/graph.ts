import { Type, type Static } from 'typebox'
import { AgentAddress, Hash, HlcText, NextCursor, Seq } from './primitives.js'

/** What the type of an edge is made of. */
export const edgeTypePattern = '^[A-Za-z0-9_.:/-]{1,64}$'

export const EdgeType = Type.String({
  pattern: edgeTypePattern,
  description: 'Type of an edge, such as follows',
})

const weight = Type.Number({ default: 1, description: 'Any finite number' })
const ends = { src: AgentAddress, dst: AgentAddress, edge_type: EdgeType }
const written = {
  record_id: Hash,
  seq: Seq,
  timestamp_hlc: HlcText,
}

/** Body of POST /v1/graph/edges. */
export const EdgeBody = Type.Object(
  { ...ends, weight: Type.Optional(weight) },
  { additionalProperties: false },
)
export type EdgeBody = Static<typeof EdgeBody>

/** GraphEdge of spec.md. */
export const GraphEdge = Type.Object({ ...ends, weight })
export type GraphEdge = Static<typeof GraphEdge>

/** Answer to adding an edge: the edge, and the record on the strand of its source that tells of it. */
export const EdgeAdded = Type.Object({ ...ends, weight, ...written })
export type EdgeAdded = Static<typeof EdgeAdded>

/** Answer to a removal of an edge that took effect at once. */
export const EdgeRemoved = Type.Object({ ...ends, removed: Type.Literal(true), ...written })
export type EdgeRemoved = Static<typeof EdgeRemoved>

/** A page of the edges of one agent, by type and then by the agent at the other end. */
export const EdgePage = Type.Object({ edges: Type.Array(GraphEdge), next_cursor: NextCursor })
export type EdgePage = Static<typeof EdgePage>

/** TraversalResult of spec.md. */
export const TraversalResult = Type.Object({
  nodes: Type.Array(AgentAddress, {
    description: 'The start first, then agents in the order of their distance',
  }),
  edges: Type.Array(GraphEdge, { description: 'Between these nodes, from those that were looked at' }),
  truncated: Type.Boolean({ description: 'There is more than a traversal looks at' }),
})
export type TraversalResult = Static<typeof TraversalResult>
