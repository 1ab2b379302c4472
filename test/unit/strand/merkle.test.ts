import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type LeafReader,
  TreeHasher,
  inclusionPath,
  treeRoot,
  verifyInclusion,
} from '../../../src/strand/merkle.js'

const leaves = Array.from({ length: 1_100 }, (_, at) => createHash('sha256').update(`leaf ${at}`).digest())
const reader: LeafReader = { leaves: (start, end) => leaves.slice(start, end) }

/** RFC 6962, 2.1, word for word. */
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

  it('proves each leaf of each small tree, and nothing else', () => {
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

  it('refuses a proof with any bit turned', () => {
    const [index, size] = [123, 300]
    const path = inclusionPath(index, size, reader)
    const proof = { index, size, leaf: leaves[index] ?? Buffer.alloc(0), path, root: treeRoot(size, reader) }
    fc.assert(
      fc.property(fc.nat({ max: path.length - 1 }), fc.nat({ max: 255 }), (step, bit) => {
        const turned = path.map((hash, at) => {
          const copy = Buffer.from(hash)
          if (at === step) copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7))
          return copy
        })
        expect(verifyInclusion({ ...proof, path: turned })).toBe(false)
      }),
    )
  })

  it('keeps the roots of complete subtrees of 256 leaves and reads those leaves no more', () => {
    const kept = new Map<string, Uint8Array>()
    let read = 0
    const caching: LeafReader = {
      leaves: (start, end) => {
        expect(end - start).toBeLessThanOrEqual(256)
        read += end - start
        return leaves.slice(start, end)
      },
      subtree: (level, index) => kept.get(`${level}/${index}`),
      keep: (level, index, root) => kept.set(`${level}/${index}`, root),
    }
    expect(treeRoot(1_100, caching)).toStrictEqual(treeRoot(1_100, reader))
    expect([...kept.keys()]).toStrictEqual(['8/0', '8/1', '8/2', '8/3'])
    expect(read).toBe(1_100)
    expect(treeRoot(1_100, caching)).toStrictEqual(treeRoot(1_100, reader))
    expect(read).toBe(1_100 + 76)
    expect(inclusionPath(1_030, 1_100, caching)).toStrictEqual(inclusionPath(1_030, 1_100, reader))
  })

  it('proves leaves past 2^32, where shifts would be cut off', () => {
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

it('goes on from the peaks of a tree as the tree itself does', () => {
  const leaf = (n: number) => Buffer.alloc(32, n)
  for (let size = 0; size <= 33; size++) {
    const whole = new TreeHasher()
    for (let n = 0; n < size; n++) whole.append(leaf(n))
    const resumed = TreeHasher.of(size, whole.peaks)
    for (let n = size; n < 40; n++) {
      whole.append(leaf(n))
      resumed.append(leaf(n))
    }
    expect(Buffer.from(resumed.root())).toEqual(Buffer.from(whole.root()))
  }
})
