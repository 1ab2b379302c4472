import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { isOrganismId, organismNamespace, rootNamespace } from '../../../src/auth/namespace.js'
import type { AuthKind } from '../../../workers/store/tables/auth-rows.js'
import { authKey } from '../../../workers/store/tables/auth-table.js'

const kinds: AuthKind[] = [
  'user',
  'email',
  'session',
  'user-session',
  'link',
  'email-link',
  'lockout',
  'keys',
]

/** Texts that could be mistaken for parts of an address, a path or a key. */
const tricky = fc.oneof(
  fc.constantFrom(
    '',
    '..',
    '.',
    '::',
    'a::auth',
    'a/b',
    '%2f',
    '%2F..',
    '\0',
    'a\0auth:user:x',
    'é',
    'e\u0301',
    '\ud800',
  ),
  fc.string({
    unit: fc.constantFrom('a', 'b', ':', '.', '/', '\0', '%', '2', 'f', '_', '-', 'é'),
    maxLength: 12,
  }),
  fc.string({ unit: 'binary', maxLength: 12 }),
)

/** Valid namespaces: the root namespace, and those of valid organism ids. */
const namespaces = fc.oneof(
  fc.constant(''),
  tricky.filter(isOrganismId),
  fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}$/).filter(isOrganismId),
)

/** Ids of rows. E-mails, hashes and user ids do not contain NUL; otherwise any text is valid. */
const ids = tricky.map((text) => Buffer.from(text.replaceAll('\0', '')).toString())
const rows = fc.record({ namespace: namespaces, kind: fc.constantFrom(...kinds), id: ids })

describe('the key of a row of auth state', () => {
  it('differs for each namespace, kind and id', () => {
    fc.assert(
      fc.property(rows, rows, (one, other) => {
        const same = one.namespace === other.namespace && one.kind === other.kind && one.id === other.id
        const keyOf = ({ namespace, kind, id }: typeof one) => Buffer.from(authKey(namespace, kind, id))
        expect(keyOf(one).equals(keyOf(other))).toBe(same)
      }),
      { numRuns: 3_000 },
    )
  })

  it('shares a prefix only with keys of the same namespace and kind', () => {
    fc.assert(
      fc.property(rows, rows, (one, other) => {
        const prefix = authKey(one.namespace, one.kind, '')
        const within = one.namespace === other.namespace && one.kind === other.kind
        expect(authKey(other.namespace, other.kind, other.id).startsWith(prefix)).toBe(within)
      }),
      { numRuns: 3_000 },
    )
  })
})

describe('the namespace of an organism', () => {
  it('has an agent that differs from all other agents', () => {
    fc.assert(
      fc.property(tricky, tricky, (one, other) => {
        const [left, right] = [organismNamespace(one), organismNamespace(other)]
        if (left === undefined || right === undefined) return
        expect(left.agent === right.agent).toBe(one === other)
        expect(left.agent).toBe(`${one}::auth`)
        expect(one).not.toContain(':')
        expect(left.agent).not.toBe(rootNamespace(other).agent)
      }),
      { numRuns: 3_000 },
    )
  })

  it('is undefined for ids that contain a separator of addresses, paths or keys', () => {
    fc.assert(
      fc.property(
        tricky,
        fc.constantFrom('::', ':', '/', '\\', '%2f', '..', '\0', ' ', 'é', '\n'),
        tricky,
        (a, b, c) => {
          expect(organismNamespace(a + b + c)).toBeUndefined()
        },
      ),
      { numRuns: 2_000 },
    )
  })
})
