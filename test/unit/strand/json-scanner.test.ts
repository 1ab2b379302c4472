// @run on the built program
import { describe, expect, it } from 'vitest'
import { itemEnd, memberStart, memberText, stringEnd, valueEnd } from '../../../src/strand/json-scanner.js'
import { fc } from '../../support/fast-check.js'

/** The end of a value that is searched in pieces of `pieceBytes`. */
function endInPieces(bytes: Buffer, from: number, pieceBytes: number): number {
  const piece = { to: from, depth: 0, inString: 0 }
  for (let at = from; at < bytes.length; at = piece.to) {
    piece.to = Math.min(at + pieceBytes, bytes.length)
    const end = valueEnd(bytes, at, piece)
    if (end !== -1) return end
  }
  return -1
}

const text = fc
  .tuple(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(undefined, 1, '\t'))
  .map(([value, indent]) => {
    return JSON.stringify(value, null, indent)
  })

describe('the end of a value', () => {
  it('is found in the whole text and in pieces, with any text after it', () => {
    fc.assert(
      fc.property(
        text,
        fc.constantFrom(',', '}', ']', ' ', '\n:'),
        fc.integer({ min: 1, max: 9 }),
        (value, after, size) => {
          const bytes = Buffer.from(`[${value}${after}"[{`)
          const end = Buffer.byteLength(value) + 1
          expect([valueEnd(bytes, 1), endInPieces(bytes, 1, size)]).toEqual([end, end])
        },
      ),
      { numRuns: 2_000 },
    )
  })

  it('is unknown if the text ends earlier', () => {
    for (const cut of ['', '12', '"a', '"a\\', '"a\\"', '[1', '{"a":[]', '["]"'])
      for (const size of [1, 2, 9]) expect([cut, endInPieces(Buffer.from(cut), 0, size)]).toEqual([cut, -1])
    expect([stringEnd(Buffer.from('"a'), 0), stringEnd(Buffer.from('"a\\'), 0)]).toEqual([3, 5])
  })
})

it('finds the end of an item, even if it is malformed', () => {
  for (const [item, after] of [
    ['1 2', ','],
    ['{"a":[1,2]} x', ']'],
    ['', '}'],
    ['"a":"}",'.slice(0, -1), ','],
    ['{', ''],
  ] as const)
    expect(itemEnd(Buffer.from(item + after + '1'.repeat(after.length)), 0)).toBe(item.length)
})

it('finds the same members of an object as the parser', () => {
  const names = fc.constantFrom('a', 'records', 'agent', 'ag', '"', '\\', 'é', '{')
  fc.assert(
    fc.property(
      fc.dictionary(names, fc.jsonValue({ maxDepth: 2 })),
      names,
      fc.constantFrom(undefined, 2),
      (object, name, indent) => {
        const bytes = Buffer.from(JSON.stringify(object, null, indent))
        const start = memberStart(bytes, name)
        const found =
          start === -1 ? undefined : JSON.parse(bytes.toString('utf8', start, valueEnd(bytes, start)))
        expect(JSON.stringify(found)).toBe(
          JSON.stringify(Object.hasOwn(object, name) ? object[name] : undefined),
        )
      },
    ),
    { numRuns: 2_000 },
  )
})

describe('the agent of a line', () => {
  const named = (text: string) => memberText(Buffer.from(text), 'agent')

  it('is found in the object, without parsing other members', () => {
    expect(named('{"agent":"a","data":{}}')).toBe('a')
    expect(named(' \t{ "data" : {"agent":"b","x":[{"agent":1}]} , "agent" : "a" }\r')).toBe('a')
    expect(named(String.raw`{"data":"\\","x":"\"agent\":","agent":"a"}`)).toBe('a')
    expect(named('{"\\u0061gent":"\\u0061\\n"}')).toBe('a\n')
    expect(named('{"type":"agent","data":["agent"],"agent":"é"}')).toBe('é')
    expect(named('{"agent":""}')).toBe('')
    expect(named('{\n  "data": [\n1\n],\n  "agent": "a"\n}\n')).toBe('a')
  })

  it('is undefined unless an object has it as a text', () => {
    const lines = [
      '',
      'x',
      '[]',
      '"agent"',
      '{}',
      '{"agent":1}',
      '{"agent":{"agent":"a"}}',
      '{"agent"',
      '{"agent":"a',
    ]
    for (const line of [...lines, '{"data":{"agent":"a"}}', '{} {"agent":"a"}', '{"agent":"\\x"}']) {
      expect([line, named(line)]).toEqual([line, undefined])
    }
  })
})
