import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { rejectedDrafts } from '../../../workers/shard/rejected-line.js'

const refusal = { code: 'too_large', detail: 'Expected less' } as const

function partsOf(bytes: Buffer, recordBytesMax: number) {
  const drafts = rejectedDrafts({ line: 3, bytes }, refusal, {
    recordBytesMax,
    signing: 'group',
  })
  expect(drafts.every(({ body }) => body.length <= recordBytesMax)).toBe(true)
  return drafts.map(({ body }) => JSON.parse(Buffer.from(body).toString()))
}

/** Every character of these takes another number of bytes, in UTF-8 or in JSON. */
const alphabet = ['a', '"', '\\', '\n', '\u0001', '\u007f', 'é', '€', '😀', '\u2028']

describe('a refused line that no record can hold', () => {
  it('is cut into parts that make all of it, never within a character, whatever is in it', () => {
    for (let seed = 1; seed < 60; seed++) {
      let chance = seed
      let text = ''
      while (text.length < 3_000) {
        chance = (chance * 48_271) % 2_147_483_647
        text += (alphabet[chance % (1 + (seed % alphabet.length))] ?? '').repeat(1 + (chance % 7))
      }
      const bytes = Buffer.from(text)
      const parts = partsOf(bytes, 560 + seed)
      expect(parts.length).toBeGreaterThan(3)
      const whole = parts.map(
        ({ text: one = '', base64 = '' }) => one + Buffer.from(base64, 'base64').toString(),
      )
      expect(whole.join('')).toBe(text)
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      for (const [index, part] of parts.entries()) {
        const told = {
          line: 3,
          ...refusal,
          part: index + 1,
          parts: parts.length,
          bytes: bytes.length,
          sha256,
        }
        expect(part).toMatchObject(told)
      }
    }
  })

  it('is base64 where a text would be more than twice as many records', () => {
    expect(partsOf(Buffer.from('\u0001'.repeat(3_000)), 600)[0]).toHaveProperty('base64')
    expect(partsOf(Buffer.from('"'.repeat(3_000)), 600)[0]).toHaveProperty('text')
    expect(partsOf(Buffer.alloc(3_000, 0xff), 600)[0]).toHaveProperty('base64')
    // As a text it would be too many.
    const most = partsOf(Buffer.alloc(limits.ingestAtomicBytesMax, '"'), 2_048)
    expect([most.length > 0, 'base64' in most[0]]).toEqual([true, true])
  })

  it('is not kept where records are too small for it', () => {
    expect(partsOf(Buffer.alloc(2_000, 'x'), 400)).toEqual([])
    expect(partsOf(Buffer.alloc(limits.ingestAtomicBytesMax, 'x'), 700)).toEqual([])
  })
})
