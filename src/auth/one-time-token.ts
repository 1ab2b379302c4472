import { createHash } from 'node:crypto'
import { fromBase64url } from '../base/bytes.js'
import type { RandomBytes } from '../base/random.js'

const TOKEN_BYTES = 32
const TOKEN_CHARS = 43

/**
 * Creates a one-time token for a magic link, the verification of an address or the reset of a password
 * (docs/adr/0010-auth-state.md).
 * @returns the token for the mail, and the hash for the store, 64 hex digits
 */
export function makeOneTimeToken(random: RandomBytes): { token: string; hash: string } {
  const bytes = random(TOKEN_BYTES)
  return { token: Buffer.from(bytes).toString('base64url'), hash: sha256(bytes) }
}

/**
 * The hash under which a token is stored: SHA-256 of its 32 bytes.
 * @returns 64 hex digits, or `undefined` if the token is malformed
 */
export function hashOneTimeToken(token: string): string | undefined {
  const bytes = token.length === TOKEN_CHARS ? fromBase64url(token) : undefined
  return bytes && sha256(bytes)
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
