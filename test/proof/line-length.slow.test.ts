import { describe, expect, it } from 'vitest'
import { SignedStrand } from '../client/signed-strand.js'
import { byClient, byCommandLine, byLines, byPython } from '../support/proof/verifiers.js'

const LINE_BYTES = 8_388_608
const lines = new SignedStrand().append().exportText().trimEnd().split('\n')

/** The export with the line at `index` padded to `bytes` by an unknown member. */
function padded(index: number, bytes: number, ending: string): Buffer {
  const line = lines.at(index) ?? ''
  // Characters of two bytes, because the limit is in bytes.
  const open = `{"x":"`
  const rest = `",${line.slice(1)}`
  const paddingBytes = bytes - open.length - Buffer.byteLength(rest)
  const filling = 'é'.repeat(Math.floor(paddingBytes / 2)) + 'x'.repeat(paddingBytes % 2)
  const long = open + filling + rest
  expect(Buffer.byteLength(long)).toBe(bytes)
  return Buffer.from(lines.with(index, long).join('\n') + ending)
}

describe('the longest line', () => {
  it.each([
    ['in the middle', 2, '\n'],
    ['at the end', -1, '\n'],
    ['at the end, without a line feed', -1, ''],
  ])('has 8 MiB for every verifier, %s', async (_name, index, ending) => {
    for (const [bytes, ok] of [
      [LINE_BYTES, true],
      [LINE_BYTES + 1, false],
    ] as const) {
      const one = { file: padded(index, bytes, ending) }
      const verdicts = [await byCommandLine(one), await byLines(one), await byClient(one), ...byPython([one])]
      expect(verdicts.map((verdict) => verdict.ok)).toEqual(verdicts.map(() => ok))
    }
  })
})
