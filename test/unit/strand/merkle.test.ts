import { createHash } from 'node:crypto'
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import {
  type LeafReader,
  TreeHasher,
  consistencyPath,
  inclusionPath,
  treeRoot,
} from '../../../src/strand/merkle.js'
import { verifyConsistency, verifyInclusion } from '../../support/proof/tree-proofs.js'

const leaves = Array.from({ length: 1_100 }, (_, at) => createHash('sha256').update(`leaf ${at}`).digest())
const reader: LeafReader = { leaves: (start, end) => leaves.slice(start, end) }

function storedRoot(level: number, index: number): Uint8Array {
  return rootByDefinition(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level))
}

/** The definition in RFC 6962, 2.1. */
function rootByDefinition(part: Buffer[]): Buffer {
  const [only] = part
  if (part.length === 0) return createHash('sha256').digest()
  if (part.length === 1 && only !== undefined) return only
  let power = 1
  while (power * 2 < part.length) power *= 2
  return createHash('sha256')
    .update(Buffer.of(1))
    .update(rootByDefinition(part.slice(0, power)))
    .update(rootByDefinition(part.slice(power)))
    .digest()
}

describe('the tree over records', () => {
  it('has the root that RFC 6962 defines, at every size, read or streamed', () => {
    const hasher = new TreeHasher()
    for (let size = 0; size <= 520; size += 1) {
      const expected = rootByDefinition(leaves.slice(0, size)).toString('hex')
      expect(Buffer.from(treeRoot(size, reader)).toString('hex')).toBe(expected)
      expect(Buffer.from(hasher.root()).toString('hex')).toBe(expected)
      expect(hasher.size).toBe(size)
      hasher.append(leaves[size] ?? Buffer.alloc(32))
    }
  })

  it('proves each leaf of each small tree, and no other leaves', () => {
    for (let size = 1; size <= 40; size += 1) {
      const root = rootByDefinition(leaves.slice(0, size))
      for (let index = 0; index < size; index += 1) {
        const leaf = leaves[index] ?? Buffer.alloc(0)
        const path = inclusionPath(index, size, reader)
        const proof = { index, size, leaf, path, root }
        expect(verifyInclusion(proof)).toBe(true)
        expect(verifyInclusion({ ...proof, leaf: leaves[index + 1] ?? leaf })).toBe(false)
        expect(
          verifyInclusion({ ...proof, root: leaves[0] && size > 1 ? leaves[0] : Buffer.alloc(32) }),
        ).toBe(false)
        expect(verifyInclusion({ ...proof, path: [...path, leaf] })).toBe(false)
        expect(verifyInclusion({ ...proof, index: size })).toBe(false)
        expect(verifyInclusion({ ...proof, index: -1 })).toBe(false)
        if (size > 1) {
          expect(verifyInclusion({ ...proof, path: path.slice(1) })).toBe(false)
          expect(verifyInclusion({ ...proof, index: (index + 1) % size })).toBe(false)
        }
      }
    }
  })

  it('refuses a proof with any bit flipped', () => {
    const [index, size] = [123, 300]
    const path = inclusionPath(index, size, reader)
    const proof = { index, size, leaf: leaves[index] ?? Buffer.alloc(0), path, root: treeRoot(size, reader) }
    fc.assert(
      fc.property(fc.nat({ max: path.length - 1 }), fc.nat({ max: 255 }), (step, bit) => {
        const flipped = path.map((hash, at) => {
          const copy = Buffer.from(hash)
          if (at === step) copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7))
          return copy
        })
        expect(verifyInclusion({ ...proof, path: flipped })).toBe(false)
      }),
    )
  })

  it('reads no leaves of stored subtrees', () => {
    const asked: string[] = []
    let read = 0
    const storing: LeafReader = {
      leaves: (start, end) => {
        expect(end - start).toBeLessThanOrEqual(256)
        read += end - start
        return leaves.slice(start, end)
      },
      subtree(level, index) {
        asked.push(`${level}/${index}`)
        return index === 2 ? undefined : storedRoot(level, index)
      },
    }
    expect(treeRoot(1_100, storing)).toStrictEqual(treeRoot(1_100, reader))
    expect(asked).toStrictEqual(['8/0', '8/1', '8/2', '8/3'])
    expect(read).toBe(256 + 76)
    expect(inclusionPath(1_030, 1_100, storing)).toStrictEqual(inclusionPath(1_030, 1_100, reader))
  })

  it('proves leaves beyond 2^32, where shifts would overflow', () => {
    const size = 2 ** 33
    const path = Array.from({ length: 33 }, (_, at) => createHash('sha256').update(`sibling ${at}`).digest())
    const leaf = leaves[0] ?? Buffer.alloc(0)
    const root = path.reduce(
      (right, left) => createHash('sha256').update(Buffer.of(1)).update(left).update(right).digest(),
      leaf,
    )
    expect(verifyInclusion({ index: size - 1, size, leaf, path, root })).toBe(true)
    expect(verifyInclusion({ index: size - 2, size, leaf, path, root })).toBe(false)
  })
})

/** The definition in RFC 6962, 2.1.2. */
function proofByDefinition(from: number, part: Buffer[], whole = true): Buffer[] {
  const size = part.length
  if (from === size) return whole ? [] : [rootByDefinition(part)]
  let power = 1
  while (power * 2 < size) power *= 2
  return from <= power
    ? [...proofByDefinition(from, part.slice(0, power), whole), rootByDefinition(part.slice(power))]
    : [...proofByDefinition(from - power, part.slice(power), false), rootByDefinition(part.slice(0, power))]
}

const roots = new Map<number, Buffer>()

function rootOf(size: number): Buffer {
  const root = roots.get(size) ?? rootByDefinition(leaves.slice(0, size))
  roots.set(size, root)
  return root
}

const proofOf = (from: number, to: number) => ({
  from,
  to,
  fromRoot: rootOf(from),
  toRoot: rootOf(to),
  path: consistencyPath(from, to, reader),
})

describe('the consistency of two trees', () => {
  it('is proven as RFC 6962 defines for all pairs of small sizes, and for no other roots', () => {
    const sizeMax = 33
    for (let to = 1; to <= sizeMax; to += 1) {
      for (let from = 1; from <= to; from += 1) {
        const proof = proofOf(from, to)
        expect(proof.path).toStrictEqual(proofByDefinition(from, leaves.slice(0, to)))
        expect(verifyConsistency(proof)).toBe(true)
        const other = leaves[from + 100] ?? Buffer.alloc(32)
        expect(verifyConsistency({ ...proof, fromRoot: other })).toBe(false)
        expect(verifyConsistency({ ...proof, toRoot: other })).toBe(false)
        expect(verifyConsistency({ ...proof, path: [...proof.path, other] })).toBe(false)
        expect(verifyConsistency({ ...proof, from: from + 64 })).toBe(false)
        expect(verifyConsistency({ ...proof, from: 0 })).toBe(false)
        if (from < to) expect(verifyConsistency({ ...proof, path: proof.path.slice(1) })).toBe(false)
      }
    }
  })

  it('is proven for larger trees with stored subtrees, and refused with any bit flipped', () => {
    const storing: LeafReader = { ...reader, subtree: storedRoot }
    const size = fc.integer({ min: 1, max: leaves.length })
    fc.assert(
      fc.property(fc.tuple(size, size), fc.nat(), fc.nat({ max: 255 }), ([one, other], step, bit) => {
        const [from, to] = [Math.min(one, other), Math.max(one, other)]
        const proof = proofOf(from, to)
        expect(consistencyPath(from, to, storing)).toStrictEqual(proof.path)
        expect(verifyConsistency(proof)).toBe(true)
        if (proof.path.length === 0) return
        const flipped = proof.path.map((hash) => Buffer.from(hash))
        const hash = flipped[step % flipped.length]
        if (hash !== undefined) hash[bit >> 3] = (hash[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        expect(verifyConsistency({ ...proof, path: flipped })).toBe(false)
      }),
    )
  })

  it('matches the well-known test trees of certificate transparency logs', () => {
    const inputs = [
      '',
      '00',
      '10',
      '2021',
      '3031',
      '40414243',
      '5051525354555657',
      '606162636465666768696a6b6c6d6e6f',
    ]
    const known = inputs.map((input) =>
      createHash('sha256').update(Buffer.of(0)).update(Buffer.from(input, 'hex')).digest(),
    )
    const knownReader: LeafReader = { leaves: (start, end) => known.slice(start, end) }
    const hex = (hash: Uint8Array) => Buffer.from(hash).toString('hex')
    expect(inputs.map((_input, at) => hex(treeRoot(at + 1, knownReader)))).toStrictEqual([
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
      'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
      '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
      '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
      'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
      '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
    ])
    const paths: Record<string, string[]> = {
      '1 1': [],
      '1 8': [
        '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
        '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
        '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
      ],
      '6 8': [
        '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
        'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
        'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
      ],
      '2 5': [
        '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
        'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      ],
    }
    for (const [sizes, path] of Object.entries(paths)) {
      const [from = 0, to = 0] = sizes.split(' ').map(Number)
      expect(consistencyPath(from, to, knownReader).map(hex)).toStrictEqual(path)
    }
  })

  it('is proven beyond 2^32, where shifts would overflow', () => {
    const from = 2 ** 32
    const [fromRoot = Buffer.alloc(0), right = Buffer.alloc(0)] = leaves
    const toRoot = createHash('sha256').update(Buffer.of(1)).update(fromRoot).update(right).digest()
    const proof = { from, to: 2 * from, fromRoot, toRoot, path: [right] }
    expect(verifyConsistency(proof)).toBe(true)
    expect(verifyConsistency({ ...proof, from: from - 1 })).toBe(false)
  })
})
