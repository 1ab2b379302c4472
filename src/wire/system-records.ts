import { Type } from 'typebox'
import { agentActions, edgeActions, recordActions } from '../strand/proposal.js'
import { EdgeType } from './graph.js'
import { RowPolicies } from './policies.js'
import { AgentAddress, Hash, PublicKey, ZoneName } from './primitives.js'
import { reader } from './validate.js'

/* Bodies of the records that the server writes (docs/FORMAT.md). Unknown members are ignored. */

/** Seqs and times that fit the keys of the store, which have 48 bits. */
const maximum = 2 ** 48 - 1
const Seq = Type.Integer({ minimum: 0, maximum })
const UnixMs = Type.Integer({ minimum: 0, maximum })

const record = { target: Hash, target_seq: Seq }
const mutated = { proposal_seq: Type.Optional(Seq) }
const edge = { edge_type: EdgeType, dst: AgentAddress }
const principal = Type.String({ minLength: 1 })

const line = Type.Optional(principal)

const proposal = {
  principal,
  line,
  in_zone: ZoneName,
  effective_at_ms: Type.Union([UnixMs, Type.Null()]),
  expires_at_ms: UnixMs,
}

const [zoneAction, policiesAction, keyAction] = agentActions
const [edgeAction] = edgeActions

/** Readers of these bodies by record type. */
export const systemBodies = {
  genesis: reader(Type.Object({ created_at_ms: UnixMs, zone: ZoneName })),
  record: reader(Type.Object({ ...record, ...mutated })),
  zone: reader(Type.Object({ zone: ZoneName, ...mutated })),
  policy: reader(Type.Object({ policies: RowPolicies, ...mutated })),
  keyRotate: reader(Type.Object({ public_key: PublicKey, ...mutated })),
  edgeAdd: reader(Type.Object({ src: AgentAddress, ...edge, weight: Type.Number() })),
  edgeRemove: reader(Type.Object({ src: AgentAddress, ...edge, ...mutated })),
  proposal: reader(
    Type.Union([
      Type.Object({ action: Type.Enum([...recordActions]), ...record, ...proposal }),
      Type.Object({ action: Type.Literal(edgeAction), ...edge, ...proposal }),
      Type.Object({ action: Type.Literal(zoneAction), zone: ZoneName, ...proposal }),
      Type.Object({ action: Type.Literal(policiesAction), policies: RowPolicies, ...proposal }),
      Type.Object({
        action: Type.Literal(keyAction),
        public_key: PublicKey,
        reason: Type.Optional(Type.Literal('compromise')),
        ...proposal,
      }),
    ]),
  ),
  vote: reader(
    Type.Object({
      proposal: Hash,
      proposal_seq: Seq,
      vote: Type.Enum(['approve', 'reject', 'cancel', 'withdrawn']),
      principal,
      line,
    }),
  ),
  applied: reader(
    Type.Object({
      proposal: Hash,
      proposal_seq: Seq,
      state: Type.Enum(['applied', 'rejected', 'cancelled', 'expired']),
      effect_seq: Type.Optional(Seq),
      reason: Type.Optional(Type.String()),
    }),
  ),
  imported: reader(Type.Object({ records: Seq, head: Hash, principal, line })),
}
