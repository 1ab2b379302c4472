import { runSync } from '../../../src/proof/job.js'
import { jobs } from '../../../src/proof/node/jobs.js'
import { growsFrom, leadsToRoot } from '../../../src/proof/tree-proof.js'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** Verifies an inclusion proof. */
export function verifyInclusion(proof: {
  index: number
  size: number
  leaf: Uint8Array
  path: Uint8Array[]
  root: Uint8Array
}): boolean {
  const { index, size, leaf, path, root } = proof
  return runSync(leadsToRoot({ index, size, leaf: hex(leaf), path: path.map(hex), rootHex: hex(root) }), jobs)
}

/** Verifies a consistency proof. */
export function verifyConsistency(proof: {
  from: number
  to: number
  fromRoot: Uint8Array
  toRoot: Uint8Array
  path: Uint8Array[]
}): boolean {
  const { from, to, fromRoot, toRoot, path } = proof
  const roots = { fromRootHex: hex(fromRoot), toRootHex: hex(toRoot) }
  return runSync(growsFrom({ from, to, ...roots, path: path.map(hex) }), jobs)
}
