import { describe, expect, it } from 'vitest'
import { LineSplitter } from '../../../src/base/line-splitter.js'

const cutting = { bytes: 40, lines: 5, lineBytesMax: 20, keptBytesMax: 50 }

type Cut = [firstLine: number, text: string, isLong?: true]

/** The chunks of a text that arrives in parts of `partBytes`. */
function cut(text: string, partBytes: number, more: object = {}): Cut[] {
  const splitter = new LineSplitter({ ...cutting, ...more })
  const bytes = Buffer.from(text)
  const chunks = []
  for (let at = 0; at < bytes.length; at += partBytes)
    chunks.push(...splitter.push(bytes.subarray(at, at + partBytes)))
  const rest = splitter.end()
  if (rest !== undefined) chunks.push(rest)
  return chunks.map((chunk) => [
    chunk.firstLine,
    chunk.bytes.toString(),
    ...(chunk.isLong === true ? ([true] as const) : ([] as const)),
  ])
}

const [kept, dropped] = ['k'.repeat(50), 'd'.repeat(51)]
const fits = 'f'.repeat(20)

describe('a line that is too long', () => {
  const text = `a\nb\n${kept}\n${dropped}\nc\n\n${fits}\n${kept}\n${dropped}`

  it('is a separate chunk, dropped if it exceeds the second limit, with parts of any size', () => {
    const chunks: Cut[] = [
      [1, 'a\nb\n'],
      [3, kept, true],
      [4, '', true],
      [5, `c\n\n${fits}\n`],
      [8, kept, true],
      [9, '', true],
    ]
    for (let partBytes = 1; partBytes <= text.length; partBytes++)
      expect(cut(text, partBytes)).toEqual(chunks)
  })

  it('is dropped if the second limit is 0', () => {
    for (const partBytes of [1, 7, 1_000]) {
      const long = cut(text, partBytes, { keptBytesMax: 0 }).filter(([, , isLong]) => isLong)
      expect(long).toEqual([3, 4, 8, 9].map((line) => [line, '', true]))
    }
  })

  it('ends the chunk of the lines before it when it exceeds the limit', () => {
    const lines = 'x\n'.repeat(4)
    expect(cut(`${lines}${kept}\n${lines}`, 15)).toEqual([
      [1, lines],
      [5, kept, true],
      [6, lines],
    ])
  })
})

describe('lines that are not too long', () => {
  it('are split when a chunk is full', () => {
    const text = `${fits}\n${fits}\n${'x\n'.repeat(7)}y`
    for (let partBytes = 1; partBytes <= text.length; partBytes++) {
      expect(cut(text, partBytes)).toEqual([
        [1, `${fits}\n${fits}\n`],
        [3, 'x\n'.repeat(5)],
        [8, 'x\nx\ny'],
      ])
    }
  })
})
