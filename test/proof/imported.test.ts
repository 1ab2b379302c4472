import { expect, it } from 'vitest'
import { keyPair, SignedStrand, textOf } from '../client/signed-strand.js'
import { type Case, byClient, byCommandLine, byLines, byPython, python } from '../support/proof/verifiers.js'

/* All verifiers report the imported records of a strand (docs/FORMAT.md, Imported records). */

const publicKey = keyPair(1).publicHex

/** A strand of which the first records were imported, several times if `ends` has several seqs. */
function strand(agent: string, ends: readonly number[], records = 12): SignedStrand {
  const one = new SignedStrand(agent)
  while (one.lines.length < records) {
    const { length: seq } = one.lines
    const body = { records: seq, head: one.head, principal: 'root' }
    one.append(ends.includes(seq) ? { type: 'sys/imported', body } : {})
  }
  return one
}

/** An export that is whole, so that no erasure of its records can be missing. */
function wholeText(one: SignedStrand): string {
  const lines = one.exportLines()
  const trailer = { ...lines.at(-1), record_count: one.lines.length - 1 }
  return textOf([...lines.slice(0, -1), trailer])
}

const caseOf = (text: string): Case => ({ file: Buffer.from(text), publicKey })

const cases: [name: string, one: Case, verdict: { ok: boolean; imported?: number; unexplained?: number }][] =
  [
    ['nothing imported', caseOf(strand('own', []).exportText()), { ok: true, imported: 0 }],
    ['records imported once', caseOf(strand('once', [5]).exportText()), { ok: true, imported: 5 }],
    ['records imported twice', caseOf(strand('twice', [3, 9]).exportText()), { ok: true, imported: 9 }],
    ['a partial export', caseOf(strand('partial', [7]).exportText(4)), { ok: true, imported: 7 }],
    ['no record of the import', caseOf(strand('later', [7]).exportText(8)), { ok: true, imported: 0 }],
    ['the audit strand', caseOf(strand('server::audit', [5]).exportText()), { ok: true, imported: 0 }],
    // Only an erased record before the end of an import needs no record of its erasure.
    [
      'an imported record that was erased before',
      caseOf(wholeText(strand('erased', [], 3).append({ erased: true }).append(endOf(4)))),
      { ok: true, imported: 4, unexplained: 1 },
    ],
    [
      'a record that was erased after the import without a record of it',
      caseOf(wholeText(strand('stripped', [2], 3).append({ erased: true }).append())),
      { ok: false },
    ],
  ]

function endOf(records: number): { type: string; body: unknown } {
  return { type: 'sys/imported', body: { records, head: '0'.repeat(64), principal: 'root' } }
}

it.each(cases)('is the same for the verifiers of this program: %s', async (_name, one, verdict) => {
  for (const found of [await byCommandLine(one), await byLines(one), await byClient(one)]) {
    expect(found, found.reason).toMatchObject(verdict)
  }
  expect(await byCommandLine(one, true)).toMatchObject(verdict)
})

it.skipIf(python === undefined)('is the same in Python', () => {
  const verdicts = byPython(cases.map(([, one]) => one))
  expect(verdicts).toMatchObject(cases.map(([, , verdict]) => verdict))
})
