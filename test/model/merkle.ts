import { createHash } from 'node:crypto'

/** The root of the RFC 6962 tree over leaf hashes, all hex. */
export function rootOf(leaves: readonly string[]): string {
  const [first] = leaves
  if (first === undefined) throw new Error('Expected a leaf')
  if (leaves.length === 1) return first
  let left = 1
  while (left * 2 < leaves.length) left *= 2
  return nodeOf(rootOf(leaves.slice(0, left)), rootOf(leaves.slice(left)))
}

/** Sibling hashes from a leaf up (RFC 6962, 2.1.1). */
export function pathOf(leaves: readonly string[], index: number): string[] {
  if (leaves.length === 1) return []
  let left = 1
  while (left * 2 < leaves.length) left *= 2
  return index < left
    ? [...pathOf(leaves.slice(0, left), index), rootOf(leaves.slice(left))]
    : [...pathOf(leaves.slice(left), index - left), rootOf(leaves.slice(0, left))]
}

function nodeOf(left: string, right: string): string {
  const bytes = Buffer.concat([Buffer.from([1]), Buffer.from(left, 'hex'), Buffer.from(right, 'hex')])
  return createHash('sha256').update(bytes).digest('hex')
}
