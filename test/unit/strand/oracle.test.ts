import { readFileSync } from 'node:fs'
import { ed25519 } from '@noble/curves/ed25519.js'
import { hkdf } from '@noble/hashes/hkdf.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { keyPairFromSeed, signText } from '../../../src/strand/keys.js'
import { verifyText } from '../../support/proof/verify-text.js'

// An independent implementation of the record format with other cryptographic libraries, checked against the
// frozen vectors. It only uses keys.ts of our code, to compare the two Ed25519 libraries.

interface Vector {
  name: string
  fields: { strand: string; key: string; seq: number; prev: string; hlc: string; type: string; body: string }
  header: string
  salt: string
  body: string
  hash: string
  signature?: string
  sealed_by?: number
}
interface RecordVectors {
  keys: { seed: string; public_key: string }[]
  derived: { master_seed: string; info: string; seed: string }[]
  strand: string
  records: Vector[]
  rotation: { strand: string; public_key: string; proof: string; proof_text: string }
}
interface Proof {
  index: number
  size: number
  leaf: string
  path: string[]
  root: string
}
interface TreeVectors {
  roots: { size: number; root: string }[]
  proofs: Proof[]
  strand_proof: Proof
  checkpoint: {
    origin: string
    size: number
    root: string
    public_key: string
    text: string
    note: string
  }
}

interface Growth {
  from: number
  to: number
  from_root: string
  to_root: string
  path: string[]
}
interface ConsistencyVectors {
  proofs: Growth[]
  strand_proof: Growth
}

function load<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../../vectors/${name}`, import.meta.url), 'utf8'))
}
const vectors = load<RecordVectors>('records.json')
const trees = load<TreeVectors>('tree.json')
const growth = load<ConsistencyVectors>('consistency.json')

const zeros = '0'.repeat(64)
const leafHash = (text: string) => sha256(concatBytes(Uint8Array.of(0), utf8ToBytes(text)))
const innerHash = (left: Uint8Array, right: Uint8Array) => sha256(concatBytes(Uint8Array.of(1), left, right))
const verifies = (key: string, text: string, signature: string) =>
  ed25519.verify(hexToBytes(signature), utf8ToBytes(text), hexToBytes(key), { zip215: false })

function treeHash(leaves: Uint8Array[]): Uint8Array {
  const [only] = leaves
  if (only === undefined) return sha256(new Uint8Array())
  if (leaves.length === 1) return only
  const half = 2 ** (Math.ceil(Math.log2(leaves.length)) - 1)
  return innerHash(treeHash(leaves.slice(0, half)), treeHash(leaves.slice(half)))
}

/** The root of an inclusion proof, computed from the top: the reverse of RFC 6962, 2.1.1. */
function rootOfProof(leaf: Uint8Array, path: Uint8Array[], at: { index: number; size: number }): Uint8Array {
  const sibling = path.at(-1)
  if (at.size === 1 || sibling === undefined) return leaf
  const half = 2 ** (Math.ceil(Math.log2(at.size)) - 1)
  const rest = path.slice(0, -1)
  return at.index < half
    ? innerHash(rootOfProof(leaf, rest, { index: at.index, size: half }), sibling)
    : innerHash(sibling, rootOfProof(leaf, rest, { index: at.index - half, size: at.size - half }))
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([key, member]) => ({ key, member }))
  members.sort((a, b) => (a.key < b.key ? -1 : 1))
  return `{${members.map(({ key, member }) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`
}

describe('the frozen record vectors, by an independent implementation', () => {
  it.each(vectors.keys)(
    'derive the public key $public_key from its seed',
    ({ seed, public_key: publicKey }) => {
      expect(bytesToHex(ed25519.getPublicKey(hexToBytes(seed)))).toBe(publicKey)
    },
  )

  it.each(vectors.derived)('derive the seed of $info', ({ master_seed: master, info, seed }) => {
    expect(bytesToHex(hkdf(sha256, hexToBytes(master), new Uint8Array(), utf8ToBytes(info), 32))).toBe(seed)
  })

  it.each(vectors.records)('write the header of record $fields.seq, $name', ({ fields, header }) => {
    const lines = ['strand-record/v1', ...Object.entries(fields).map(([name, value]) => `${name} ${value}`)]
    expect(header).toBe(lines.map((line) => `${line}\n`).join(''))
  })

  it.each(vectors.records)(
    'hash and commit record $fields.seq, $name',
    ({ fields, header, salt, body, hash }) => {
      expect(bytesToHex(leafHash(header))).toBe(hash)
      const committed = concatBytes(utf8ToBytes('strand-body/v1\n'), hexToBytes(salt), utf8ToBytes(body))
      expect(bytesToHex(sha256(committed))).toBe(fields.body)
      expect(canonical(JSON.parse(body))).toBe(body)
    },
  )

  it('link each record to the previous one, with the key in force', () => {
    let prev = zeros
    let key = vectors.keys[0]?.public_key
    let clock = -1n
    for (const [at, { fields, hash, body }] of vectors.records.entries()) {
      expect(fields).toMatchObject({ seq: at, prev, key, strand: at === 0 ? zeros : vectors.strand })
      const timestamp = BigInt(`0x${fields.hlc.replace('-', '')}`)
      expect(timestamp > clock).toBe(true)
      clock = timestamp
      prev = hash
      if (fields.type === 'sys/key_rotate') key = JSON.parse(body).public_key
    }
    expect(vectors.records[0]?.hash).toBe(vectors.strand)
    expect(JSON.parse(vectors.records[0]?.body ?? '').public_key).toBe(vectors.keys[0]?.public_key)
  })

  it.each(vectors.records)('sign or seal record $fields.seq, $name', ({ fields, header, ...record }) => {
    const signer =
      record.signature === undefined ? vectors.records[record.sealed_by ?? 0] : { fields, header, ...record }
    expect(signer?.fields.seq).toBeGreaterThanOrEqual(fields.seq)
    expect(verifies(fields.key, signer?.header ?? '', signer?.signature ?? '')).toBe(true)
    const seed = vectors.keys.find((pair) => pair.public_key === fields.key)?.seed ?? ''
    expect(bytesToHex(ed25519.sign(utf8ToBytes(signer?.header ?? ''), hexToBytes(seed)))).toBe(
      signer?.signature,
    )
  })

  it('prove the new key of the rotation', () => {
    const { strand, public_key: publicKey, proof, proof_text: text } = vectors.rotation
    expect(text).toBe(`strand-key-rotate/v1\n${strand}\n${publicKey}\n`)
    expect(verifies(publicKey, text, proof)).toBe(true)
  })
})

describe('the frozen tree vectors, by an independent implementation', () => {
  const leaves = Array.from({ length: 300 }, (_, at) => leafHash(`leaf ${at}\n`))

  it.each(trees.roots)('have the root of $size leaves', ({ size, root }) => {
    expect(bytesToHex(treeHash(leaves.slice(0, size)))).toBe(root)
  })

  it.each(trees.proofs)('prove leaf $index of $size', ({ index, size, leaf, path, root }) => {
    expect(bytesToHex(leaves[index] ?? new Uint8Array())).toBe(leaf)
    expect(bytesToHex(rootOfProof(hexToBytes(leaf), path.map(hexToBytes), { index, size }))).toBe(root)
  })

  it('prove a record of the strand with the root of its checkpoint', () => {
    const { leaf, path, root, ...at } = trees.strand_proof
    expect(bytesToHex(rootOfProof(hexToBytes(leaf), path.map(hexToBytes), at))).toBe(root)
    expect(bytesToHex(treeHash(vectors.records.map((record) => hexToBytes(record.hash))))).toBe(root)
    expect(trees.checkpoint.root).toBe(root)
  })

  it('sign the checkpoint as a C2SP note', () => {
    const { origin, size, root, public_key: publicKey, text, note } = trees.checkpoint
    expect(origin).toBe(`strandfast/${vectors.strand}`)
    expect(text).toBe(`${origin}\n${size}\n${Buffer.from(root, 'hex').toString('base64')}\n`)
    const [, line] = note.split('\n\n')
    const [dash, name, encoded = ''] = (line ?? '').trimEnd().split(' ')
    expect([dash, name]).toStrictEqual(['\u2014', origin])
    const bytes = Buffer.from(encoded, 'base64')
    const keyId = sha256(
      concatBytes(utf8ToBytes(`${origin}\n`), Uint8Array.of(1), hexToBytes(publicKey)),
    ).slice(0, 4)
    expect(bytesToHex(bytes.subarray(0, 4))).toBe(bytesToHex(keyId))
    expect(verifies(publicKey, text, bytes.subarray(4).toString('hex'))).toBe(true)
    expect(note).toBe(`${text}\n${line}`)
  })
})

// The tests of RFC 8032, 7.1, with a text as message, because we only sign texts.
const rfc8032 = [
  {
    seed: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    key: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    message: '',
    signature:
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  },
  {
    seed: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    key: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    message: '72',
    signature:
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  },
]

describe('Ed25519', () => {
  it.each(rfc8032)('agrees with RFC 8032 for the key $key', ({ seed, key, message, signature }) => {
    const text = Buffer.from(message, 'hex').toString()
    const keys = keyPairFromSeed(Buffer.from(seed, 'hex'))
    expect(keys.publicKey).toBe(key)
    expect(signText(keys.secretKey, text).toString('hex')).toBe(signature)
    expect(verifyText(key, text, Buffer.from(signature, 'hex'))).toBe(true)
    expect(verifies(key, text, signature)).toBe(true)
  })

  it('is signed and verified equally by both libraries, for any seed, text and damage', () => {
    const seeds = fc.uint8Array({ minLength: 32, maxLength: 32 })
    fc.assert(
      fc.property(
        seeds,
        fc.string({ unit: 'grapheme' }),
        fc.option(fc.nat({ max: 511 })),
        (seed, text, bit) => {
          const keys = keyPairFromSeed(seed)
          const signature = signText(keys.secretKey, text)
          expect(bytesToHex(ed25519.sign(utf8ToBytes(text), seed))).toBe(signature.toString('hex'))
          if (bit !== null) signature[bit >> 3] = (signature[bit >> 3] ?? 0) ^ (1 << (bit & 7))
          expect(verifyText(keys.publicKey, text, signature)).toBe(bit === null)
          expect(verifies(keys.publicKey, text, signature.toString('hex'))).toBe(bit === null)
        },
      ),
      { numRuns: 50, seed: 3 },
    )
  })

  it('is refused by both libraries with the group order added to S', () => {
    const order = 2n ** 252n + 27742317777372353535851937790883648493n
    const keys = keyPairFromSeed(Buffer.alloc(32, 4))
    const signature = signText(keys.secretKey, 'text')
    const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order
    const malleated = Buffer.concat([
      signature.subarray(0, 32),
      Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse(),
    ])
    expect(verifyText(keys.publicKey, 'text', malleated)).toBe(false)
    expect(verifies(keys.publicKey, 'text', malleated.toString('hex'))).toBe(false)
  })

  it('is refused by both libraries with keys of small order', () => {
    // The neutral element and a point of order 8, with a signature that is valid for every text: R = A, S
    // = 0.
    for (const key of [
      `01${'0'.repeat(62)}`,
      'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
    ]) {
      const signature = `${key}${zeros}`
      expect(verifyText(key, 'text', Buffer.from(signature, 'hex'))).toBe(false)
      expect(verifies(key, 'text', signature)).toBe(false)
    }
  })
})

interface GrownRoots {
  older: Uint8Array
  newer: Uint8Array
}

/**
 * The old and new root of a consistency proof: the reverse of RFC 6962, 2.1.2. Removes the hashes from
 * `path`.
 */
function grownRoots(
  from: number,
  to: number,
  { path, whole }: { path: Uint8Array[]; whole: Uint8Array | undefined },
): GrownRoots {
  const next = () => path.shift() ?? new Uint8Array()
  if (from === to) {
    const root = whole ?? next()
    return { older: root, newer: root }
  }
  let half = 1
  while (half * 2 < to) half *= 2
  if (from <= half) {
    const { older, newer } = grownRoots(from, half, { path, whole })
    return { older, newer: innerHash(newer, next()) }
  }
  const { older, newer } = grownRoots(from - half, to - half, { path, whole: undefined })
  const left = next()
  return { older: innerHash(left, older), newer: innerHash(left, newer) }
}

describe('the frozen consistency vectors, by an independent implementation', () => {
  const leaves = Array.from({ length: 300 }, (_, at) => leafHash(`leaf ${at}\n`))
  const ofStrand = vectors.records.map((record) => hexToBytes(record.hash))

  it.each([
    ...growth.proofs.map((proof) => ({ ...proof, of: leaves })),
    { ...growth.strand_proof, of: ofStrand },
  ])('lead from $from leaves to $to', ({ from, to, from_root, to_root, path, of }) => {
    expect(bytesToHex(treeHash(of.slice(0, from)))).toBe(from_root)
    expect(bytesToHex(treeHash(of.slice(0, to)))).toBe(to_root)
    const left = path.map(hexToBytes)
    const { older, newer } = grownRoots(from, to, { path: left, whole: hexToBytes(from_root) })
    expect([bytesToHex(older), bytesToHex(newer), left.length]).toEqual([from_root, to_root, 0])
  })
})
