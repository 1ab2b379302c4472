// @run on the built program
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Case, byClient, byCommandLine, byLines, byPython, python } from '../support/proof/verifiers.js'

function vectors<T>(name: string): T {
  const read: T = JSON.parse(readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8'))
  return read
}
const fileOf = (lines: readonly string[]) => Buffer.from(lines.map((line) => `${line}\n`).join(''))

interface StrictVector {
  name: string
  public_key: string
  strand?: string
  text?: string
  base64?: string
  unexplained?: boolean
  expected: { ok: boolean }
}
const strict = vectors<StrictVector[]>('strict.json')
const strictCase = ({ public_key: publicKey, strand, text, base64 }: StrictVector): Case => ({
  file: base64 === undefined ? Buffer.from(text ?? '') : Buffer.from(base64, 'base64'),
  publicKey,
  strand,
})

describe('an export that libraries and parsers may read differently', () => {
  it.each(strict)('has the same result with all verifiers: $name', async (vector) => {
    const one = strictCase(vector)
    for (const verdict of [await byCommandLine(one), await byLines(one), await byClient(one)]) {
      expect(verdict.ok, verdict.reason).toBe(vector.expected.ok)
      if (vector.unexplained !== undefined) expect(verdict.unexplained).toBe(vector.unexplained ? 1 : 0)
    }
  })

  it.skipIf(python === undefined)('has the same result in Python', () => {
    const verdicts = byPython(strict.map(strictCase))
    const wrong = strict.filter(
      ({ expected, unexplained }, at) =>
        verdicts[at]?.ok !== expected.ok ||
        (unexplained !== undefined && verdicts[at].unexplained !== (unexplained ? 1 : 0)),
    )
    expect(wrong.map(({ name }) => name)).toEqual([])
  })
})

interface LogVector {
  name: string
  strand: string
  log: string[]
  note: string
  public_key: string
  log_key: string
  expected: { ok: true; settled: number } | { ok: false; reason: string }
}
const logs = vectors<{ strands: Record<string, string[]>; cases: LogVector[] }>('logs.json')
const logCase = (vector: LogVector): Case => ({
  file: fileOf(logs.strands[vector.strand] ?? []),
  publicKey: vector.public_key,
  note: vector.note,
  log: fileOf(vector.log),
  logKey: vector.log_key,
})

describe('the comparison of a strand with an export of the server log', () => {
  it.each(logs.cases)('has the result of the vectors: $name', async (vector) => {
    const { expected } = vector
    for (const fast of [false, true]) {
      const verdict = await byCommandLine(logCase(vector), fast)
      expect(verdict).toMatchObject(expected.ok ? { ok: true } : expected)
    }
  })

  it.skipIf(python === undefined)('has the same result in Python', () => {
    const verdicts = byPython(logs.cases.map(logCase))
    const wrong = logs.cases.flatMap(({ name, expected }, at) => {
      const { ok, reason = '' } = verdicts[at] ?? { ok: !expected.ok }
      const same =
        ok === expected.ok && (expected.ok || reason.includes(expected.reason.split(': ').at(-1) ?? ''))
      return same ? [] : [[name, reason]]
    })
    expect(wrong).toEqual([])
  })
})
