import { Type, type Static } from 'typebox'
import { documented } from './documented.js'
import { headExample, publicKey, second, strand } from './example-values.js'
import {
  AgentAddress,
  AgentName,
  Hash,
  HlcText,
  NextCursor,
  PrefixedHash,
  PublicKey,
  Seq,
  totalDescription,
  UnixMs,
  ZoneName,
} from './primitives.js'

/** Body of POST /v1/agents. */
export const AgentCreateBody = Type.Object(
  {
    name: AgentName,
    zone: ZoneName,
    seed_hex: Type.Optional(
      Type.String({
        pattern: '^[0-9a-fA-F]{64}$',
        description: 'Ed25519 seed; derived if absent. Never returned',
      }),
    ),
  },
  { additionalProperties: false },
)
documented('AgentCreateBody', AgentCreateBody, { agent: { name: 'sensors', zone: 'governed' } })

/** Answer of POST /v1/agents. */
export const AgentCreated = Type.Object({
  agent_id: AgentAddress,
  name: AgentAddress,
  zone: ZoneName,
  public_key: PublicKey,
  strand: Hash,
  created_at_ms: UnixMs,
})
export type AgentCreated = Static<typeof AgentCreated>
documented('AgentCreated', AgentCreated, {
  agent: {
    agent_id: 'sensors',
    name: 'sensors',
    zone: 'governed',
    public_key: publicKey,
    strand,
    created_at_ms: 1_760_000_000_000,
  },
})

/** State of an agent. */
export const AgentStatus = Type.Object({
  agent_id: AgentAddress,
  zone: ZoneName,
  record_count: Type.Integer({ minimum: 0 }),
  chain_head: Hash,
  public_key: PublicKey,
  strand: Hash,
  timestamp_hlc: HlcText,
  timestamp_ms: UnixMs,
  bytes: Type.Integer({ minimum: 0, description: 'Bytes of all bodies as written, including erased ones' }),
  created_at_ms: UnixMs,
  imported_records: Type.Integer({
    minimum: 0,
    description: 'How many of its first records were imported from another server; 0 during the import',
  }),
})
export type AgentStatus = Static<typeof AgentStatus>
const statusExample = {
  agent_id: 'sensors',
  zone: 'governed',
  record_count: 2,
  chain_head: second,
  public_key: publicKey,
  strand,
  timestamp_hlc: '0199c5b8f2a4-0000',
  timestamp_ms: 1_759_958_856_356,
  bytes: 94,
  created_at_ms: 1_760_000_000_000,
  imported_records: 0,
}
documented('AgentStatus', AgentStatus, { status: statusExample })

/** Answer of GET /v1/agents. */
export const AgentPage = Type.Object({
  agents: Type.Array(Type.String()),
  statuses: Type.Optional(
    Type.Array(AgentStatus, {
      description: 'With `include=status`: the status of each agent, in the same order',
    }),
  ),
  total: Type.Integer({ minimum: 0, description: totalDescription }),
  next_cursor: NextCursor,
})
export type AgentPage = Static<typeof AgentPage>
documented('AgentPage', AgentPage, {
  page: { agents: ['default', 'sensors'], total: 2, next_cursor: null },
  'with status': { agents: ['sensors'], statuses: [statusExample], total: 1, next_cursor: null },
})

/** The head of the strand of an agent. */
export const ChainHead = Type.Object({
  agent_id: AgentAddress,
  chain_head: Hash,
  hash: PrefixedHash,
  seq: Seq,
  record_count: Type.Integer({ minimum: 0 }),
  timestamp_hlc: HlcText,
  timestamp_ms: UnixMs,
  signature: Type.String({ pattern: '^[0-9a-f]{128}$' }),
})
export type ChainHead = Static<typeof ChainHead>
documented('ChainHead', ChainHead, { head: headExample })
