import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { RandomBytes } from '../base/random.js'
import { deriveSeed } from './keys.js'

/**
 * The purpose of a sealed secret: the HKDF info of its key. A secret cannot be opened for a different
 * purpose.
 */
export type SealPurpose =
  | 'strandfast/agent-seed/v1'
  | 'strandfast/kept-answer/v1'
  | 'strandfast/mail/v1'
  | 'strandfast/stream-tickets/v1'
  | 'strandfast/cluster-state/v1'
  | 'strandfast/cluster-checkpoint/v1'

/** The purpose of a sealed secret and what it is bound to, both needed to open it. */
export interface SealContext {
  purpose: SealPurpose
  /** Additional authenticated data: the secret cannot be opened with another one. */
  boundTo: Uint8Array
}

const CIPHER = 'chacha20-poly1305'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Bytes that sealing adds to a secret. */
export const sealBytes = NONCE_BYTES + TAG_BYTES

/**
 * Encrypts a secret for the store: ChaCha20-Poly1305 (RFC 8439) with a key derived from the master seed and
 * with the owner as additional data.
 * @param masterSeed 32 bytes
 * @returns nonce ‖ ciphertext ‖ tag, `sealBytes` longer than the secret
 */
export function seal(
  masterSeed: Uint8Array,
  { purpose, boundTo, secret }: SealContext & { secret: Uint8Array },
  random: RandomBytes,
): Buffer {
  const nonce = random(NONCE_BYTES)
  const key = deriveSeed(masterSeed, purpose)
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(boundTo, { plaintextLength: secret.length })
  return Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()])
}

/**
 * Decrypts the result of `seal`.
 * @throws Error if the master seed, purpose or owner differs, or the bytes were changed
 */
export function unseal(
  masterSeed: Uint8Array,
  { purpose, boundTo }: SealContext,
  sealed: Uint8Array,
): Buffer {
  if (sealed.length < sealBytes) throw new Error(`A sealed secret has at least ${sealBytes} bytes`)
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const ciphertext = sealed.subarray(NONCE_BYTES, -TAG_BYTES)
  const key = deriveSeed(masterSeed, purpose)
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(boundTo, { plaintextLength: ciphertext.length })
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(ciphertext), decipher.final()])
}
