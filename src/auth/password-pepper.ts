import { deriveSeed } from '../strand/keys.js'

const PEPPER_INFO = 'strandfast/password-pepper/v1'

/** The pepper of every password hash, 32 bytes, derived from the master seed. */
export function passwordPepper(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, PEPPER_INFO)
}
