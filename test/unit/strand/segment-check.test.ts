import { readFileSync } from 'node:fs'
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { ExportCheck, type ExportFault, type VerifiedExport } from '../../../src/proof/export-check.js'
import { TreeHasher } from '../../../src/strand/merkle.js'
import { parseLine, parseManifest } from '../../../src/proof/export-lines.js'
import { runSync } from '../../../src/proof/job.js'
import { jobs } from '../../../src/proof/node/jobs.js'
import { checkSegment } from '../../../src/proof/node/segment.js'
import type { SegmentOptions } from '../../../src/proof/segment-check.js'
import { recordHash } from '../../../src/strand/hash.js'
import { verifyExport } from '../../../src/proof/node/verify-export.js'
import { longExport, longExportKeys, longExportLines } from './long-export.js'

const vectors: { name: string; public_key: string; lines: string[]; expected: { ok: boolean } }[] =
  JSON.parse(readFileSync(new URL('../../vectors/exports.json', import.meta.url), 'utf8'))
const whole = vectors[0]?.lines ?? []
const wholeKey = vectors[0]?.public_key ?? ''

/** Checks an export in independent segments that begin at the lines `cuts`. */
function inSegments(
  lines: string[],
  cuts: number[],
  options: SegmentOptions,
): { verdict: VerifiedExport | ExportFault; assumed: number } {
  const manifest = parseManifest(lines[0] ?? '')
  if (manifest === undefined) throw new Error('Expected a manifest')
  const begins = [1, ...cuts.filter((cut) => cut > 1 && cut < lines.length).toSorted((a, b) => a - b)]
  const segments = begins.map((begin, at) => {
    const bytes = Buffer.from(
      lines
        .slice(begin, begins[at + 1])
        .map((line) => `${line}\n`)
        .join(''),
    )
    return { manifest, bytes, options, place: undefined }
  })
  const found = segments.map((segment) => checkSegment(segment))
  const check = new ExportCheck(manifest, options)
  let assumed = 0
  for (const [at, segment] of segments.entries()) {
    let result = found[at]
    if (result !== undefined && runSync(check.fits(result), jobs)) assumed += 1
    else result = checkSegment({ ...segment, place: check.place, trailer: check.trailer })
    if (result === undefined) throw new Error('The segment has no known place')
    const fault = runSync(check.join(result), jobs)
    if (fault !== undefined) return { verdict: fault, assumed }
  }
  return { verdict: runSync(check.end(), jobs), assumed }
}

/** Faults that `fast` does not check, and the result with `fast`. */
const passedByFast: Record<string, string> = {
  'a signature changed': 'no fault',
  'a body that is not JSON': 'no fault',
  'a header changed': 'The record does not name the hash of the one before',
}

describe('checking an export in segments', () => {
  it.each(vectors.filter(({ lines }) => parseManifest(lines[0] ?? '') !== undefined))(
    'has the same result with any cuts: $name',
    async ({ public_key: trustedKey, lines }) => {
      for (const fast of [false, true]) {
        const expected = await verifyExport(lines, { publicKey: trustedKey, fast })
        for (let cut = 1; cut <= lines.length; cut += 1) {
          expect(inSegments(lines, [cut], { trustedKey, fast }).verdict).toStrictEqual(expected)
          expect(inSegments(lines, [cut, cut + 1, cut + 3], { trustedKey, fast }).verdict).toStrictEqual(
            expected,
          )
        }
      }
    },
  )

  it('ignores blank lines after the trailer with any cuts, but no other lines', async () => {
    for (const tail of [[''], ['', ' \t\r', ''], ['', 'x'], ['', whole.at(-1) ?? '']]) {
      const lines = [...whole, ...tail]
      const expected = await verifyExport(lines, { publicKey: wholeKey })
      expect(expected.ok).toBe(tail.every((line) => line.trim() === ''))
      for (let cut = whole.length - 2; cut <= lines.length; cut += 1) {
        const cuts = [cut, cut + 1, cut + 2]
        expect(inSegments(lines, cuts, { trustedKey: wholeKey }).verdict).toStrictEqual(expected)
      }
    }
  })

  it('checks each segment of a valid export once, also if it begins within a sealed group', () => {
    const lines = longExport(2_000)
    const cuts = [100, 626, 1_251, 1_252, 1_700]
    const { verdict, assumed } = inSegments(lines, cuts, { trustedKey: longExportKeys.publicKey })
    expect(verdict).toMatchObject({ ok: true, records: 2_000 })
    expect(assumed).toBe(cuts.length + 1)
  })

  it('checks a segment again if its first record does not determine its sealed group', async () => {
    // Record 2 is signed within a group: the records after it must be sealed by 5.
    for (const [wrong, reason] of [
      [5, undefined],
      [6, 'The record is sealed by 6 within the group of 5'],
    ] as const) {
      const seals = [0, 5, 2, wrong, 5, 5, 6, 7]
      const lines = [...longExportLines(8, (seq) => seals[seq] ?? 0)]
      const expected = await verifyExport(lines)
      if (reason === undefined) expect(expected.ok).toBe(true)
      else expect(expected).toMatchObject({ seq: 3, reason })
      expect(inSegments(lines, [3], {}).verdict).toStrictEqual(expected)
      expect(inSegments(lines, [3, 4], {}).verdict).toStrictEqual(expected)
    }
  })

  it('finds the same record as a check line by line, with any fault and any cuts', async () => {
    const lines = longExport(700)
    const trustedKey = longExportKeys.publicKey
    const line = fc.integer({ min: 1, max: lines.length - 1 })
    const tampering = fc.oneof(
      fc.record({ kind: fc.constant('leave out' as const), line }),
      fc.record({ kind: fc.constant('repeat' as const), line }),
      fc.record({ kind: fc.constant('exchange' as const), line, other: line }),
      fc.record({ kind: fc.constant('change' as const), line, at: fc.nat({ max: 900 }) }),
    )
    const run = fc.asyncProperty(
      fc.array(tampering, { maxLength: 2 }),
      fc.array(line, { maxLength: 5 }),
      fc.boolean(),
      async (tamperings, cuts, fast) => {
        const damaged = tamperings.reduce<string[]>(tamper, lines)
        const expected = await verifyExport(damaged, { publicKey: trustedKey, fast })
        expect(inSegments(damaged, cuts, { trustedKey, fast }).verdict).toStrictEqual(expected)
      },
    )
    await fc.assert(run, { numRuns: 60 })
  })

  it('returns hash and root of the watched sizes with any cuts', async () => {
    const lines = longExport(300)
    const hashes = lines.slice(1, -1).map((line) => {
      const parsed = parseLine(line)
      return parsed !== undefined && 'record' in parsed ? recordHash(parsed.record.h) : ''
    })
    const watch = [1, 2, 7, 64, 100, 255, 300]
    const expected = watch.map((size) => {
      const tree = new TreeHasher()
      for (const hash of hashes.slice(0, size)) tree.append(Buffer.from(hash, 'hex'))
      return { size, head: hashes[size - 1], root: Buffer.from(tree.root()).toString('hex') }
    })
    for (const cuts of [[], [2], [64, 65, 66], [100, 101, 250], [13, 37, 200, 301]]) {
      expect(inSegments(lines, cuts, { watch: [...watch, 301] }).verdict).toMatchObject({ watched: expected })
    }
    expect(await verifyExport(lines, { watch })).toMatchObject({ watched: expected })
  })
})

describe('checking fast', () => {
  it.each(vectors)('finds faults without the signatures in between: $name', async (vector) => {
    const { name, public_key: publicKey, lines } = vector
    const full = await verifyExport(lines, { publicKey })
    const fast = await verifyExport(lines, { publicKey, fast: true })
    const otherwise = passedByFast[name]
    if (otherwise !== undefined) {
      const reason = expect.stringMatching(/^(The signature does not verify|The body is not JSON)$/)
      expect(full).toMatchObject({ ok: false, reason })
      expect('reason' in fast ? fast.reason : 'no fault').toBe(otherwise)
    } else if (full.ok) {
      const { signaturesChecked, ...rest } = full
      expect(fast).toMatchObject(rest)
      if (fast.ok) expect(fast.signaturesChecked + (fast.signaturesPassed ?? 0)).toBe(signaturesChecked)
    } else expect(fast).toStrictEqual(full)
  })

  it('checks only the signatures of genesis, of each key rotation and of the last record', async () => {
    const checked: number[] = []
    for (let line = 1; line < whole.length - 1; line += 1) {
      const damaged = whole.with(line, (whole[line] ?? '').replace(/"sig":"../, '"sig":"00'))
      const result = await verifyExport(damaged, { publicKey: wholeKey, fast: true })
      if (!result.ok) {
        expect(result).toMatchObject({
          seq: line - 1,
          line: line + 1,
          reason: 'The signature does not verify',
        })
        checked.push(line - 1)
      }
    }
    expect(checked).toStrictEqual([0, 8, 11])
    expect(await verifyExport(whole, { publicKey: wholeKey, fast: true })).toMatchObject({
      signaturesChecked: 3,
      signaturesPassed: 7,
      sealed: 2,
    })
  })
})

type Tampering =
  | { kind: 'leave out' | 'repeat'; line: number }
  | { kind: 'exchange'; line: number; other: number }
  | { kind: 'change'; line: number; at: number }

function tamper(lines: string[], tampering: Tampering): string[] {
  // An earlier removal may have shortened the export.
  const within = (line: number) => Math.min(line, lines.length - 1)
  const line = within(tampering.line)
  const text = lines[line] ?? ''
  switch (tampering.kind) {
    case 'leave out':
      return lines.toSpliced(line, 1)
    case 'repeat':
      return lines.toSpliced(line, 0, text)
    case 'exchange': {
      const other = within(tampering.other)
      return lines.with(line, lines[other] ?? '').with(other, text)
    }
    case 'change': {
      const at = tampering.at % text.length
      const changed = String.fromCharCode(text.charCodeAt(at) ^ 1)
      return lines.with(line, text.slice(0, at) + changed + text.slice(at + 1))
    }
  }
}
