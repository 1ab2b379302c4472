import { Type, type Static } from 'typebox'
import { agentActions, edgeActions, keyActions, proposalStates, recordActions } from '../strand/proposal.js'
import { documented, documentedParts } from './documented.js'
import { strand, publicKey, second } from './example-values.js'
import { AgentAddress, Hash, NextCursor, PublicKey, Seq, UnixMs, ZoneName } from './primitives.js'
import { EdgeType } from './graph.js'
import { policiesExample, PolicyWarnings, RowPolicies } from './policies.js'

/** The id of a proposal. */
export const ProposalId = Type.String({
  pattern: '^p_(0|[1-9][0-9]{0,13})_.+$',
  description: 'p_<seq>_<agent>: the seq of the sys/proposal record, and the agent',
})

/** The state of a proposal. */
export const ProposalStateName = Type.Enum([...proposalStates], {
  description: 'A proposal is approved and applied in one transaction, so that approved never appears',
})

const PrincipalId = Type.String({
  description: 'root, the id of a scoped key, or user:<namespace>:<user_id>',
})

const whenEffective = Type.Union([UnixMs, Type.Null()], {
  description: 'When it is applied unless rejected; null if it needs approval',
})

const proposal = {
  proposal_id: 'p_3_sensors',
  agent: 'sensors',
  action: 'delete',
  target: second,
  target_seq: 2,
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

/** Answer 202 to a mutation that needs a proposal because of the zone of the agent. */
export const Proposed = Type.Object({
  proposal_id: ProposalId,
  state: ProposalStateName,
  effective_at_ms: whenEffective,
})
export type Proposed = Static<typeof Proposed>
documented('Proposed', Proposed, {
  proposed: { proposal_id: 'p_3_sensors', state: 'proposed', effective_at_ms: 1_760_000_060_000 },
})

/** Answer 202 to new policies of an agent: the current ones stay in force until the proposal is applied. */
export const PoliciesProposed = Type.Object({
  ...Proposed.properties,
  detail: Type.String({ description: 'Why the policies are not in force yet, and when they apply' }),
  warnings: PolicyWarnings,
})
export type PoliciesProposed = Static<typeof PoliciesProposed>
documented('PoliciesProposed', PoliciesProposed, {
  proposed: {
    proposal_id: 'p_3_sensors',
    state: 'proposed',
    effective_at_ms: 1_760_000_060_000,
    detail:
      'Zone governed: these policies apply at 2025-10-09T08:54:20.000Z, unless they are rejected before. ' +
      'Until then the current policies apply',
    warnings: [],
  },
})

/** Answer of GET /v1/agents/:agent/policies. */
export const PoliciesShown = Type.Object({
  agent_id: AgentAddress,
  policies: RowPolicies,
  pending: Type.Union(
    [
      Type.Object({ proposal_id: ProposalId, policies: RowPolicies, effective_at_ms: whenEffective }),
      Type.Null(),
    ],
    { description: 'Proposed policies that are to replace these; null if there are none' },
  ),
})
export type PoliciesShown = Static<typeof PoliciesShown>
documented('PoliciesShown', PoliciesShown, {
  policies: { agent_id: 'sensors', policies: policiesExample, pending: null },
})

const Lineage = Type.String({
  description:
    'The lineage: the first key in the chain of keys that created one another; for other principals, the principal',
})

const VoteView = Type.Object({
  principal: PrincipalId,
  line: Lineage,
  vote: Type.Enum(['approve', 'reject', 'cancel', 'withdrawn'], {
    description: 'withdrawn: the approval no longer counts, because the key was deleted or has expired',
  }),
  at_ms: UnixMs,
})

const AgentChange = Type.Object(
  {
    zone: Type.Optional(ZoneName),
    policies: Type.Optional(RowPolicies),
    public_key: Type.Optional(PublicKey),
    reason: Type.Optional(
      Type.Literal('compromise', { description: 'Of a rotation: the old key may be compromised' }),
    ),
    edge: Type.Optional(Type.Object({ edge_type: EdgeType, dst: AgentAddress })),
    api_key: Type.Optional(
      Type.Object({
        key_id: Type.String(),
        name: Type.String(),
        scopes: Type.Array(Type.String()),
        agents: Type.Array(Type.String()),
        made_by: PrincipalId,
        expires_at_ms: Type.Union([UnixMs, Type.Null()]),
      }),
    ),
  },
  {
    description:
      'Every member of what the signed record proposes: the zone, policies or key of the agent, the edge to remove, ' +
      'or the API key to create. The name of an API key is not in the record',
  },
)

/** One proposal (docs/adr/0014-proposals.md). */
export const ProposalView = Type.Object({
  proposal_id: ProposalId,
  agent: AgentAddress,
  action: Type.Enum([...recordActions, ...edgeActions, ...agentActions, ...keyActions]),
  target: Type.Union([Hash, Type.Null()], {
    description: 'The hash of the record; null if the proposal is not about a record',
  }),
  target_seq: Type.Union([Seq, Type.Null()], { description: 'The seq of that record' }),
  change: Type.Union([AgentChange, Type.Null()]),
  zone: ZoneName,
  state: ProposalStateName,
  proposer: PrincipalId,
  line: Lineage,
  votes: Type.Array(VoteView),
  created_at_ms: UnixMs,
  effective_at_ms: whenEffective,
  expires_at_ms: UnixMs,
  ended_at_ms: Type.Union([UnixMs, Type.Null()]),
  reason: Type.Union([Type.String(), Type.Null()], {
    description:
      'Why it was rejected without a vote: the error when it was to be applied, or superseded; or proposer_ended if it ' +
      'was cancelled because its key or user was deleted, or its key has expired',
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

/** Answer to a change of zone that took effect immediately. */
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

/** Body of POST /v1/agents/:agent/rotate-key. Without a seed, or without a body, the server generates one. */
export const RotateKeyBody = Type.Object(
  {
    seed_hex: Type.Optional(
      Type.String({
        pattern: '^[0-9a-fA-F]{64}$',
        description: 'Ed25519 seed of the new key; generated if absent. Never returned',
      }),
    ),
    reason: Type.Optional(
      Type.Literal('compromise', {
        description:
          'The old key may be compromised. The record, and the proposal if there is one, contain the reason',
      }),
    ),
  },
  { additionalProperties: false },
)
documented('RotateKeyBody', RotateKeyBody, { generated: {}, chosen: { seed_hex: strand } })

/** Answer to a key rotation that took effect immediately. */
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
