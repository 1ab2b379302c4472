import { describe, expect, it } from 'vitest'
import { streamLines } from '../../../src/cli/split-lines.js'

async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text)
}

async function groups(...texts: string[]): Promise<[number, string][][]> {
  const found: [number, string][][] = []
  for await (const lines of streamLines(chunks(...texts))) {
    found.push(lines.map(({ number, bytes }) => [number, bytes.toString()]))
  }
  return found
}

describe('streamed lines', () => {
  it('are grouped by the chunk that completes them, wherever chunks end', async () => {
    expect(await groups('{"a":1}\n{"b"', ':2}\n{"c":3}\n', '{"d":4}')).toEqual([
      [[1, '{"a":1}']],
      [
        [2, '{"b":2}'],
        [3, '{"c":3}'],
      ],
      [[4, '{"d":4}']],
    ])
  })

  it('keep their numbers when blank lines are dropped', async () => {
    expect(await groups('\n  \r\n1\n', '\n2\n\n')).toEqual([[[3, '1']], [[5, '2']]])
    expect(await groups('')).toEqual([])
  })

  it('lose a byte order mark at the beginning of the input only', async () => {
    expect(await groups('\ufeff1\n', '\ufeff2\n')).toEqual([[[1, '1']], [[2, '\ufeff2']]])
    expect(await groups('\ufeff\r\n1')).toEqual([[[2, '1']]])
    expect(await groups('\ufeff')).toEqual([])
  })

  it('end with an error when a line is longer than a batch may be', async () => {
    const long = 'x'.repeat(5_000_000)
    await expect(groups('1\n', long, long)).rejects.toThrow('Line 2 is longer than a record may be')
  })
})
