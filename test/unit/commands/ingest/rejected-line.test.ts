import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { rejectedDrafts } from '../../../../workers/commands/ingest/rejected-line.js'

const refusal = { code: 'too_large', detail: 'Expected less' } as const

function partsOf(bytes: Buffer, recordBytesMax: number) {
  const drafts = rejectedDrafts({ line: 3, bytes }, refusal, {
    recordBytesMax,
    signing: 'group',
  })
  expect(drafts.every(({ body }) => body.length <= recordBytesMax)).toBe(true)
  return drafts.map(({ body }) => JSON.parse(Buffer.from(body).toString()))
}

/** Characters that take different numbers of bytes in UTF-8 or in JSON. */
const alphabet = ['a', '"', '\\', '\n', '\u0001', '\u007f', 'é', '€', '😀', '\u2028']

describe('a refused line that no record can hold', () => {
  it('is split into parts that add up to the line, never within a character', () => {
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
        const expected = {
          line: 3,
          ...refusal,
          part: index + 1,
          parts: parts.length,
          bytes: bytes.length,
          sha256,
        }
        expect(part).toMatchObject(expected)
      }
    }
  })

  it('is kept as base64 if texts would take more than twice as many records', () => {
    expect(partsOf(Buffer.from('\u0001'.repeat(3_000)), 600)[0]).toHaveProperty('base64')
    expect(partsOf(Buffer.from('"'.repeat(3_000)), 600)[0]).toHaveProperty('text')
    expect(partsOf(Buffer.alloc(3_000, 0xff), 600)[0]).toHaveProperty('base64')
    // Texts would take too many records.
    const most = partsOf(Buffer.alloc(limits.ingestAtomicBytesMax, '"'), 2_048)
    expect([most.length > 0, 'base64' in most[0]]).toEqual([true, true])
  })

  it('is not kept if records are too small for its parts', () => {
    expect(partsOf(Buffer.alloc(2_000, 'x'), 400)).toEqual([])
    expect(partsOf(Buffer.alloc(limits.ingestAtomicBytesMax, 'x'), 700)).toEqual([])
  })
})
