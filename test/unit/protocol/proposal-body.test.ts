import { describe, expect, it } from 'vitest'
import { bodyOfMutation, mutationOfBody } from '../../../src/protocol/proposal-body.js'
import type { Mutation } from '../../../src/protocol/proposal-messages.js'

const hash = 'ab'.repeat(32)

describe('a mutation', () => {
  it.each<Mutation>([
    { action: 'delete', target: hash, targetSeq: 3 },
    { action: 'restore', target: hash, targetSeq: 3 },
    { action: 'erase', target: hash, targetSeq: 3 },
    { action: 'remove_edge', edgeType: 'feeds', dst: 'other' },
    { action: 'zone', zone: 'protected' },
    { action: 'policies', policies: [{ actions: ['read'], conditions: [], types: ['sys/*'] }] },
    { action: 'rotate_key', publicKey: hash },
    { action: 'rotate_key', publicKey: hash, reason: 'compromise' },
  ])('is read from the body of its record with every member: $action', (mutation) => {
    expect(mutationOfBody(bodyOfMutation(mutation))).toEqual(mutation)
  })

  it('has no secrets in the body of its record', () => {
    const rotation = bodyOfMutation({ action: 'rotate_key', publicKey: hash, sealedSeed: 'sealed' })
    expect(JSON.stringify(rotation)).not.toContain('sealed')
    const facts = { keyId: 'key_1', name: 'a name', scopes: [], agents: [], madeBy: 'root', line: 'root' }
    const key = bodyOfMutation({ action: 'make_api_key', ...facts, digest: 'a digest' })
    expect(key).toEqual({
      action: 'make_api_key',
      key_id: 'key_1',
      scopes: [],
      agents: [],
      made_by: 'root',
      key_expires_at_ms: null,
    })
  })
})
