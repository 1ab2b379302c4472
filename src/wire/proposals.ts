import { Type, type Static } from 'typebox'
import { agentActions, edgeActions, keyActions, proposalStates, recordActions } from '../strand/proposal.js'
import { documented, documentedParts } from './documented.js'
import { strand, publicKey, second } from './example-values.js'
import { AgentAddress, Hash, NextCursor, PublicKey, Seq, UnixMs, ZoneName } from './primitives.js'
import { EdgeType } from './graph.js'
import { RowPolicies } from './policies.js'

/** Id of a proposal, as path parameter and member. */
export const ProposalId = Type.String({
  pattern: '^p_(0|[1-9][0-9]{0,13})_.+$',
  description: 'The seq of the sys/proposal record, and the agent: p_<seq>_<agent>',
})

/** The state of a proposal. */
export const ProposalStateName = Type.Enum([...proposalStates], {
  description: 'Approved and applied are one transaction, so approved is never seen',
})

const PrincipalId = Type.String({
  description: 'root, the id of a scoped key, or user:<namespace>:<user_id>',
})

const whenEffective = Type.Union([UnixMs, Type.Null()], {
  description: 'When it applies itself unless rejected; null where it waits for approval',
})

const proposal = {
  proposal_id: 'p_3_sensors',
  agent: 'sensors',
  action: 'delete',
  target: second,
  change: null,
  zone: 'governed',
  state: 'applied',
  proposer: 'key_6f1c9a52e07b4d3388a1c2f0',
  line: 'key_6f1c9a52e07b4d3388a1c2f0',
  votes: [{ principal: 'root', line: 'root', vote: 'approve', at_ms: 1_760_000_010_000 }],
  created_at_ms: 1_760_000_000_000,
  effective_at_ms: 1_760_000_060_000,
  expires_at_ms: 1_760_604_800_000,
  ended_at_ms: 1_760_000_010_000,
  reason: null,
}

/** Answer 202 to a mutation that the zone of the agent does not let happen at once. */
export const Proposed = Type.Object({
  proposal_id: ProposalId,
  state: ProposalStateName,
  effective_at_ms: whenEffective,
})
export type Proposed = Static<typeof Proposed>
documented('Proposed', Proposed, {
  proposed: { proposal_id: 'p_3_sensors', state: 'proposed', effective_at_ms: 1_760_000_060_000 },
})

const Line = Type.String({
  description:
    'The first of the keys that made one another down to this one; the principal itself for others',
})

const VoteView = Type.Object({
  principal: PrincipalId,
  line: Line,
  vote: Type.Enum(['approve', 'reject', 'cancel', 'withdrawn'], {
    description: 'withdrawn: the approval of this key ended when the key was deleted or expired',
  }),
  at_ms: UnixMs,
})

const AgentChange = Type.Object(
  {
    zone: Type.Optional(ZoneName),
    policies: Type.Optional(RowPolicies),
    public_key: Type.Optional(PublicKey),
    edge: Type.Optional(Type.Object({ edge_type: EdgeType, dst: AgentAddress })),
    api_key: Type.Optional(
      Type.Object({
        key_id: Type.String(),
        name: Type.String(),
        scopes: Type.Array(Type.String()),
        agents: Type.Array(Type.String()),
        expires_at_ms: Type.Union([UnixMs, Type.Null()]),
      }),
    ),
  },
  {
    description:
      'What the agent is to have: its zone, policies or key; or the edge that it is to lose; or the API key that the ' +
      'server is to have',
  },
)

/** One proposal (docs/adr/0014-proposals.md). */
export const ProposalView = Type.Object({
  proposal_id: ProposalId,
  agent: AgentAddress,
  action: Type.Enum([...recordActions, ...edgeActions, ...agentActions, ...keyActions]),
  target: Type.Union([Hash, Type.Null()], {
    description: 'The record; null where it is an edge or the agent itself',
  }),
  change: Type.Union([AgentChange, Type.Null()]),
  zone: ZoneName,
  state: ProposalStateName,
  proposer: PrincipalId,
  line: Line,
  votes: Type.Array(VoteView),
  created_at_ms: UnixMs,
  effective_at_ms: whenEffective,
  expires_at_ms: UnixMs,
  ended_at_ms: Type.Union([UnixMs, Type.Null()]),
  reason: Type.Union([Type.String(), Type.Null()], {
    description:
      'Why it was rejected without a vote to reject: what stood in its way when its time came, or superseded; ' +
      'proposer_ended where it was cancelled because its key or user was deleted, or its key has expired',
  }),
})
export type ProposalView = Static<typeof ProposalView>
documented('ProposalView', ProposalView, { proposal })

/** Answer of GET /v1/proposals. */
export const ProposalPage = Type.Object({ proposals: Type.Array(ProposalView), next_cursor: NextCursor })
export type ProposalPage = Static<typeof ProposalPage>
documented('ProposalPage', ProposalPage, { page: { proposals: [proposal], next_cursor: null } })

/** Body of PUT /v1/agents/:agent/zone. */
export const ZoneBody = Type.Object({ zone: ZoneName }, { additionalProperties: false })
documented('ZoneBody', ZoneBody, { zone: { zone: 'protected' } })

/** Answer of a change of zone that took effect at once. */
export const ZoneChanged = Type.Object({
  agent_id: AgentAddress,
  zone: ZoneName,
  seq: Seq,
  record_id: Hash,
})
export type ZoneChanged = Static<typeof ZoneChanged>
documented('ZoneChanged', ZoneChanged, {
  changed: { agent_id: 'sensors', zone: 'protected', seq: 3, record_id: second },
})

/** Body of POST /v1/agents/:agent/rotate-key; without a seed, or without a body, the server draws one. */
export const RotateKeyBody = Type.Object(
  {
    seed_hex: Type.Optional(
      Type.String({
        pattern: '^[0-9a-fA-F]{64}$',
        description: 'Ed25519 seed of the new key; drawn when absent. Never given back',
      }),
    ),
    reason: Type.Optional(
      Type.Literal('compromise', {
        description:
          'The old key may be in other hands: told in the record, and in the proposal where there is one',
      }),
    ),
  },
  { additionalProperties: false },
)
documented('RotateKeyBody', RotateKeyBody, { drawn: {}, chosen: { seed_hex: strand } })

/** Answer of a key rotation that took effect at once. */
export const KeyRotated = Type.Object({
  agent_id: AgentAddress,
  public_key: PublicKey,
  seq: Seq,
  record_id: Hash,
})
export type KeyRotated = Static<typeof KeyRotated>

documentedParts({ ProposalId })
documented('KeyRotated', KeyRotated, {
  rotated: { agent_id: 'sensors', public_key: publicKey, seq: 3, record_id: second },
})
