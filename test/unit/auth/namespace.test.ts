// @run on the built program
import { describe, expect, it } from 'vitest'
import { isOrganismId, organismNamespace, reachesAgent, rootNamespace } from '../../../src/auth/namespace.js'

describe('the id of an organism', () => {
  it.each(['acme', 'A', '_x', 'a.b-c_d', '0'.repeat(128)])('can be %s', (id) => {
    expect(isOrganismId(id)).toBe(true)
    expect(organismNamespace(id)).toStrictEqual({ id, agent: `${id}::auth` })
  })

  it.each(['', 'a::b', 'a:b', 'a/b', 'a%2fb', 'a..b', '..', '.', '.a', '-a', 'a b', 'a\0b', 'a\n', 'é'])(
    'cannot be %j',
    (id) => {
      expect(isOrganismId(id)).toBe(false)
      expect(organismNamespace(id)).toBeUndefined()
    },
  )

  it('has at most 128 characters', () => {
    expect(isOrganismId('a'.repeat(129))).toBe(false)
  })
})

describe('a namespace', () => {
  const root = rootNamespace('default')
  const acme = { id: 'acme', agent: 'acme::auth' }

  it('writes audit records of the root namespace to the default agent', () => {
    expect(root).toStrictEqual({ id: '', agent: 'default' })
  })

  it('reaches only agents outside organisms if it is the root namespace', () => {
    expect(reachesAgent(root, 'notes')).toBe(true)
    expect(reachesAgent(root, 'acme::notes')).toBe(false)
  })

  it('reaches only members of its organism otherwise', () => {
    expect(reachesAgent(acme, 'acme::notes')).toBe(true)
    expect(reachesAgent(acme, 'acme')).toBe(false)
    expect(reachesAgent(acme, 'notes')).toBe(false)
    expect(reachesAgent(acme, 'acme2::notes')).toBe(false)
    expect(reachesAgent(acme, 'other::acme::notes')).toBe(false)
  })
})
