import { deriveSeed } from '../strand/keys.js'

const PEPPER_INFO = 'strandfast/password-pepper/v1'

/** The pepper of every password hash, 32 bytes, derived from the master seed (contract.md 1, Identity; 6.1). */
export function passwordPepper(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, PEPPER_INFO)
}
