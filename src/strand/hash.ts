import { createHash, hash } from 'node:crypto'
import { assert } from '../base/assert.js'

/** Bytes of the random salt in a body commitment. */
export const saltBytes = 16

const prefix = Buffer.from('strand-body/v1\n')
const BODY_AT = prefix.length + saltBytes

// One block that every small commitment is put together in: hashing is synchronous, so none sees another's.
const scratch = Buffer.alloc(4096)
prefix.copy(scratch)

/**
 * Commits to a body without showing it: SHA-256("strand-body/v1\n" ‖ salt ‖ body), so that an erased body cannot
 * be guessed back from its record (contract.md 4).
 * @param salt 16 bytes
 * @param body the canonical bytes
 * @returns 64 hex digits
 */
export function bodyCommitment(salt: Uint8Array, body: Uint8Array): string {
  assert(salt.length === saltBytes, 'the salt of a body commitment has 16 bytes')
  const end = BODY_AT + body.length
  if (end > scratch.length) {
    return createHash('sha256').update(prefix).update(salt).update(body).digest('hex')
  }
  scratch.set(salt, prefix.length)
  scratch.set(body, BODY_AT)
  return hash('sha256', scratch.subarray(0, end), 'hex')
}

/**
 * A record's address: SHA-256(0x00 ‖ H), which is the RFC 6962 leaf hash of its header text.
 * @returns 64 hex digits
 */
export function recordHash(headerText: string): string {
  return hash('sha256', `\0${headerText}`, 'hex')
}
