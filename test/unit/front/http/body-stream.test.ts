import { describe, expect, it } from 'vitest'
import { skipByteOrderMark } from '../../../../src/front/http/body-stream.js'

/**
 * The bytes after the mark was removed, for a body in parts of `partBytes`, and how often more was requested.
 */
function withoutMark(bytes: Buffer, partBytes: number): { rest: Buffer; requests: number; parts: number } {
  const rest: Buffer[] = []
  let isEnded = false
  const sink = skipByteOrderMark({
    push(part, more) {
      rest.push(part)
      more()
    },
    end: () => (isEnded = true),
    fail: () => {},
  })
  let requests = 0
  let parts = 0
  for (let at = 0; at < bytes.length; at += partBytes) {
    parts += 1
    sink.push(bytes.subarray(at, at + partBytes), () => (requests += 1))
  }
  sink.end()
  expect(isEnded).toBe(true)
  return { rest: Buffer.concat(rest), requests, parts }
}

describe('a byte order mark', () => {
  const mark = Buffer.from('\ufeff')

  it('is removed at the beginning of a body, however small its parts are', () => {
    const cases: [bytes: Buffer, rest: Buffer][] = [
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
        const { rest, requests, parts } = withoutMark(bytes, partBytes)
        expect([bytes, partBytes, rest]).toEqual([bytes, partBytes, expected])
        // Every part has to request the next one, or the body would stop.
        expect(requests).toBe(parts)
      }
    }
  })
})
