import { Type, type Static } from 'typebox'
import { documented, documentedParts } from './documented.js'
import { second } from './example-values.js'
import { AgentAddress, Hash, HlcText, NextCursor, Seq, UnixMs } from './primitives.js'

/** The pattern of edge types. */
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
  timestamp_ms: UnixMs,
}

const edge = { src: 'boiler-2', dst: 'sensors', edge_type: 'feeds', weight: 1 }
const edgeEnds = { src: edge.src, dst: edge.dst, edge_type: edge.edge_type }
const edgeRecord = {
  record_id: second,
  seq: 2,
  timestamp_hlc: '0199c5b8f2a4-0000',
  timestamp_ms: 1_759_958_856_356,
}

/** Body of POST /v1/graph/edges. */
export const EdgeBody = Type.Object(
  { ...ends, weight: Type.Optional(weight) },
  { additionalProperties: false },
)
export type EdgeBody = Static<typeof EdgeBody>
documented('EdgeBody', EdgeBody, { edge, 'weight 1': edgeEnds })

/** An edge in an answer (docs/adr/0018-graph.md). */
export const GraphEdge = Type.Object({ ...ends, weight })
export type GraphEdge = Static<typeof GraphEdge>

/** Answer to a new edge, with its record on the strand of its source. */
export const EdgeAdded = Type.Object({ ...ends, weight, ...written })
export type EdgeAdded = Static<typeof EdgeAdded>
documented('EdgeAdded', EdgeAdded, { added: { ...edge, ...edgeRecord } })

/** Answer to a removal of an edge that took effect immediately. */
export const EdgeRemoved = Type.Object({ ...ends, removed: Type.Literal(true), ...written })
export type EdgeRemoved = Static<typeof EdgeRemoved>
documented('EdgeRemoved', EdgeRemoved, { removed: { ...edgeEnds, removed: true, ...edgeRecord } })

/** A page of the edges of one agent, by type and then by the agent at the other end. */
export const EdgePage = Type.Object({ edges: Type.Array(GraphEdge), next_cursor: NextCursor })
export type EdgePage = Static<typeof EdgePage>
documented('EdgePage', EdgePage, { page: { edges: [edge], next_cursor: null } })

/** Result of a traversal. */
export const TraversalResult = Type.Object({
  nodes: Type.Array(AgentAddress, {
    description: 'The start, then agents in the order of their distance',
  }),
  edges: Type.Array(GraphEdge, { description: 'Edges between these nodes' }),
  truncated: Type.Boolean({ description: 'Whether the traversal reached one of its limits' }),
})
export type TraversalResult = Static<typeof TraversalResult>

documentedParts({ EdgeType, GraphEdge })
documented('TraversalResult', TraversalResult, {
  found: { nodes: ['boiler-2', 'sensors'], edges: [edge], truncated: false },
})
