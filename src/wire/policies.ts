import { Type, type Static } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { queriedTypePattern } from '../strand/record-type.js'
import { documented } from './documented.js'
import { second } from './example-values.js'
import { Hash, Seq, AgentAddress } from './primitives.js'
import { PolicyCondition } from './query.js'

const RowPolicy = Type.Object(
  {
    actions: Type.Array(Type.Enum(['read', 'write', 'delete', 'erase']), {
      minItems: 1,
      maxItems: 4,
      description: 'The allowed actions; delete includes restore, but not erase',
    }),
    conditions: Type.Array(PolicyCondition, {
      maxItems: limits.whereConditionsMax,
      description:
        'All must hold for the record. A value can be a claim of the token: $jwt.sub, $jwt.email, $jwt.verified_email, ' +
        '$jwt.app_metadata.<key> or $jwt.user_metadata.<key>. $jwt.email is the address of the registration, which may ' +
        'be unproven; $jwt.verified_email is missing until the user has signed in through the mailbox. A missing claim ' +
        'or field never matches',
    }),
    types: Type.Optional(
      Type.Array(Type.String({ pattern: `^${queriedTypePattern}$` }), {
        minItems: 1,
        maxItems: 32,
        description:
          'Record types, or prefixes with *; if absent, all types that applications write. Types of the server are only ' +
          'included by a prefix that begins with sys/, auth/ or edge/',
      }),
    ),
  },
  { additionalProperties: false },
)

export const RowPolicies = Type.Array(RowPolicy, {
  maxItems: limits.policiesMax,
  description:
    'One matching policy is enough; without policies, users have no access. With the claims of any user, each counted ' +
    `once, the policies take at most ${limits.grantBytesMax} bytes`,
})

/** An example of policies. */
export const policiesExample = [
  { actions: ['read', 'write'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] },
  {
    actions: ['read', 'delete'],
    conditions: [{ field: 'tenant', op: 'eq', value: '$jwt.app_metadata.tenant' }],
  },
]

/** Body of PUT /v1/agents/:agent/policies (docs/adr/0012-row-policies.md). */
export const PoliciesBody = Type.Object({ policies: RowPolicies }, { additionalProperties: false })
documented('PoliciesBody', PoliciesBody, { policies: { policies: policiesExample } })

export const PolicyWarnings = Type.Array(Type.String(), {
  description: 'Accepted policies that may not have the intended effect',
})

/** Answer to the replacement of the policies of an agent. */
export const PoliciesReplaced = Type.Object({
  agent_id: AgentAddress,
  policies: RowPolicies,
  warnings: PolicyWarnings,
  seq: Seq,
  record_id: Hash,
})
export type PoliciesReplaced = Static<typeof PoliciesReplaced>
documented('PoliciesReplaced', PoliciesReplaced, {
  replaced: { agent_id: 'sensors', policies: policiesExample, warnings: [], seq: 2, record_id: second },
})
