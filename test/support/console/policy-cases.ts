import {
  newPolicyFaults,
  type Policy,
  policyActions,
  policyFaults,
  type PolicyAction,
} from '../../../src/auth/row-policy.js'
import { type PolicyCondition, policyOperators } from '../../../src/strand/operators.js'
import { fc } from '../fast-check.js'

/** Rules, with a user and the requests of that user. */
export interface PolicyCase {
  policies: Policy[]
  /** The index of the user. */
  user: number
  /** The bodies to write. */
  written: Record<string, unknown>[]
  /** The indices of the records to delete. */
  deleted: number[]
}

/** The metadata of each user. Only the first user has a verified mailbox. */
export const usersMetadata: { app: object; own: object }[] = [
  { app: { team: 'blue', level: 2 }, own: {} },
  { app: { team: 'red', level: '2', tags: ['a', 'b'] }, own: { team: 'blue' } },
  { app: { team: ['blue', 'red'], deep: { a: { b: null } } }, own: { team: null, nick: 'é"\\\u2028' } },
  { app: { level: 1e21, 10: 'ten', flag: true }, own: { length: 3 } },
  { app: {}, own: {} },
]

/** The e-mails of the users. */
export const emails = usersMetadata.map((_one, at) => `user-${at}@example.org`)

const texts = [
  '',
  'a',
  'b',
  'blue',
  'red',
  '2',
  'true',
  'null',
  'é"\\\u2028',
  '\u{1f600}',
  '\uffff',
  '\n\u0007',
  ...emails,
]
const numbers = [0, 1, 2, -1, 0.1, 1e21, 1e-7, 5e-324, 9_007_199_254_740_991, -1.5]
const scalar = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...texts) },
  { weight: 2, arbitrary: fc.constantFrom(...numbers) },
  fc.constantFrom(true, false, null),
  fc.string({ unit: 'grapheme', maxLength: 6 }).filter((text) => !/\p{Surrogate}|\0|^\$jwt\./u.test(text)),
)
const keys = ['owner', 'team', 'level', 'deep', 'a', 'b', '10', '9', 'tags', 'é"x', 'length', '']

const value = fc.letrec<{ any: unknown; object: Record<string, unknown> }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    { weight: 6, arbitrary: scalar },
    tie('object'),
    fc.array(tie('any'), { maxLength: 3 }),
  ),
  object: fc.dictionary(fc.constantFrom(...keys), tie('any'), { maxKeys: 5 }),
}))

const fields = [
  'owner',
  'team',
  'level',
  'deep.a',
  'deep.a.b',
  '10',
  'tags',
  'tags.0',
  'tags.1.a',
  'tags.length',
  'length',
  'é"x',
  'zone',
  'missing.of.it',
  '/deep/a/b',
  '/',
]
const placeholders = [
  '$jwt.sub',
  '$jwt.email',
  '$jwt.verified_email',
  '$jwt.app_metadata.team',
  '$jwt.app_metadata.level',
  '$jwt.app_metadata.tags',
  '$jwt.app_metadata.tags.0',
  '$jwt.app_metadata.deep.a',
  '$jwt.app_metadata.10',
  '$jwt.user_metadata.team',
  '$jwt.user_metadata.nick',
  '$jwt.user_metadata.length',
]
const placeholder = fc.constantFrom(...placeholders)

function literalOf(op: PolicyCondition['op']): fc.Arbitrary<unknown> {
  if (op === 'exists') return fc.boolean()
  if (op === 'in') return fc.oneof(fc.array(fc.oneof(value.any, placeholder), { maxLength: 5 }), placeholder)
  if (op === 'eq' || op === 'ne') return fc.oneof(value.any, placeholder)
  return fc.oneof(fc.constantFrom(...texts), fc.constantFrom(...numbers), placeholder)
}

const condition = fc
  .constantFrom(...policyOperators)
  .chain((op) => fc.record({ field: fc.constantFrom(...fields), op: fc.constant(op), value: literalOf(op) }))

const types = fc.subarray(['record', 'rec*', '*', 'sys/*', 'sys/genesis', 'other'], { minLength: 1 })
const policy: fc.Arbitrary<Policy> = fc.record(
  {
    actions: fc.subarray<PolicyAction>([...policyActions], { minLength: 1 }),
    conditions: fc.array(condition, { maxLength: 3 }),
    types,
  },
  { requiredKeys: ['actions', 'conditions'] },
)

/** Cases with rules that the server accepts. @param records the number of records that can be deleted */
export function policyCases(records: number): fc.Arbitrary<PolicyCase> {
  return fc.record({
    policies: fc
      .array(policy, { maxLength: 4 })
      .filter((policies) => policyFaults(policies).length + newPolicyFaults(policies).length === 0),
    user: fc.nat({ max: emails.length - 1 }),
    written: fc.array(value.object, { minLength: 1, maxLength: 6 }),
    deleted: fc.uniqueArray(fc.nat({ max: records - 1 }), { minLength: 2, maxLength: 2 }),
  })
}

/** Bodies of records, most of which have a field that conditions compare. @param subs the ids of the users */
export function policyBodies(subs: readonly string[]): fc.Arbitrary<Record<string, unknown>> {
  const few = fc.constantFrom('a', 'b', 'blue', 'red', '2', 2, 1, null, true)
  const owner = fc.constantFrom(...subs, ...emails)
  const compared = fc.record({ owner, team: few, level: few, 10: few }, { requiredKeys: [] })
  return fc.tuple(value.object, compared).map(([object, own]) => ({ ...object, ...own }))
}
