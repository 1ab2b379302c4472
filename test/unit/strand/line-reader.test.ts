import { readFileSync } from 'node:fs'
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { genesisBody } from '../../../src/strand/genesis.js'
import { headerText } from '../../../src/strand/header.js'
import { LineReader } from '../../../src/proof/node/line-reader.js'
import { type ReadLine, readLineText } from '../../../src/proof/record.js'
import { type RecordLine, recordLine } from '../../../src/strand/strand-export.js'

const [whole]: { lines: string[] }[] = JSON.parse(
  readFileSync(new URL('../../vectors/exports.json', import.meta.url), 'utf8'),
)
const vectors = whole?.lines ?? []

const hex = (digits: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: digits, maxLength: digits })
const hash = fc.oneof(hex(64), fc.constantFrom('0'.repeat(64), 'a'.repeat(64)))
const count = fc.oneof(
  fc.nat(),
  fc.maxSafeNat(),
  fc.constantFrom(0, 999_999_999_999_999, 1_000_000_000_000_000, 2 ** 53),
)
const header = fc.record({
  strand: hash,
  key: hash,
  seq: count,
  prev: hash,
  hlc: fc.tuple(hex(12), hex(4)).map((parts) => parts.join('-')),
  type: fc.string({ unit: fc.constantFrom(...'abz019_./-'), minLength: 1, maxLength: 64 }),
  body: hash,
})
const seal = fc.oneof(
  hex(128).map((sig) => ({ sig })),
  count.map((sealedBy) => ({ sealedBy })),
)
const jsonBody = fc.jsonValue().map((value) => JSON.stringify(value))
const content = fc.oneof(
  fc.record({ salt: hex(32), body: jsonBody }),
  fc.record({ salt: hex(32), body: fc.string({ unit: 'grapheme' }) }),
  fc.constant({}),
  fc.constant({ withheld: true as const }),
)
const record: fc.Arbitrary<RecordLine> = fc
  .tuple(header, seal, content)
  .map(([fields, seal, content]) => ({ h: headerText(fields), ...seal, ...content }))

/** Copies a line, because the reader reuses its buffers. */
function copyOf(line: ReadLine): unknown {
  if (line === undefined || !('record' in line)) return line
  const { leaf, content, ...rest } = line.record
  const committed = content && Buffer.from(content.committed).toString('hex')
  return { ...rest, leaf: Buffer.from(leaf).toString('hex'), committed }
}

describe('reading lines from their bytes', () => {
  const reader = new LineReader()
  const read = (bytes: Buffer) => copyOf(reader.read(bytes, 0, bytes.length))

  it('agrees with parsing JSON for each line of an export', () => {
    for (const line of vectors.slice(1))
      expect(read(Buffer.from(line))).toStrictEqual(copyOf(readLineText(line)))
  })

  it('does not parse JSON for records as the server writes them', () => {
    const genesis = genesisBody({ agent: 'é', createdAtMs: 1, publicKey: 'a'.repeat(64), zone: 'free' })
    for (const line of [...vectors.slice(1, -1), recordLine({ h: '', salt: '', body: genesis })]) {
      const written = vectors.includes(line)
      const found = reader.readWritten(Buffer.from(line), 0, Buffer.byteLength(line))
      expect(found !== undefined).toBe(written)
    }
  })

  it('agrees with parsing JSON for any record, also between other bytes', () => {
    fc.assert(
      fc.property(record, fc.uint8Array({ maxLength: 9 }), (one, around) => {
        const line = Buffer.from(recordLine(one))
        const bytes = Buffer.concat([around, line, around])
        const found = copyOf(reader.read(bytes, around.length, around.length + line.length))
        expect(found).toStrictEqual(copyOf(readLineText(line.toString())))
      }),
      { numRuns: 500 },
    )
  })

  it('agrees with parsing JSON for a damaged line', () => {
    const damage = fc.record({
      at: fc.noBias(fc.nat({ max: 999 })),
      removed: fc.nat({ max: 2 }),
      added: fc.oneof(
        fc.string({ maxLength: 2 }),
        fc.constantFrom(
          '"',
          '\\',
          '\\n',
          '\\"',
          '\\u0041',
          '\\ud800',
          '\u0001',
          ' ',
          '0',
          '}',
          'é',
          '{"a":1}',
        ),
      ),
    })
    fc.assert(
      fc.property(record, damage, (one, { at, removed, added }) => {
        const line = recordLine(one)
        const from = Math.floor((at / 1_000) * line.length)
        // A lone surrogate becomes U+FFFD.
        const bytes = Buffer.from(line.slice(0, from) + added + line.slice(from + removed))
        expect(read(bytes)).toStrictEqual(copyOf(readLineText(bytes.toString())))
      }),
      { numRuns: 5_000 },
    )
  })
})
