// @run on the built program
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import {
  type Policy,
  type PolicyAction,
  type ResolvedPolicy,
  allows,
  newPolicyFaults,
  policyFaults,
  policyWarnings,
  resolvePolicies,
} from '../../../src/auth/row-policy.js'
import { type PolicyCondition, policyOperators } from '../../../src/strand/operators.js'
import { canonicalJson } from '../../../src/strand/json.js'

const claims = {
  sub: 'usr_1',
  email: 'a@b.c',
  app_metadata: { role: 'admin', level: 3, tenants: ['t1', 't2'], team: { id: 'red', size: 2 }, none: null },
  user_metadata: { name: 'Ada' },
}

const policy = (...conditions: PolicyCondition[]): Policy => ({ actions: ['read'], conditions })
const on = (field: string, op: PolicyCondition['op'], value: unknown): PolicyCondition => ({
  field,
  op,
  value,
})

const recordOf = (body: unknown, type = 'record') => ({ type, body: Buffer.from(canonicalJson(body)) })
const allowed = (resolved: ResolvedPolicy[], body: unknown) => allows(resolved, recordOf(body))

/** Whether a user with these claims may read a record with this body under one policy. */
function mayRead(body: unknown, ...conditions: PolicyCondition[]): boolean {
  return allowed(resolvePolicies([policy(...conditions)], 'read', claims), body)
}

describe('a row policy', () => {
  it.each([
    ['$jwt.sub', 'usr_1', 'usr_2'],
    ['$jwt.email', 'a@b.c', 'b@b.c'],
    ['$jwt.app_metadata.role', 'admin', 'user'],
    ['$jwt.app_metadata.level', 3, '3'],
    ['$jwt.app_metadata.team.id', 'red', 'blue'],
    ['$jwt.app_metadata.tenants.0', 't1', 't2'],
    ['$jwt.user_metadata.name', 'Ada', 'Eve'],
  ])('replaces %s by the claim', (value, same, different) => {
    expect(mayRead({ owner: same }, on('owner', 'eq', value))).toBe(true)
    expect(mayRead({ owner: different }, on('owner', 'eq', value))).toBe(false)
    expect(mayRead({}, on('owner', 'eq', value))).toBe(false)
  })

  it.each([
    '$jwt.app_metadata.missing',
    '$jwt.app_metadata.team.missing',
    '$jwt.app_metadata.role.length',
    '$jwt.app_metadata.tenants.length',
    '$jwt.app_metadata.__proto__',
    '$jwt.app_metadata.constructor',
    '$jwt.app_metadata.toString',
    '$jwt.app_metadata.hasOwnProperty.name',
    '$jwt.user_metadata.__proto__.role',
    '$jwt.constructor.name',
    '$jwt.iss',
    '$jwt.',
  ])('never matches %s, which the user lacks, with any operator', (value) => {
    const bodies = [{}, { owner: null }, { owner: 'Object' }, { owner: 0 }, { owner: {} }, { owner: value }]
    for (const op of policyOperators.filter((op) => op !== 'exists')) {
      for (const body of bodies) expect(mayRead(body, on('owner', op, value))).toBe(false)
    }
    for (const body of bodies) expect(mayRead(body, on('owner', 'in', [value]))).toBe(false)
  })

  it('matches $jwt.verified_email if the token has it, and never otherwise', () => {
    const proven = { ...claims, verified_email: 'a@b.c' }
    const owned = recordOf({ owner: 'a@b.c' })
    for (const op of policyOperators.filter((op) => op !== 'exists')) {
      const value = op === 'in' ? ['$jwt.verified_email'] : '$jwt.verified_email'
      const read = (of: typeof claims) => resolvePolicies([policy(on('owner', op, value))], 'read', of)
      expect(allows(read(claims), owned)).toBe(false)
      expect(allows(read(claims), recordOf({}))).toBe(false)
      const matching = op === 'eq' || op === 'in' || op === 'lte' || op === 'gte'
      expect(allows(read(proven), owned)).toBe(matching)
    }
    expect(policyFaults([policy(on('owner', 'eq', '$jwt.verified_email'))])).toEqual([])
    expect(policyFaults([policy(on('owner', 'eq', '$jwt.verified_email.x'))])).toHaveLength(1)
  })

  it('ignores a claim named __proto__', () => {
    const planted = { ...claims, app_metadata: JSON.parse('{"__proto__":{"role":"admin"}}') }
    const read = resolvePolicies([policy(on('r', 'eq', '$jwt.app_metadata.__proto__.role'))], 'read', planted)
    expect(read).toEqual([])
    expect(resolvePolicies([policy(on('r', 'eq', '$jwt.app_metadata.role'))], 'read', planted)).toEqual([])
  })

  it('compares objects and lists of claims as JSON with eq, and never by order', () => {
    const team = { size: 2, id: 'red' }
    expect(mayRead({ team }, on('team', 'eq', '$jwt.app_metadata.team'))).toBe(true)
    expect(mayRead({ team: { id: 'red' } }, on('team', 'eq', '$jwt.app_metadata.team'))).toBe(false)
    expect(mayRead({ all: ['t1', 't2'] }, on('all', 'eq', '$jwt.app_metadata.tenants'))).toBe(true)
    for (const op of ['lt', 'lte', 'gt', 'gte'] as const) {
      expect(mayRead({ team }, on('team', op, '$jwt.app_metadata.team'))).toBe(false)
      expect(mayRead({ team: '[object Object]' }, on('team', op, '$jwt.app_metadata.team'))).toBe(false)
    }
  })

  it('supports lists of claims, and placeholders within lists, with in', () => {
    expect(mayRead({ tenant: 't2' }, on('tenant', 'in', '$jwt.app_metadata.tenants'))).toBe(true)
    expect(mayRead({ tenant: 't3' }, on('tenant', 'in', '$jwt.app_metadata.tenants'))).toBe(false)
    expect(mayRead({ tenant: 'adm' }, on('tenant', 'in', '$jwt.app_metadata.role'))).toBe(false)
    const some = on('owner', 'in', ['$jwt.sub', 'public', '$jwt.app_metadata.missing'])
    expect(mayRead({ owner: 'usr_1' }, some)).toBe(true)
    expect(mayRead({ owner: 'public' }, some)).toBe(true)
    expect(mayRead({ owner: 'usr_2' }, some)).toBe(false)
  })

  it('does not change literals, and only compares values of one type', () => {
    expect(mayRead({ open: true }, on('open', 'eq', true))).toBe(true)
    expect(mayRead({ open: 'true' }, on('open', 'eq', true))).toBe(false)
    expect(mayRead({ level: 2 }, on('level', 'lt', '$jwt.app_metadata.level'))).toBe(true)
    expect(mayRead({ level: '2' }, on('level', 'lt', '$jwt.app_metadata.level'))).toBe(false)
    expect(mayRead({ text: '$jwt' }, on('text', 'eq', '$jwt'))).toBe(true)
    expect(mayRead({ none: null }, on('none', 'eq', '$jwt.app_metadata.none'))).toBe(true)
    expect(mayRead({}, on('missing', 'exists', false))).toBe(true)
  })

  it('finds fields by a JSON Pointer', () => {
    const body = { labels: { 'app.kubernetes.io/owner': 'usr_1' } }
    expect(mayRead(body, on('/labels/app.kubernetes.io~1owner', 'eq', '$jwt.sub'))).toBe(true)
    expect(mayRead(body, on('labels.app.kubernetes.io/owner', 'exists', true))).toBe(false)
  })

  it('requires all of its conditions, and one matching policy is enough', () => {
    const mine = on('owner', 'eq', '$jwt.sub')
    const open = on('state', 'eq', 'open')
    expect(mayRead({ owner: 'usr_1', state: 'open' }, mine, open)).toBe(true)
    expect(mayRead({ owner: 'usr_1', state: 'shut' }, mine, open)).toBe(false)
    const either = resolvePolicies([policy(mine), policy(open)], 'read', claims)
    expect(allowed(either, { owner: 'usr_1', state: 'shut' })).toBe(true)
    expect(allowed(either, { owner: 'usr_2', state: 'open' })).toBe(true)
    expect(allowed(either, { owner: 'usr_2', state: 'shut' })).toBe(false)
  })

  it('allows its actions on all records if it has no conditions', () => {
    expect(mayRead({ any: 1 })).toBe(true)
    expect(allowed([], {})).toBe(false)
    const actions: PolicyAction[] = ['write', 'delete']
    const policies = [{ actions, conditions: [] }]
    expect(allowed(resolvePolicies(policies, 'read', claims), {})).toBe(false)
    expect(allowed(resolvePolicies(policies, 'write', claims), {})).toBe(true)
    expect(allowed(resolvePolicies(policies, 'delete', claims), {})).toBe(true)
  })
})

describe('the types of a row policy', () => {
  const reserved = ['sys/policy', 'auth/login', 'edge/add']
  const reaches = (types: string[] | undefined, type: string) => {
    const one: Policy = { ...policy(on('missing', 'exists', false)), ...(types !== undefined && { types }) }
    return allows(resolvePolicies([one], 'read', claims), recordOf({}, type))
  }

  it('are those of applications by default', () => {
    for (const type of ['record', 'note/x', 'sys', 'authors', 'ingest/rejected'])
      expect(reaches(undefined, type)).toBe(true)
    for (const type of reserved) expect(reaches(undefined, type)).toBe(false)
  })

  it('are those in the list, and reserved types only by their prefix', () => {
    expect(reaches(['note'], 'note')).toBe(true)
    expect(reaches(['note'], 'record')).toBe(false)
    expect(reaches(['no*'], 'note')).toBe(true)
    expect(reaches(['*'], 'record')).toBe(true)
    for (const type of reserved) {
      for (const wide of ['*', type[0] + '*', type.slice(0, type.indexOf('/')) + '*'])
        expect(reaches([wide], type)).toBe(false)
      expect(reaches(['note', `${type.slice(0, type.indexOf('/'))}/*`], type)).toBe(true)
      expect(reaches([type], type)).toBe(true)
    }
    expect(reaches(['auth/*'], 'record')).toBe(false)
    expect(reaches(['auth/*'], 'sys/policy')).toBe(false)
  })

  it('do not widen another policy', () => {
    const policies: Policy[] = [
      { ...policy(on('n', 'eq', 1)), types: ['auth/*'] },
      { ...policy(), types: ['note'] },
      policy(on('n', 'eq', 2)),
    ]
    const resolved = resolvePolicies(policies, 'read', claims)
    const seen = [
      [{ n: 1 }, 'auth/login'],
      [{ n: 2 }, 'auth/login'],
      [{ n: 2 }, 'record'],
      [{ n: 1 }, 'record'],
      [{ n: 1 }, 'note'],
    ] as const
    expect(seen.map(([body, type]) => allows(resolved, recordOf(body, type)))).toEqual([
      true,
      false,
      true,
      false,
      true,
    ])
  })
})

describe('row policies of any kind', () => {
  const literal = fc.oneof(
    fc.integer(),
    fc.boolean(),
    fc.constantFrom('usr_1', 'admin', 'x'),
    fc.constant(null),
  )
  const value = fc.oneof(
    literal,
    fc.array(literal, { maxLength: 3 }),
    fc.constantFrom('$jwt.sub', '$jwt.email', '$jwt.app_metadata.role', '$jwt.user_metadata.missing'),
  )
  const condition = fc.record({
    field: fc.constantFrom('owner', 'role', 'a.b'),
    op: fc.constantFrom(...policyOperators),
    value,
  })
  const onePolicy = fc.record({
    actions: fc.constant<PolicyAction[]>(['read']),
    conditions: fc.array(condition, { maxLength: 3 }),
  })
  const body = fc.record({ owner: literal, role: literal }, { requiredKeys: [] })

  it('allow a record if one of them allows it', () => {
    fc.assert(
      fc.property(fc.array(onePolicy, { maxLength: 4 }), body, (policies, body) => {
        const together = allowed(resolvePolicies(policies, 'read', claims), body)
        const alone = policies.some((one) => allowed(resolvePolicies([one], 'read', claims), body))
        expect(together).toBe(alone)
      }),
    )
  })

  it('do not allow more with an additional condition', () => {
    fc.assert(
      fc.property(onePolicy, condition, body, (one, added, body) => {
        const narrower = { ...one, conditions: [...one.conditions, added] }
        if (allowed(resolvePolicies([narrower], 'read', claims), body)) {
          expect(allowed(resolvePolicies([one], 'read', claims), body)).toBe(true)
        }
      }),
    )
  })

  it('have no placeholders when they are resolved', () => {
    fc.assert(
      fc.property(fc.array(onePolicy, { maxLength: 4 }), (policies) => {
        expect(JSON.stringify(resolvePolicies(policies, 'read', claims))).not.toContain('$jwt.')
      }),
    )
  })
})

describe('the check of policies', () => {
  const faultsOf = (...conditions: PolicyCondition[]) => policyFaults([policy(...conditions)])

  it.each([
    on('owner', 'eq', '$jwt.sub'),
    on('a.b', 'ne', '$jwt.email'),
    on('owner', 'in', ['$jwt.sub', 'public']),
    on('tenant', 'in', '$jwt.app_metadata.tenants'),
    on('role', 'eq', '$jwt.app_metadata.team.id'),
    on('role', 'eq', '$jwt.user_metadata.display-name'),
    on('price', 'lt', '$5'),
    on('text', 'eq', '$jwt'),
    on('any', 'eq', { nested: ['value'] }),
    on('any', 'exists', false),
  ])('accepts %j', (condition) => {
    expect(faultsOf(condition)).toEqual([])
  })

  it.each([
    '$jwt.',
    '$jwt.iss',
    '$jwt.sub.x',
    '$jwt.SUB',
    '$jwt.sub ',
    '$jwt.app_metadata',
    '$jwt.app_metadata.',
    '$jwt.app_metadata..x',
    '$jwt.app_metadata.x.',
    '$jwt.app_metadata.__proto__',
    '$jwt.user_metadata.a.__proto__.b',
    '$jwt.user_metadata.a b',
    `$jwt.user_metadata.${'a'.repeat(300)}`,
  ])('refuses %j, which begins like a placeholder but is not valid', (value) => {
    expect(faultsOf(on('a', 'eq', value))).toMatchObject([
      { pointer: '/policies/0/conditions/0/value', code: 'validation_failed' },
    ])
    expect(faultsOf(on('a', 'in', ['x', value]))).toHaveLength(1)
  })

  it('refuses a placeholder where it is not resolved', () => {
    expect(faultsOf(on('a', 'eq', { b: ['$jwt.sub'] }))).toHaveLength(1)
    expect(faultsOf(on('a', 'eq', ['$jwt.sub']))).toHaveLength(1)
    expect(faultsOf(on('a', 'in', [['$jwt.sub']]))).toHaveLength(1)
    expect(faultsOf(on('a', 'exists', '$jwt.sub'))).toHaveLength(1)
  })

  it('refuses lists of more than 1,000 items, except in imports', () => {
    const list = (length: number) =>
      on(
        'a',
        'in',
        Array.from({ length }, (_, n) => n),
      )
    expect(newPolicyFaults([policy(list(1_000))])).toEqual([])
    expect(newPolicyFaults([policy(on('a', 'exists', true), list(1_001))])).toMatchObject([
      { pointer: '/policies/0/conditions/1/value' },
    ])
    expect(faultsOf(list(1_001))).toEqual([])
  })

  it('refuses lists with a repeated placeholder, except in imports', () => {
    const twice = on('a', 'in', ['$jwt.sub', 'x', 'x', '$jwt.sub'])
    expect(newPolicyFaults([policy(twice)])).toMatchObject([{ pointer: '/policies/0/conditions/0/value' }])
    expect(newPolicyFaults([policy(on('a', 'in', ['$jwt.sub', 'x', 'x', '$jwt.email']))])).toEqual([])
    expect(faultsOf(twice)).toEqual([])
  })

  it('refuses fields that are malformed JSON Pointers, except in imports', () => {
    const fields = ['/labels/app.kubernetes.io~1name', '/', '/a..b', '/a/0']
    for (const field of fields) {
      expect([...faultsOf(on(field, 'eq', 1)), ...newPolicyFaults([policy(on(field, 'eq', 1))])]).toEqual([])
    }
    for (const field of ['/a~b', '/~2', '/__proto__', '/a/__proto__/b']) {
      expect(newPolicyFaults([policy(on(field, 'eq', 1))])).toMatchObject([
        { pointer: '/policies/0/conditions/0/field' },
      ])
      expect(faultsOf(on(field, 'eq', 1))).toEqual([])
    }
  })

  it('refuses values that their operator never matches, and invalid fields', () => {
    expect(faultsOf(on('a', 'in', 'x'))).toHaveLength(1)
    expect(faultsOf(on('a', 'lt', true))).toHaveLength(1)
    expect(faultsOf(on('a', 'gte', [1]))).toHaveLength(1)
    expect(faultsOf(on('a', 'exists', 'yes'))).toHaveLength(1)
    for (const field of ['', '.', 'a.', 'a..b', '__proto__', 'a.__proto__.b']) {
      expect(faultsOf(on(field, 'eq', 1))).toMatchObject([{ pointer: '/policies/0/conditions/0/field' }])
    }
  })

  it('returns a pointer for each fault, and limits the number of conditions', () => {
    const wrong = on('', 'eq', '$jwt.x')
    const faults = policyFaults([policy(), policy(on('a', 'eq', 1), wrong)])
    expect(faults.map(({ pointer }) => pointer)).toEqual([
      '/policies/1/conditions/1/field',
      '/policies/1/conditions/1/value',
    ])
    const many = policy(...Array.from({ length: 33 }, () => wrong))
    expect(policyFaults([many])).toMatchObject([{ pointer: '/policies/0/conditions' }])
  })

  it('warns about claims that users can change, and about no others', () => {
    const trusted = policy(on('a', 'eq', '$jwt.app_metadata.role'), on('b', 'eq', 'user_metadata'))
    expect(policyWarnings([trusted])).toEqual([])
    const warned = [
      trusted,
      policy(on('a', 'eq', '$jwt.user_metadata.team'), on('b', 'in', ['$jwt.user_metadata.x'])),
    ]
    expect(policyWarnings(warned)).toEqual([
      '/policies/1/conditions/0 compares with $jwt.user_metadata, which users can change',
      '/policies/1/conditions/1 compares with $jwt.user_metadata, which users can change',
    ])
  })

  it('warns about a policy that only requires fields to be absent', () => {
    const absent = on('secret', 'exists', false)
    expect(
      policyWarnings([policy(), policy(absent, on('a', 'eq', 1)), policy(on('a', 'exists', true))]),
    ).toEqual([])
    expect(policyWarnings([policy(), policy(absent, { ...absent, field: 'b' })])).toEqual([
      '/policies/1/conditions match every record that lacks these fields, whatever else it contains',
    ])
  })
})
