import { Type, type Static } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { queriedTypePattern } from '../strand/record-type.js'
import { documented } from './documented.js'
import { second } from './example-values.js'
import { Hash, Seq, AgentAddress } from './primitives.js'
import { ConditionBody } from './query.js'

const RowPolicy = Type.Object(
  {
    actions: Type.Array(Type.Enum(['read', 'write', 'delete', 'erase']), {
      minItems: 1,
      maxItems: 4,
      description: 'What it allows; delete stands for restore, too, and never for erase',
    }),
    conditions: Type.Array(ConditionBody, {
      maxItems: limits.whereConditionsMax,
      description:
        'All must hold of the record; a value can be $jwt.sub, $jwt.email, $jwt.verified_email, ' +
        '$jwt.app_metadata.<key> or $jwt.user_metadata.<key>, the claims of the token. $jwt.email is what the user ' +
        'registered with, which nobody may have proven to own; $jwt.verified_email is missing until the user has ' +
        'come in by its mailbox. A claim or field that is not there never matches',
    }),
    types: Type.Optional(
      Type.Array(Type.String({ pattern: `^${queriedTypePattern}$` }), {
        minItems: 1,
        maxItems: 32,
        description:
          'Record types, or beginnings and *, that it is about; without it, all that applications write. Records of the ' +
          'server are reached only where one begins with sys/, auth/ or edge/',
      }),
    ),
  },
  { additionalProperties: false },
)

export const RowPolicies = Type.Array(RowPolicy, {
  maxItems: limits.policiesMax,
  description:
    'Any one of them suffices; without one, users reach nothing. Whatever the claims of a user, they take at most ' +
    `${limits.grantBytesMax} bytes with these put in, each claim once`,
})

const policies = [
  { actions: ['read', 'write'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] },
  {
    actions: ['read', 'delete'],
    conditions: [{ field: 'tenant', op: 'eq', value: '$jwt.app_metadata.tenant' }],
  },
]

/** Body of PUT /v1/agents/:agent/policies (docs/adr/0012-row-policies.md). */
export const PoliciesBody = Type.Object({ policies: RowPolicies }, { additionalProperties: false })
documented('PoliciesBody', PoliciesBody, { policies: { policies } })

/** Answer to replacing the policies of an agent. */
export const PoliciesReplaced = Type.Object({
  agent_id: AgentAddress,
  policies: RowPolicies,
  warnings: Type.Array(Type.String(), {
    description: 'Policies that are accepted, but may not do what is meant',
  }),
  seq: Seq,
  record_id: Hash,
})
export type PoliciesReplaced = Static<typeof PoliciesReplaced>
documented('PoliciesReplaced', PoliciesReplaced, {
  replaced: { agent_id: 'sensors', policies, warnings: [], seq: 2, record_id: second },
})

/** Answer of GET /v1/agents/:agent/policies. */
export const PoliciesShown = Type.Object({ agent_id: AgentAddress, policies: RowPolicies })
export type PoliciesShown = Static<typeof PoliciesShown>
documented('PoliciesShown', PoliciesShown, { policies: { agent_id: 'sensors', policies } })
