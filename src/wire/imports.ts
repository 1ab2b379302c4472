import { Type, type Static } from 'typebox'
import { documented } from './documented.js'
import { strand, second } from './example-values.js'
import { AgentAddress, Hash, Seq } from './primitives.js'

/** Answer of POST /v1/strand/import; its refusals have these members too, to say how far the import came. */
export const StrandImported = Type.Object({
  agent_id: AgentAddress,
  strand: Hash,
  imported: Type.Integer({ minimum: 0, description: 'Records that were new here' }),
  skipped: Type.Integer({ minimum: 0, description: 'Records that were here already' }),
  first_seq: Type.Union([Seq, Type.Null()], { description: 'Of the first new record' }),
  last_seq: Type.Union([Seq, Type.Null()], { description: 'Of the last new record' }),
  chain_head: Hash,
  record_count: Type.Integer({ minimum: 0, description: 'Records now, the genesis record not counted' }),
  open: Type.Boolean({ description: 'Whether the agent takes writes' }),
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
