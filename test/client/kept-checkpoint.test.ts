import { describe, expect, it } from 'vitest'
import { ServiceClient, verifyAsOf, verifyExport } from '../../src/client/index.js'
import { checkpointVectors, vectorExport } from '../support/proof/checkpoint-vectors.js'

/** An export of the vectors as text. */
const textOf = (name: string) => `${vectorExport(name).join('\n')}\n`

/** The chain head after `size` records of the whole export: the next record contains it. */
function headOf(size: number): string {
  const lines = vectorExport('whole')
  const next = JSON.parse(lines[size + 1] ?? '')
  return next.chain_head ?? /\nprev ([0-9a-f]{64})\n/.exec(next.h)?.[1]
}

function vectorNamed(name: string) {
  const vector = checkpointVectors.find((known) => known.name === name)
  if (vector === undefined) throw new Error(`Vector "${name}" not found`)
  return vector
}

describe('an earlier checkpoint, in the client', () => {
  it.each(checkpointVectors)('is judged as the frozen vector says: $name', async (vector) => {
    const { public_key: publicKey, note: kept, expected } = vector
    const result = await verifyExport(textOf(vector.export), { publicKey, kept })
    if (expected.ok) {
      const { size } = expected
      expect(result).toMatchObject({ ok: true, kept: { size, chainHead: headOf(size) } })
    } else expect(result).toMatchObject(expected)
  })

  it('is refused if it is malformed or of another strand', async () => {
    const { public_key: publicKey, note } = vectorNamed('of the present')
    const verify = (kept: string) => verifyExport(textOf('whole'), { publicKey, kept })
    expect(await verify('x')).toMatchObject({
      ok: false,
      line: 16,
      reason: 'The checkpoint is not a valid signed note',
    })
    const other = note.replaceAll(/[0-9a-f]{64}/g, '0'.repeat(64))
    expect(await verify(other)).toMatchObject({ ok: false, reason: 'The checkpoint is of another strand' })
  })

  it('is compared by the method of the client too, if it is given', async () => {
    const client = new ServiceClient({ url: 'http://127.0.0.1:1', apiKey: 'x' })
    const { public_key: publicKey, note: kept } = vectorNamed('between two rotations, by the later key')
    const found = await client.verify(textOf('whole'), { publicKey, kept })
    expect(found).toMatchObject({ ok: true, kept: { size: 10 } })
    expect(await client.verify(textOf('whole'), { publicKey })).not.toHaveProperty('kept')
  })
})

describe('an answer as of a moment', () => {
  const past = vectorNamed('of the past, by the key of the rotation after the next')
  const { public_key: firstKey } = past
  const { public_key: lastKey } = vectorNamed('of the past, by a later key, checked with that key')
  const answer = { chain_head: headOf(7), record_count: 6, checkpoint: past.note }
  const strandExport = textOf('whole')

  it('is verified by the key that signed, without an export', async () => {
    const [, strand] = /^strandfast\/(.*)\n/.exec(past.note) ?? []
    expect(await verifyAsOf(answer, { publicKey: lastKey })).toEqual({
      ok: true,
      strand,
      size: 7,
      rootHex: Buffer.from(past.note.split('\n')[2] ?? '', 'base64').toString('hex'),
    })
  })

  it('is verified with an export by any key that the strand had', async () => {
    for (const publicKey of [firstKey, lastKey]) {
      expect(await verifyAsOf(answer, { publicKey, strandExport })).toMatchObject({ ok: true, size: 7 })
    }
  })

  const rotatedAway = vectorNamed('by the key that the last record counted has rotated away')
  it.each([
    [
      'by another key, without an export',
      answer,
      firstKey,
      undefined,
      'The checkpoint of the answer is not signed by the key',
    ],
    [
      'without a checkpoint',
      { ...answer, checkpoint: null },
      lastKey,
      undefined,
      'The answer has no checkpoint',
    ],
    [
      'with a malformed checkpoint',
      { ...answer, checkpoint: 'x' },
      lastKey,
      undefined,
      'The checkpoint of the answer is not a valid signed note',
    ],
    [
      'with another count',
      { ...answer, record_count: 7 },
      lastKey,
      undefined,
      'The checkpoint has 7 records, the answer 8',
    ],
    [
      'with another head',
      { ...answer, chain_head: headOf(6) },
      lastKey,
      strandExport,
      'The head of the answer is not the head of the strand at that moment',
    ],
    [
      'by a key that is not of the strand, with an export',
      answer,
      '7'.repeat(64),
      strandExport,
      'The export: line 16: No record is signed by the key given',
    ],
    [
      'with an export that ends before the rotation',
      answer,
      firstKey,
      textOf('before both rotations'),
      'The export: line 10: The checkpoint is not signed by the key in force after 7 records, nor by one of a later ' +
        'rotation in the export, which has 8 of 14 records: one that reaches the rotation is needed',
    ],
    [
      'by a key that was rotated away by then, with an export',
      { chain_head: headOf(9), record_count: 8, checkpoint: rotatedAway.note },
      firstKey,
      strandExport,
      'The export: line 16: The checkpoint is signed by a key that was rotated away before the strand had 9 records',
    ],
  ])('is refused %s', async (...[, given, publicKey, source, reason]) => {
    expect(await verifyAsOf(given, { publicKey, strandExport: source })).toEqual({ ok: false, reason })
  })
})
