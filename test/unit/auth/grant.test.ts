import { describe, expect, it } from 'vitest'
import { fc } from '../../support/fast-check.js'
import { grantOfPolicies, grantOfText, grantTooLarge, type Grant } from '../../../src/auth/grant.js'
import { grantBytesAtMost, grantFor, type Policy, type PolicyClaims } from '../../../src/auth/row-policy.js'
import { limits } from '../../../src/base/limits/limits.js'
import { canonicalJson } from '../../../src/strand/json.js'

const claims = (user_metadata: object = {}): PolicyClaims => ({
  sub: 'usr_1',
  email: 'a@b.c',
  app_metadata: {},
  user_metadata: { ...user_metadata },
})
const naming = (...values: unknown[]): Policy => ({
  actions: ['read'],
  conditions: values.map((value) => ({ field: 'a', op: 'eq', value })),
})

function granted(policies: readonly Policy[], userClaims: PolicyClaims): Grant {
  const grant = grantOfPolicies(policies, 'read', userClaims)
  if ('code' in grant) throw new Error(grant.detail)
  return grant
}

describe('a grant', () => {
  it('is compiled once for a version of policies and a set of claims', () => {
    const policies = [naming('$jwt.sub')]
    const one = granted(policies, claims())
    expect(granted(policies, claims())).toBe(one)
    // An equal list, as read again from the store.
    expect(granted(structuredClone(policies), claims())).toBe(one)
    expect(grantOfText({ key: one.key, text: one.text })).toBe(one)
    expect(granted(policies, { ...claims(), sub: 'usr_2' })).not.toBe(one)
    expect(granted([naming('$jwt.email')], claims())).not.toBe(one)
  })

  it('is equal in a thread that only has its text', () => {
    const policies = [naming('$jwt.user_metadata.a', 1), naming('$jwt.user_metadata.missing'), naming()]
    const { text, policies: resolved } = granted(policies, claims({ a: { b: ['ä'] } }))
    expect(grantOfText({ key: 'another thread', text }).policies).toEqual(resolved)
    expect(resolved).toHaveLength(2)
  })

  it('is refused if policies and claims are too large together, and the refusal is cached', () => {
    const policies = [naming('$jwt.user_metadata.a')]
    const huge = claims({ a: 'x'.repeat(limits.grantBytesMax) })
    expect(grantOfPolicies(policies, 'read', huge)).toBe(grantTooLarge)
    expect(grantOfPolicies(policies, 'read', huge)).toBe(grantTooLarge)
  })

  it('has the value of a placeholder once, even if many conditions contain it', () => {
    const policies = [naming(...Array.from({ length: 32 }, () => '$jwt.user_metadata.a'))]
    const { text, policies: resolved } = granted(policies, claims({ a: { b: 'only once' } }))
    expect(text.split('only once')).toHaveLength(2)
    const values = resolved.flatMap(({ conditions }) => conditions).map(({ value }) => value)
    expect(new Set(values).size).toBe(1)
  })
})

describe('the bound of a grant for any claims', () => {
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.string({ maxLength: 5 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('tree'), { maxKeys: 3 }),
      fc.array(tie('tree'), { maxLength: 3 }),
    ),
  }))
  const metadata = fc.dictionary(fc.constantFrom('a', 'b', 'c'), tree, { maxKeys: 3 })
  const path = fc.array(fc.constantFrom('a', 'b', 'c', '0', '1'), { minLength: 1, maxLength: 5 })
  const placeholder = fc
    .tuple(fc.constantFrom('app_metadata', 'user_metadata'), path)
    .map(([root, steps]) => `$jwt.${root}.${steps.join('.')}`)
  const value = fc.oneof(placeholder, fc.constantFrom('$jwt.sub', '$jwt.email', 'x'))

  it('is never exceeded', () => {
    const cases = fc.tuple(fc.array(value, { maxLength: 8 }), metadata, metadata)
    fc.assert(
      fc.property(cases, ([values, app_metadata, user_metadata]) => {
        const bytes = Buffer.byteLength(canonicalJson(app_metadata) + canonicalJson(user_metadata))
        const policies = [naming(...values)]
        const userClaims = { ...claims(), app_metadata, user_metadata }
        const size = Buffer.byteLength(JSON.stringify(grantFor(policies, 'read', userClaims)))
        expect(size).toBeLessThanOrEqual(grantBytesAtMost(policies, bytes))
      }),
      { numRuns: 500 },
    )
  })

  it('counts members of the same depth once', () => {
    const flat = Array.from({ length: 30 }, (_none, n) => `$jwt.app_metadata.k${n}`)
    expect(grantBytesAtMost([naming(...flat)], 4_096)).toBeLessThan(16_384)
    expect(grantBytesAtMost([naming('$jwt.app_metadata.a', '$jwt.app_metadata.a.b')], 4_096)).toBeGreaterThan(
      8_192,
    )
  })
})
