import { describe, expect, it } from 'vitest'
import { pastMark } from '../../../../src/front/http/body-stream.js'

/** What is left of bytes that arrive in parts of so many, and how often more was asked for before the end. */
function past(bytes: Buffer, partBytes: number): { left: Buffer; asked: number; parts: number } {
  const left: Buffer[] = []
  let isEnded = false
  const sink = pastMark({
    push(part, more) {
      left.push(part)
      more()
    },
    end: () => (isEnded = true),
    fail: () => {},
  })
  let asked = 0
  let parts = 0
  for (let at = 0; at < bytes.length; at += partBytes) {
    parts += 1
    sink.push(bytes.subarray(at, at + partBytes), () => (asked += 1))
  }
  sink.end()
  expect(isEnded).toBe(true)
  return { left: Buffer.concat(left), asked, parts }
}

describe('a byte order mark', () => {
  const mark = Buffer.from('\ufeff')

  it('is left out at the beginning of a body, however small its parts are', () => {
    const cases: [bytes: Buffer, left: Buffer][] = [
      [Buffer.from('\ufeff{"a":"\ufeff"}'), Buffer.from('{"a":"\ufeff"}')],
      [Buffer.from('\ufeff\ufeff'), mark],
      [mark, Buffer.alloc(0)],
      [mark.subarray(0, 2), mark.subarray(0, 2)],
      [Buffer.from([0xef, 0xbb, 0x41, 0x42]), Buffer.from([0xef, 0xbb, 0x41, 0x42])],
      [Buffer.from(' \ufeff'), Buffer.from(' \ufeff')],
      [Buffer.alloc(0), Buffer.alloc(0)],
    ]
    for (const [bytes, expected] of cases) {
      for (let partBytes = 1; partBytes <= 5; partBytes++) {
        const { left, asked, parts } = past(bytes, partBytes)
        expect([bytes, partBytes, left]).toEqual([bytes, partBytes, expected])
        // Every part asks for the next one, or the body would stop.
        expect(asked).toBe(parts)
      }
    }
  })
})
