import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { verifyExport as verifyByClient } from '../../../src/client/index.js'
import { compareWithCheckpoint, type Comparison } from '../../../src/proof/node/compare-checkpoint.js'
import { signCheckpoint } from '../../../src/strand/checkpoint.js'
import { keyPairFromSeed } from '../../../src/strand/keys.js'
import { treeRoot } from '../../../src/strand/merkle.js'
import { verifyExport } from '../../../src/proof/node/verify-export.js'
import { SignedStrand, keyPair } from '../../client/signed-strand.js'
import { checkpointVectors, vectorExport } from '../../support/proof/checkpoint-vectors.js'

/** Verifies an export, then compares it with a checkpoint. */
async function compared(
  lines: readonly string[],
  { note, publicKey, fast = false }: { note: string; publicKey: string; fast?: boolean },
): Promise<Comparison> {
  const verified = await verifyExport(lines, { publicKey, fast })
  if (!verified.ok) return { ok: false, reason: verified.reason }
  const again = async function* () {
    yield* lines
  }
  return compareWithCheckpoint({ verified, lines: again }, note)
}

describe('the comparison of an export with an earlier checkpoint', () => {
  it.each(checkpointVectors)('has the result of the frozen vectors: $name', async (vector) => {
    const { public_key: publicKey, note, expected } = vector
    for (const fast of [false, true]) {
      const found = await compared(vectorExport(vector.export), { note, publicKey, fast })
      expect(found).toEqual(
        expected.ok ? { ok: true, shown: `with the checkpoint of ${expected.size} records` } : expected,
      )
    }
  })

  it('accepts the key in force at the size and later ones, but no earlier one, in the client too', async () => {
    const rotatesOrNot = fc.array(fc.boolean(), { minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(rotatesOrNot, fc.nat(), fc.nat(), async (plan, sizePick, keyPick) => {
        const strand = new SignedStrand()
        let byte = 1
        // The key in force after each number of records.
        const inForce = [1, 1]
        for (const rotates of plan) {
          if (rotates) strand.rotate(++byte)
          else strand.append()
          inForce.push(byte)
        }
        // The size may exceed the strand by up to two records.
        const size = 1 + (sizePick % (strand.hashes.length + 2))
        // The signer may also be a key that the strand never had.
        const signer = 1 + (keyPick % (byte + 1))
        const leaves = strand.hashes.slice(0, size)
        const rootHex = bytesToHex(
          treeRoot(leaves.length, { leaves: (start, end) => leaves.slice(start, end) }),
        )
        const [manifest, ...rest] = strand.exportLines()
        const origin = `strandfast/${String(manifest?.['strand'])}`
        const note = signCheckpoint({ origin, size, rootHex }, keyPairFromSeed(Buffer.alloc(32, signer)))
        const lines = [manifest, ...rest].map((line) => JSON.stringify(line))
        const publicKey = keyPair(1).publicHex
        const found = await compared(lines, { note, publicKey })
        expect(found.ok).toBe(signer >= (inForce[size] ?? byte + 2) && signer <= byte)
        const inClient = await verifyByClient(`${lines.join('\n')}\n`, { publicKey, kept: note })
        expect(inClient).toMatchObject(found.ok ? { ok: true, kept: { size } } : found)
      }),
      { numRuns: 60 },
    )
  })
})

describe('the frozen checkpoints, by an independent implementation', () => {
  const innerHash = (left: Uint8Array, right: Uint8Array) =>
    sha256(concatBytes(Uint8Array.of(1), left, right))

  function rootOf(leaves: Uint8Array[]): Uint8Array {
    const [only] = leaves
    if (only === undefined || leaves.length === 1) return only ?? sha256(new Uint8Array())
    const half = 2 ** (Math.ceil(Math.log2(leaves.length)) - 1)
    return innerHash(rootOf(leaves.slice(0, half)), rootOf(leaves.slice(half)))
  }

  it.each(checkpointVectors.filter(({ expected }) => expected.ok))(
    'cover the first records, and are signed by the key in force or a later one: $name',
    ({ note, expected, export: name }) => {
      const headers = vectorExport(name)
        .slice(1, -1)
        .map((line): string => JSON.parse(line).h)
      const [text = '', line = ''] = note.split(/(?<=\n)\n/)
      const [, size = '', root = ''] = text.split('\n')
      expect(Number(size)).toBe(expected.ok && expected.size)
      const leaves = headers.map((h) => sha256(concatBytes(Uint8Array.of(0), utf8ToBytes(h))))
      expect(Buffer.from(root, 'base64').toString('hex')).toBe(
        bytesToHex(rootOf(leaves.slice(0, Number(size)))),
      )
      const keys = headers.slice(Number(size) - 1).map((h) => /\nkey ([0-9a-f]{64})\n/.exec(h)?.[1] ?? '')
      const signature = Buffer.from(line.trimEnd().split(' ')[2] ?? '', 'base64').subarray(4)
      const verifies = (key: string) =>
        ed25519.verify(signature, utf8ToBytes(text), hexToBytes(key), { zip215: false })
      expect(keys.some(verifies)).toBe(true)
    },
  )
})
