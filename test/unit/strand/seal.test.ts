// @run on the built program
import { describe, expect, it } from 'vitest'
import { pooledRandom } from '../../../src/base/random.js'
import { seal, sealBytes, unseal, type SealContext } from '../../../src/strand/seal.js'

const master = Buffer.alloc(32, 1)
const secret = Buffer.alloc(32, 2)
const context: SealContext = { purpose: 'strandfast/agent-seed/v1', boundTo: Buffer.from('weather') }
const random = pooledRandom()

describe('a sealed secret', () => {
  it.each([32, 0, 1, 5_000])('opens with the same master seed and context: %d bytes', (count) => {
    const bytes = Buffer.alloc(count, 5)
    const sealed = seal(master, { ...context, secret: bytes }, random)
    expect(sealed).toHaveLength(count + sealBytes)
    expect(unseal(master, context, sealed)).toStrictEqual(bytes)
  })

  it('has the same bytes as in stores of version 0.4', () => {
    const sealed = seal(master, { ...context, secret }, (count) => Buffer.alloc(count, 3))
    expect(sealed.toString('hex')).toBe(
      '030303030303030303030303b20d78dac0d789cc361dbd1842b215a649cbdeb806d5a52a11b58160c879feef' +
        '9c17ae6b783736acd33ee9f15f04e634',
    )
  })

  it('never has the same bytes twice, and does not contain the secret', () => {
    const sealed = seal(master, { ...context, secret }, random)
    expect(seal(master, { ...context, secret }, random)).not.toStrictEqual(sealed)
    expect(sealed.includes(secret.subarray(0, 8))).toBe(false)
  })

  it('does not open with another purpose, binding or master seed, or when it is cut or changed', () => {
    const sealed = seal(master, { ...context, secret }, random)
    expect(() => unseal(master, { ...context, boundTo: Buffer.from('climate') }, sealed)).toThrow()
    expect(() => unseal(master, { ...context, purpose: 'strandfast/kept-answer/v1' }, sealed)).toThrow()
    expect(() => unseal(Buffer.alloc(32, 9), context, sealed)).toThrow()
    expect(() => unseal(master, context, sealed.subarray(1))).toThrow()
    expect(() => unseal(master, context, sealed.subarray(0, sealBytes - 1))).toThrow('28 bytes')
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => unseal(master, context, changed)).toThrow()
    }
  })
})
