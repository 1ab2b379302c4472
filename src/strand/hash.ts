import { createHash, hash } from 'node:crypto'
import { assert } from '../base/assert.js'

/** Bytes of the random salt in a body commitment. */
export const saltBytes = 16

export const commitmentPrefix: Uint8Array = Buffer.from('strand-body/v1\n')
const BODY_AT = commitmentPrefix.length + saltBytes

// Small commitments share this buffer, which is safe because hashing is synchronous. Views are cached by
// length.
const scratch = Buffer.alloc(4096)
scratch.set(commitmentPrefix)
const scratchViews: (Buffer | undefined)[] = Array.from({ length: scratch.length + 1 })

/**
 * Commits to a body: SHA-256("strand-body/v1\n" ‖ salt ‖ body). Because of the salt, a guess of an erased
 * body cannot be confirmed from its record (docs/FORMAT.md, Body).
 * @param salt 16 bytes
 * @param body the canonical bytes
 * @returns 64 hex digits
 */
export function bodyCommitment(salt: Uint8Array, body: Uint8Array): string {
  assert(salt.length === saltBytes, 'the salt of a body commitment has 16 bytes')
  const end = BODY_AT + body.length
  if (end > scratch.length) {
    return createHash('sha256').update(commitmentPrefix).update(salt).update(body).digest('hex')
  }
  scratch.set(salt, commitmentPrefix.length)
  scratch.set(body, BODY_AT)
  const view = (scratchViews[end] ??= scratch.subarray(0, end))
  return hash('sha256', view, 'hex')
}

/**
 * SHA-256 of bytes that are already joined: `commitmentPrefix` ‖ salt ‖ body, or 0x00 ‖ H.
 * @returns 64 hex digits
 */
export function hashOf(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex')
}

/**
 * The hash of a record: SHA-256(0x00 ‖ H), the leaf hash of its header text (RFC 6962, 2.1).
 * @returns 64 hex digits
 */
export function recordHash(headerText: string): string {
  return hash('sha256', `\0${headerText}`, 'hex')
}

/** The bytes of a header, valid until the next call of `headerBytes`. */
interface HeaderBytes {
  /** 0x00 ‖ H, whose SHA-256 is the hash of the record. */
  leaf: Buffer
  /** H, which is signed. */
  text: Buffer
}

// Headers share this buffer, which is safe because hashing and signing are synchronous. Its first byte is the
// 0x00 of a leaf. Views are cached by length.
const headerScratch = Buffer.alloc(1024)
const headerViews: (HeaderBytes | undefined)[] = Array.from({ length: headerScratch.length + 1 })

/**
 * Encodes a header once for both hashing and signing.
 * @param header the result of `headerText`: ASCII, about 350 characters
 */
export function headerBytes(header: string): HeaderBytes {
  const end = 1 + headerScratch.write(header, 1, 'latin1')
  assert(end === 1 + header.length, 'a header fits into the buffer')
  return (headerViews[end] ??= { leaf: headerScratch.subarray(0, end), text: headerScratch.subarray(1, end) })
}
