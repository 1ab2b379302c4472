import { createHmac } from 'node:crypto'
import { deriveSeed } from '../strand/keys.js'

const FINGERPRINT_INFO = 'strandfast/master-seed-fingerprint/v1'
const MARK_INFO = 'strandfast/root-key-mark/v1'
const MARK_DIGITS = 8

/** What format.json, and the table of a cluster, have of a master seed: enough to recognise it, but not to find it. */
export function fingerprintOf(seed: Uint8Array): string {
  return deriveSeed(seed, FINGERPRINT_INFO).toString('hex')
}

/** By which root keys are told apart in the database of a cluster; nobody without the master seed can try keys against it. */
export function markOf(rootKeyDigest: Uint8Array, masterSeed: Uint8Array): string {
  const mark = createHmac('sha256', deriveSeed(masterSeed, MARK_INFO)).update(rootKeyDigest)
  return mark.digest('hex').slice(0, MARK_DIGITS)
}
