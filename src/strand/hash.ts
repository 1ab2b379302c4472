import { createHash, hash } from 'node:crypto'
import { assert } from '../base/assert.js'

/** Bytes of the random salt in a body commitment. */
export const saltBytes = 16

/** Comes before salt and body in the bytes that a body commitment hashes. */
export const commitmentPrefix: Uint8Array = Buffer.from('strand-body/v1\n')
const BODY_AT = commitmentPrefix.length + saltBytes

// Every small commitment is assembled in this one block: hashing is synchronous, so none overwrites another. Views of
// it are made once for each length.
const scratch = Buffer.alloc(4096)
scratch.set(commitmentPrefix)
const beginnings: (Buffer | undefined)[] = Array.from({ length: scratch.length + 1 })

/**
 * Commits to a body without showing it: SHA-256("strand-body/v1\n" ‖ salt ‖ body), so that nobody can confirm a guess
 * of an erased body by its record (docs/FORMAT.md, Body).
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
  const beginning = (beginnings[end] ??= scratch.subarray(0, end))
  return hash('sha256', beginning, 'hex')
}

/**
 * SHA-256 of bytes that are already joined: `commitmentPrefix` ‖ salt ‖ body, or 0x00 ‖ H.
 * @returns 64 hex digits
 */
export function hashOf(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex')
}

/**
 * A record's address: SHA-256(0x00 ‖ H), which is the RFC 6962 leaf hash of its header text.
 * @returns 64 hex digits
 */
export function recordHash(headerText: string): string {
  return hash('sha256', `\0${headerText}`, 'hex')
}

/** The bytes of a header, valid until the next call. */
interface HeaderBytes {
  /** 0x00 ‖ H: the record's hash is the SHA-256 of it. */
  leaf: Buffer
  /** H, which is signed. */
  text: Buffer
}

// Every header is written to this one block: hashing and signing are synchronous, so none overwrites another. The first
// byte is the 0x00 before a leaf. The views are made once for each length.
const headerScratch = Buffer.alloc(1024)
const headerViews: (HeaderBytes | undefined)[] = Array.from({ length: headerScratch.length + 1 })

/**
 * Makes the bytes of a header's text once, so that hashing and signing need not both do it.
 * @param header as `headerText` makes it: ASCII, some 350 characters
 */
export function headerBytes(header: string): HeaderBytes {
  const end = 1 + headerScratch.write(header, 1, 'latin1')
  assert(end === 1 + header.length, 'a header has room')
  return (headerViews[end] ??= { leaf: headerScratch.subarray(0, end), text: headerScratch.subarray(1, end) })
}
