import { readFileSync } from 'node:fs'
import { fc } from '../support/fast-check.js'
import { describe, expect, it, vi } from 'vitest'
import { ServiceClient, type VerifyResult, verifyExport } from '../../src/client/index.js'
import { verifyExport as verifyOnServer } from '../../src/proof/node/verify-export.js'
import { type Line, SignedStrand, keyPair, textOf } from './signed-strand.js'

/** A strand with every kind of record: signed, sealed, erased, a rotation, bodies that need escapes. */
function fullStrand(): SignedStrand {
  return new SignedStrand()
    .append({ body: { text: 'Zoë said "\\\\"', emoji: '😀', 'a:"b"': [1, 2.5, null] } })
    .append({ sealedBy: 4 })
    .append({ sealedBy: 4, erased: true })
    .append()
    .rotate(2)
    .append({ type: 'note' })
    .append({ erased: true })
}

const strand = fullStrand()

/** The export with one line changed: 0 is the manifest, 1 the genesis record, -1 the trailer. */
function changed(line: number, change: (line: Line) => Line, fromSeq = 0): string {
  const lines = strand.exportLines(fromSeq)
  const changedIndex = line < 0 ? lines.length + line : line
  return textOf(lines.map((members, index) => (index === changedIndex ? change(members) : members)))
}

/** Runs both checkers, which must agree. @returns their verdict */
async function verdict(text: string, publicKey?: string): Promise<VerifyResult> {
  const result = await verifyExport(text, { publicKey })
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  expect(await verifyOnServer(lines, publicKey === undefined ? {} : { publicKey })).toEqual(result)
  return result
}

describe('a check of a whole export', () => {
  it('returns the facts about the export', async () => {
    expect(await verdict(strand.exportText(), keyPair(1).publicHex)).toEqual({
      ok: true,
      agent: 'ledger',
      strand: expect.stringMatching(/^[0-9a-f]{64}$/),
      records: 8,
      firstSeq: 0,
      lastSeq: 7,
      chainHead: strand.head,
      publicKey: keyPair(2).publicHex,
      signaturesChecked: 6,
      sealed: 2,
      erased: 2,
      unexplained: { count: 2, firstSeq: 3 },
      withheld: 0,
      imported: 0,
      keys: 2,
      checkpoint: true,
      partial: false,
    })
  })

  it('accepts a withheld body, and counts it', async () => {
    const strand = new SignedStrand()
      .append({ withheld: true })
      .append({ sealedBy: 3, withheld: true })
      .append()
    expect(await verdict(strand.exportText(), keyPair(1).publicHex)).toMatchObject({
      ok: true,
      records: 4,
      erased: 0,
      withheld: 2,
    })
  })

  it.each([
    ['both erased and withheld', { erased: true, withheld: true }],
    ['withheld with a salt', { withheld: true, salt: '0'.repeat(32) }],
    ['withheld with a body', { withheld: true, salt: '0'.repeat(32), body: '{}' }],
    ['withheld by another value than true', { withheld: 'true' }],
    ['withheld: false', { withheld: false }],
  ])('refuses a line that is %s', async (_name, content) => {
    const text = changed(2, ({ h, sig }) => ({ h, sig, ...content }))
    expect(await verdict(text)).toEqual({
      ok: false,
      seq: 1,
      line: 3,
      reason: 'The line is neither a record nor the trailer',
    })
  })

  it('checks the header and the signature of a withheld record too', async () => {
    const strand = new SignedStrand().append({ withheld: true }).append({ withheld: true })
    const lines = strand.exportLines(0)
    const broken = (change: (line: Line) => Line) =>
      verdict(textOf(lines.map((line, index) => (index === 2 ? change(line) : line))))
    const ofThree = (line: Line) => ({ ...line, sig: lines[3]?.['sig'] })
    expect(await broken(ofThree)).toMatchObject({
      ok: false,
      seq: 1,
      reason: 'The signature does not verify',
    })
    const otherBody = ({ h, ...line }: Line) => ({
      ...line,
      h: String(h).replace(/body [0-9a-f]{64}/, `body ${'0'.repeat(64)}`),
    })
    expect(await broken(otherBody)).toMatchObject({
      ok: false,
      seq: 1,
      reason: 'The signature does not verify',
    })
  })

  it('trusts a key of a rotation, and no other', async () => {
    expect(await verdict(strand.exportText(), keyPair(2).publicHex)).toMatchObject({ ok: true })
    const other = await verdict(strand.exportText(), keyPair(3).publicHex)
    expect(other).toMatchObject({ ok: false, reason: 'No record is signed by the key given' })
  })

  it('accepts an export that begins after the genesis record, and reports it as partial', async () => {
    expect(await verdict(strand.exportText(5))).toMatchObject({
      ok: true,
      partial: true,
      firstSeq: 5,
      records: 3,
    })
  })

  it('checks the root for each size of the tree', async () => {
    const growing = new SignedStrand()
    for (let size = 1; size <= 18; size++) {
      expect(await verdict(growing.exportText())).toMatchObject({ ok: true, records: size, checkpoint: true })
      growing.append()
    }
  })

  it('reads a text, a stream, a response and pieces of any size', async () => {
    const text = strand.exportText()
    const bytes = new TextEncoder().encode(text)
    const whole = await verifyExport(text)
    const stream = () =>
      new ReadableStream<Uint8Array>({
        start(controller) {
          for (let start = 0; start < bytes.length; start += 7)
            controller.enqueue(bytes.slice(start, start + 7))
          controller.close()
        },
      })
    async function* pieces() {
      for (let start = 0; start < text.length; start += 11) yield text.slice(start, start + 11)
    }
    const client = new ServiceClient({ url: 'http://localhost' })
    expect(whole.ok).toBe(true)
    expect(await client.verify(stream())).toEqual(whole)
    expect(await client.verify(new Response(stream()))).toEqual(whole)
    expect(await client.verify(pieces())).toEqual(whole)
  })

  it('cancels the source at the first fault', async () => {
    const cancelled = vi.fn()
    const lines = changed(2, (line) => ({ ...line, body: '{}' }))
    const source = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(lines)),
      cancel: cancelled,
    })
    expect(await verifyExport(source)).toMatchObject({ ok: false, seq: 1, line: 3 })
    expect(cancelled).toHaveBeenCalledTimes(1)
  })

  it('reports the first of several faults', async () => {
    const long = new SignedStrand()
    for (let count = 0; count < 150; count++) long.append()
    const lines = long.exportLines()
    for (const index of [100, 90, 80]) lines[index] = { ...lines[index], body: '{}' }
    lines[120] = { nonsense: true }
    const expected = { ok: false, seq: 79, line: 81, reason: 'The body is not the one committed to' }
    expect(await verdict(textOf(lines))).toEqual(expected)
  })

  it('reports its progress', async () => {
    const long = new SignedStrand()
    for (let count = 0; count < 2_100; count++) long.append({ sealedBy: 2_101 })
    long.append()
    const onProgress = vi.fn()
    expect(await verifyExport(long.exportText(), { onProgress })).toMatchObject({ ok: true, records: 2_102 })
    expect(onProgress.mock.calls).toEqual([[1_000], [2_000]])
  })
})

describe('a check of a damaged export', () => {
  const flip = (hex: unknown) => String(hex).replace(/^./, (digit) => (digit === '0' ? '1' : '0'))
  const inHeader = (field: string, value: string) => (line: Line) => ({
    ...line,
    h: String(line['h']).replace(new RegExp(`^${field} .*$`, 'm'), `${field} ${value}`),
  })
  const ones = '1'.repeat(64)

  it.each<[string, number, (line: Line) => Line, string]>([
    ['a changed body', 2, (line) => ({ ...line, body: '{"seq":9}' }), 'The body is not the one committed to'],
    [
      'a changed salt',
      2,
      (line) => ({ ...line, salt: flip(line['salt']) }),
      'The body is not the one committed to',
    ],
    [
      'a changed signature',
      2,
      (line) => ({ ...line, sig: flip(line['sig']) }),
      'The signature does not verify',
    ],
    ['a changed type', 2, inHeader('type', 'other'), 'The signature does not verify'],
    ['a changed link', 3, inHeader('prev', ones), 'The record does not name the hash of the one before'],
    ['a record of another strand', 3, inHeader('strand', ones), 'The record belongs to another strand'],
    ['a key that is not in force', 3, inHeader('key', ones), 'The record names a key that is not in force'],
    ['a clock that goes back', 3, inHeader('hlc', '000000000000-0000'), 'The clock does not go forward'],
    ['a number that is left out', 3, inHeader('seq', '7'), 'Expected seq 2, found 7'],
    ['a header in another form', 3, inHeader('seq', '02'), 'The header is not of the form strand-record/v1'],
    [
      'a seal of another group',
      4,
      (line) => ({ ...line, sealed_by: 6 }),
      'The record is sealed by 6 within the group of 4',
    ],
    [
      'an erased record that names a key',
      6,
      ({ h, sig }) => ({ h, sig, erased: true }),
      'A record that names a key is erased',
    ],
    [
      'a withheld rotation',
      6,
      ({ h, sig }) => ({ h, sig, withheld: true }),
      'A record that names a key is withheld',
    ],
    [
      'a withheld genesis',
      1,
      ({ h, sig }) => ({ h, sig, withheld: true }),
      'A record that names a key is withheld',
    ],
    [
      'a changed genesis',
      1,
      inHeader('type', 'sys/other'),
      'The strand is not the hash of its genesis record',
    ],
    [
      'another head in the trailer',
      -1,
      (line) => ({ ...line, chain_head: ones }),
      'The chain head of the trailer is not the hash of the last record',
    ],
    [
      'another count in the trailer',
      -1,
      (line) => ({ ...line, records: 9 }),
      'The trailer counts 9 records, not 8',
    ],
    [
      'a changed checkpoint',
      -1,
      (line) => ({ ...line, checkpoint: String(line['checkpoint']).replace('\n8\n', '\n9\n') }),
      'The checkpoint does not verify',
    ],
    [
      'another agent in the manifest',
      0,
      (line) => ({ ...line, agent: 'other' }),
      'The genesis record names another agent',
    ],
    [
      'a promise of more records',
      0,
      (line) => ({ ...line, to_seq: 8, record_count: 8 }),
      'The manifest promises records up to seq 8, the last one is 7',
    ],
    [
      'another format',
      0,
      (line) => ({ ...line, format: 'strand-export/v2' }),
      'The first line is no strand-export/v1 manifest',
    ],
    [
      'a line that is both signed and sealed',
      2,
      (line) => ({ ...line, sealed_by: 4 }),
      'The line is neither a record nor the trailer',
    ],
  ])('finds %s', async (_name, ...[place, change, reason]) => {
    const text = changed(place, change)
    expect(text).not.toBe(strand.exportText())
    const line = place < 0 ? strand.lines.length + 2 : place + 1
    const result = await verdict(text)
    expect(result).toMatchObject({ ok: false, reason })
    // A wrong manifest is detected at a record, or after the last one.
    if (place !== 0 || reason.startsWith('The first line')) expect(result).toMatchObject({ line })
  })

  it('finds a missing trailer, lines after the trailer, and an empty export', async () => {
    const text = strand.exportText()
    const lines = text.trimEnd().split('\n')
    expect(await verdict(`${lines.slice(0, -1).join('\n')}\n`)).toMatchObject({
      reason: 'The export is cut off: it has no trailer',
      line: 9,
    })
    expect(await verdict(`${text}{}\n`)).toMatchObject({ reason: 'A line follows the trailer', line: 11 })
    expect(await verdict('')).toMatchObject({ ok: false, reason: 'The export is empty', line: 0 })
  })

  it('finds a rotation that the new key did not prove, or that the old key did not sign', async () => {
    const otherKey = keyPair(9)
    const unproven = new SignedStrand().append({
      type: 'sys/key_rotate',
      body: { public_key: otherKey.publicHex, proof: '00'.repeat(64) },
    })
    expect(await verdict(unproven.exportText())).toMatchObject({
      seq: 1,
      reason: 'A key rotation does not prove its new key',
    })
    const unsigned = new SignedStrand().append({ type: 'sys/key_rotate', body: {}, sealedBy: 2 }).append()
    expect(await verdict(unsigned.exportText())).toMatchObject({
      seq: 1,
      reason: 'A key rotation is not signed',
    })
  })

  it('finds a last record without a signature', async () => {
    const open = new SignedStrand().append({ sealedBy: 2 })
    const reason = 'The last record is not signed: record 2, which seals it, is not in the export'
    expect(await verdict(open.exportText())).toMatchObject({ ok: false, reason })
  })

  it('finds a duplicate member, and a body that is not well-formed Unicode', async () => {
    const lines = strand.exportText().split('\n')
    const twice = lines.with(2, String(lines[2]).replace('{', '{"body"         :"{}",')).join('\n')
    expect(await verdict(twice)).toMatchObject({ ok: false, line: 3, seq: 1 })
    const lone = lines.with(2, String(lines[2]).replace('emoji', '\\ud800')).join('\n')
    expect(await verdict(lone)).toMatchObject({ ok: false, line: 3, seq: 1 })
  })

  it('agrees with the check of the server whichever character of an export is changed', async () => {
    const text = strand.exportText()
    const change = fc.tuple(
      fc.nat(text.length - 1),
      fc.constantFrom('', '0', '1', 'f', '"', '\\', '\n', 'x', '{', '}'),
    )
    await fc.assert(
      fc.asyncProperty(change, async ([place, character]) => {
        // Converted to bytes and back, because a file cannot contain half of a surrogate pair.
        const damaged = Buffer.from(text.slice(0, place) + character + text.slice(place + 1)).toString()
        const result = await verdict(damaged)
        // Additional white space at the end of a record is allowed; any other change must be found.
        if (damaged.trimEnd() !== text.trimEnd() && !onlyCountDiffers(damaged)) expect(result.ok).toBe(false)
      }),
      { numRuns: 400 },
    )
  })

  /** The record count in the manifest is not signed, and may be larger than that of the export. */
  function onlyCountDiffers(damaged: string): boolean {
    const withoutCount = (text: string) => text.replace(/"record_count":\d+/, '')
    return withoutCount(damaged) === withoutCount(strand.exportText())
  }
})

interface FrozenExport {
  name: string
  public_key: string
  expected:
    | { ok: true; records: number; first_seq: number; last_seq: number; partial: boolean }
    | { ok: false; line: number; seq?: number; reason: string }
  lines: string[]
}

describe('the frozen exports', () => {
  const frozen: FrozenExport[] = JSON.parse(
    readFileSync(new URL('../vectors/exports.json', import.meta.url), 'utf8'),
  )

  it.each(frozen.map((vector) => [vector.name, vector] as const))(
    'are judged as their vector says: %s',
    async (_name, vector) => {
      const { expected } = vector
      const result = await verdict(vector.lines.map((line) => `${line}\n`).join(''), vector.public_key)
      if (!expected.ok) return expect(result).toEqual(expected)
      const { records, first_seq: firstSeq, last_seq: lastSeq, partial } = expected
      expect(result).toMatchObject({ ok: true, records, firstSeq, lastSeq, partial })
    },
  )
})

describe('a platform without', () => {
  it('WebCrypto gets an error that names what is missing', async () => {
    vi.stubGlobal('crypto', {})
    await expect(verifyExport('')).rejects.toThrow('https or localhost')
    vi.unstubAllGlobals()
  })

  it('Ed25519 gets an error that names what is missing', async () => {
    const subtle = { generateKey: () => Promise.reject(new DOMException('No', 'NotSupportedError')) }
    vi.stubGlobal('crypto', { subtle })
    await expect(verifyExport('')).rejects.toThrow('Ed25519')
    vi.unstubAllGlobals()
  })
})
