import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseLine, parseManifest } from '../../../src/proof/export-lines.js'
import { recordLine, trailerLine, manifestLine } from '../../../src/strand/strand-export.js'
import { verifyExport } from '../../../src/proof/node/verify-export.js'
import { longExport } from './long-export.js'

interface ExportVector {
  name: string
  public_key: string
  lines: string[]
  expected:
    | { ok: true; records: number; first_seq: number; last_seq: number; partial: boolean }
    | { ok: false; line: number; seq?: number; reason: string }
}
const vectors: ExportVector[] = JSON.parse(
  readFileSync(new URL('../../vectors/exports.json', import.meta.url), 'utf8'),
)
const whole = vectors[0]?.lines ?? []

describe('verifying an export', () => {
  it.each(vectors)(
    'has the result of the vectors: $name',
    async ({ public_key: publicKey, lines, expected }) => {
      const result = await verifyExport(lines, { publicKey })
      if (!expected.ok) expect(result).toStrictEqual(expected)
      else {
        const { records, first_seq: firstSeq, last_seq: lastSeq, partial } = expected
        expect(result).toMatchObject({ ok: true, records, firstSeq, lastSeq, partial })
      }
    },
  )

  it('returns the counts of its checks', async () => {
    expect(await verifyExport(whole)).toMatchObject({
      agent: 'weather',
      signaturesChecked: 10,
      sealed: 2,
      erased: 1,
      keys: 2,
      checkpoint: true,
    })
  })

  it('finds every change of one character', async () => {
    // Replaces one character in five by its neighbour in ASCII.
    const text = whole.join('\n')
    const same: string[] = []
    for (let at = 0; at < text.length; at += 5) {
      const changed = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1)
      const result = await verifyExport(changed.split('\n'))
      if (result.ok) same.push(text.slice(Math.max(0, at - 16), at + 1))
    }
    // Only the record count may change, because a strand can have more records than its export.
    expect(same.every((before) => /"record_count":\d*$/.test(before))).toBe(true)
    expect(same.length).toBeLessThanOrEqual(2)
  })

  it('reports progress on a long strand', async () => {
    const reported: number[] = []
    const result = await verifyExport(longExport(2_500), { onProgress: (records) => reported.push(records) })
    expect(result).toMatchObject({ ok: true, records: 2_500, signaturesChecked: 5, sealed: 2_495 })
    expect(reported).toStrictEqual([1_000, 2_000])
  })

  it('finds a wrong record in a long strand', async () => {
    const lines = longExport(2_500)
    lines[1_801] = lines[1_801]?.replace('"body":"1800"', '"body":"1801"') ?? ''
    expect(await verifyExport(lines)).toStrictEqual({
      ok: false,
      seq: 1_800,
      line: 1_802,
      reason: 'The body is not the one committed to',
    })
  })
})

describe('the lines of an export', () => {
  it('are parsed and rendered to the same text', () => {
    for (const [at, line] of whole.entries()) {
      const manifest = at === 0 ? parseManifest(line) : undefined
      const parsed = at === 0 ? undefined : parseLine(line)
      if (manifest !== undefined) expect(manifestLine(manifest)).toBe(line)
      else if (parsed !== undefined && 'record' in parsed) expect(recordLine(parsed.record)).toBe(line)
      else if (parsed !== undefined) expect(trailerLine(parsed.trailer)).toBe(line)
      else expect.fail(`Line ${at + 1} was not read`)
    }
  })

  it('are rendered and parsed for withheld records', () => {
    const record = { h: 'x', sig: 'a'.repeat(128), withheld: true } as const
    const line = recordLine({ ...record, salt: 'b'.repeat(32), body: '1' })
    expect(line).toBe(`{"h":"x","sig":"${record.sig}","withheld":true}`)
    expect(parseLine(line)).toStrictEqual({ record })
  })

  it('are refused if they are signed and sealed, partly erased, or neither', () => {
    const line = recordLine({ h: 'x', sig: 'a'.repeat(128), salt: 'b'.repeat(32), body: '1' })
    expect(parseLine(line)).toHaveProperty('record')
    expect(parseLine(line.replace('"salt"', '"sealed_by":1,"salt"'))).toBeUndefined()
    expect(parseLine(line.replace('"salt"', '"erased":true,"salt"'))).toBeUndefined()
    expect(parseLine(line.replace('"body":"1"', '"erased":true'))).toBeUndefined()
    expect(parseLine(line.replace(',"body":"1"', ''))).toBeUndefined()
    expect(parseLine(line.replace(/"salt".*/, '"erased":true,"withheld":true}'))).toBeUndefined()
    expect(parseLine(line.replace(/"sig":"a+",/, ''))).toBeUndefined()
    expect(parseLine('[]')).toBeUndefined()
    expect(parseLine('{}')).toBeUndefined()
  })
})
