import { Type, type Static } from 'typebox'
import { AgentAddress, Hash, Seq } from './primitives.js'

/** RFC 6962 inclusion proof of one record. */
export const InclusionProof = Type.Object({
  agent: AgentAddress,
  hash: Hash,
  seq: Seq,
  tree_size: Type.Integer({ minimum: 1 }),
  root: Hash,
  path: Type.Array(Hash, { description: 'Sibling hashes from the leaf up' }),
  checkpoint: Type.String({ description: 'C2SP signed note over the same tree head' }),
})
export type InclusionProof = Static<typeof InclusionProof>

/** Answer of POST /v1/stream/tickets. */
export const StreamTicket = Type.Object({
  ticket: Type.String(),
  expires_in: Type.Integer({ description: 'Seconds' }),
})
export type StreamTicket = Static<typeof StreamTicket>
