import { readFileSync } from 'node:fs'
import { fc } from '../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { seed } from '../support/run-seed.js'
import { type Case, byClient, byCommandLine, byLines, byPython, python } from '../support/proof/verifiers.js'

/* All verifiers must have the same result for each of many slightly damaged files. */

const CASES = 150

interface ExportVector {
  public_key: string
  lines: string[]
}
const exports: ExportVector[] = JSON.parse(
  readFileSync(new URL('../vectors/exports.json', import.meta.url), 'utf8'),
)
const [whole = { public_key: '', lines: [] }] = exports
const text = whole.lines.map((line) => `${line}\n`).join('')

/** Texts that break a line, or that parsers may read differently. */
const pieces = [
  '"',
  '\\',
  '\n',
  '\r',
  '\r\n',
  ' ',
  '0',
  '.0',
  'e0',
  '-',
  '{',
  '}',
  '[]',
  ',',
  ':',
  '\ufeff',
  '\0',
  '\u2028',
  '"x":1,',
  '"x":[],',
  '"__proto__":1,',
  '\\u0000',
  '\\ud800',
  '\\u0061',
  '😀',
  'ÿ',
  'NaN',
  '1e400',
  'true',
  '"erased":true,',
  '"withheld":true,',
  '"sig":"',
  '"sealed_by":7,',
  '"record_count":11,',
  '"h":"x",',
]

/** Valid cases, because verifiers that refuse everything would agree too. */
const validCases: Case[] = [text, `\ufeff${text}\n \t\r\n\n`].flatMap((valid) =>
  [whole.public_key, undefined].map((publicKey) => ({ file: Buffer.from(valid), publicKey })),
)

const odd = fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: 'binary', maxLength: 3 }))
const edit = fc.record({ at: fc.noBias(fc.nat(999_999)), removed: fc.nat({ max: 3 }), added: odd })
const bytes = fc.record({ at: fc.noBias(fc.nat(999_999)), byte: fc.integer({ min: 0, max: 255 }) })
const lineMove = fc.record({ from: fc.nat(99), to: fc.nat(99), copy: fc.boolean() })

const cases: fc.Arbitrary<Case> = fc
  .tuple(
    fc.array(edit, { maxLength: 2 }),
    fc.array(bytes, { maxLength: 1 }),
    fc.array(lineMove, { maxLength: 1 }),
    fc.boolean(),
  )
  .map(([edits, flips, moves, known]) => {
    const lines = text.split(/(?<=\n)/)
    for (const { from, to, copy } of moves) {
      const at = from % lines.length
      const [line = ''] = copy ? [lines[at]] : lines.splice(at, 1)
      lines.splice(to % (lines.length + 1), 0, line)
    }
    let changed = lines.join('')
    for (const { at, removed, added } of edits) {
      const position = at % changed.length
      changed = changed.slice(0, position) + added + changed.slice(position + removed)
    }
    const file = Buffer.from(changed)
    for (const { at, byte } of flips) file[at % file.length] = byte
    return { file, publicKey: known ? whole.public_key : undefined }
  })

describe(`slightly damaged files (seed ${seed})`, () => {
  const drawn = [...validCases, ...fc.sample(cases, { seed, numRuns: CASES })]

  it('have the same result with all verifiers', async () => {
    const verdicts: { ok: boolean; reason?: string }[][] = []
    for (const one of drawn)
      verdicts.push([await byCommandLine(one), await byLines(one), await byClient(one)])
    const inPython = byPython(drawn)
    const different = drawn.flatMap((one, at) => {
      const all = [...(verdicts[at] ?? []), ...(python === undefined ? [] : [inPython[at] ?? { ok: false }])]
      const isEqual = all.every(({ ok }) => ok === all[0]?.ok)
      return isEqual ? [] : [{ file: Buffer.from(one.file).toString('base64'), all }]
    })
    expect(different).toEqual([])
    expect(verdicts.slice(0, validCases.length).map(([first]) => first?.ok)).toEqual(
      validCases.map(() => true),
    )
  })
})
