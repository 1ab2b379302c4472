import { Type, type Static } from 'typebox'
import { documented } from './documented.js'
import { strand, first, second, recordExample, treeHead } from './example-values.js'
import { AgentAddress, Hash, NextCursor, Seq, ZoneName } from './primitives.js'
import { RecordView } from './records.js'

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
documented('InclusionProof', InclusionProof, {
  proof: {
    agent: 'sensors',
    hash: second,
    seq: 2,
    tree_size: 3,
    root: first,
    path: [strand],
    checkpoint: `example.org/strandfast/sensors\n3\ntdQEXD9Gb6kf4sxqvnkjKhpXzfEE96JucW4KHieJ33g=\n\n— example.org/strandfast/sensors …\n`,
  },
})

/** Answer of POST /v1/stream/tickets. */
export const StreamTicket = Type.Object({
  ticket: Type.String({
    description:
      'For one stream: the first use binds it to the address of the client and to the path, agents, types and filter',
  }),
  expires_in: Type.Integer({
    description:
      'Seconds until the ticket expires; after the end of its stream, it is valid for as long again',
  }),
})
export type StreamTicket = Static<typeof StreamTicket>
documented('StreamTicket', StreamTicket, { ticket: { ticket: 'sf_ticket_9cXAMPLEhV0', expires_in: 60 } })

/** Answer of GET /v1/strand/as-of: a strand at a moment; empty before its genesis record. */
export const StrandAsOf = Type.Object({
  ts: Type.String({ description: 'The moment as given in the request' }),
  records: Type.Array(RecordView, { description: 'Oldest first' }),
  chain_head: Type.Union([Hash, Type.Null()], { description: 'Hash of the last record at the moment' }),
  record_count: Type.Integer({ minimum: 0, description: 'Records at the moment, except genesis' }),
  next_cursor: NextCursor,
  checkpoint: Type.Union([Type.String(), Type.Null()], {
    description:
      'C2SP signed note over the tree at the moment, signed with the current key; null before the genesis record, and while the agent is being imported',
  }),
  zone: Type.Union([ZoneName, Type.Null()], { description: 'Zone of the agent at the moment' }),
})
export type StrandAsOf = Static<typeof StrandAsOf>
documented('StrandAsOf', StrandAsOf, {
  moment: {
    ts: '2026-01-01T00:00:00Z',
    records: [recordExample],
    chain_head: second,
    record_count: 2,
    next_cursor: null,
    checkpoint: treeHead,
    zone: 'governed',
  },
  'before the genesis record': {
    ts: '2016-01-01T00:00:00Z',
    records: [],
    chain_head: null,
    record_count: 0,
    next_cursor: null,
    checkpoint: null,
    zone: null,
  },
})

/** Answer of POST /v1/strand/import. Refusals have these members too, with the progress of the import. */
export const StrandImported = Type.Object({
  agent_id: AgentAddress,
  strand: Hash,
  imported: Type.Integer({ minimum: 0, description: 'New records' }),
  skipped: Type.Integer({ minimum: 0, description: 'Records that the server already had' }),
  first_seq: Type.Union([Seq, Type.Null()], { description: 'Seq of the first new record' }),
  last_seq: Type.Union([Seq, Type.Null()], { description: 'Seq of the last new record' }),
  chain_head: Hash,
  record_count: Type.Integer({ minimum: 0, description: 'Records now, except genesis' }),
  open: Type.Boolean({ description: 'Whether the agent accepts writes' }),
})
export type StrandImported = Static<typeof StrandImported>
documented('StrandImported', StrandImported, {
  imported: {
    agent_id: 'sensors',
    strand,
    imported: 3,
    skipped: 0,
    first_seq: 0,
    last_seq: 2,
    chain_head: second,
    record_count: 2,
    open: true,
  },
})
