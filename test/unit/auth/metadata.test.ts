// @run on the built program
import { describe, expect, it } from 'vitest'
import { metadataBytes, metadataRefusal } from '../../../src/auth/user.js'

describe('the metadata of a user', () => {
  it('counts the bytes of both canonical forms', () => {
    expect(metadataBytes({ appMetadata: {}, userMetadata: {} })).toBe(4)
    expect(metadataBytes({ appMetadata: { b: 1, a: 'é' }, userMetadata: { x: 1e21 } })).toBe(
      Buffer.byteLength('{"a":"é","b":1}{"x":1e+21}'),
    )
  })

  it('may take as many bytes as the limit, in either object', () => {
    const empty = '{}{"a":""}'.length
    const full = { a: 'x'.repeat(4_096 - empty) }
    const over = { a: 'x'.repeat(4_097 - empty) }
    expect(metadataRefusal({ appMetadata: full, userMetadata: {} }, 4_096)).toBeUndefined()
    expect(metadataRefusal({ appMetadata: {}, userMetadata: full }, 4_096)).toBeUndefined()
    expect(metadataRefusal({ appMetadata: over, userMetadata: {} }, 4_096)?.code).toBe('metadata_too_large')
    expect(metadataRefusal({ appMetadata: {}, userMetadata: over }, 4_096)).toStrictEqual({
      code: 'metadata_too_large',
      detail: 'Expected app_metadata and user_metadata to take at most 4096 bytes together, not 4097',
    })
  })

  it('has no member named __proto__, at any depth', () => {
    const planted = JSON.parse('{"list":[{"__proto__":{"admin":true}}]}')
    const expected = { code: 'validation_failed', detail: 'Expected no key named __proto__' }
    expect(metadataRefusal({ appMetadata: planted, userMetadata: {} }, 4_096)).toStrictEqual(expected)
    expect(metadataRefusal({ appMetadata: {}, userMetadata: planted }, 4_096)).toStrictEqual(expected)
  })
})
