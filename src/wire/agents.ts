import { Type, type Static } from 'typebox'
import {
  AgentAddress,
  AgentName,
  Hash,
  HlcText,
  NextCursor,
  PrefixedHash,
  PublicKey,
  Seq,
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
        description: 'Ed25519 seed; derived when absent. Never given back',
      }),
    ),
  },
  { additionalProperties: false },
)

/** Answer to making an agent. */
export const AgentCreated = Type.Object({
  agent_id: AgentAddress,
  name: AgentAddress,
  zone: ZoneName,
  public_key: PublicKey,
  strand: Hash,
  created_at_ms: UnixMs,
})
export type AgentCreated = Static<typeof AgentCreated>

/** Answer of GET /v1/agents. */
export const AgentPage = Type.Object({
  agents: Type.Array(Type.String()),
  total: Type.Integer({ minimum: 0 }),
  next_cursor: NextCursor,
})
export type AgentPage = Static<typeof AgentPage>

/** AgentStatusResponse of spec.md. */
export const AgentStatus = Type.Object({
  agent_id: AgentAddress,
  zone: ZoneName,
  record_count: Type.Integer({ minimum: 0 }),
  chain_head: Hash,
  public_key: PublicKey,
  strand: Hash,
  timestamp_hlc: HlcText,
  bytes: Type.Integer({ minimum: 0, description: 'Bytes of all bodies as written, erased ones too' }),
  created_at_ms: UnixMs,
})
export type AgentStatus = Static<typeof AgentStatus>

/** ChainHeadResponse of spec.md. */
export const ChainHead = Type.Object({
  agent_id: AgentAddress,
  chain_head: Hash,
  hash: PrefixedHash,
  seq: Seq,
  record_count: Type.Integer({ minimum: 0 }),
  timestamp_hlc: HlcText,
  signature: Type.String({ pattern: '^[0-9a-f]{128}$' }),
})
export type ChainHead = Static<typeof ChainHead>
