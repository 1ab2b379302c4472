import { deriveSeed } from '../strand/keys.js'

const FINGERPRINT_INFO = 'strandfast/master-seed-fingerprint/v1'

/** What format.json, and the table of a cluster, have of a master seed: enough to recognise it, but not to find it. */
export function fingerprintOf(seed: Uint8Array): string {
  return deriveSeed(seed, FINGERPRINT_INFO).toString('hex')
}
