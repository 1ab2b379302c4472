import { assert } from '../base/assert.js'

/** The bytes of a header, valid until the next call. */
export interface HeaderBytes {
  /** 0x00 ‖ H: the record's hash is the SHA-256 of it. */
  leaf: Buffer
  /** H, which is signed. */
  text: Buffer
}

// Every header is written to this one block: hashing and signing are synchronous, so none overwrites another. The first
// byte is the 0x00 before a leaf. The views are made once for each length.
const scratch = Buffer.alloc(1024)
const views: (HeaderBytes | undefined)[] = Array.from({ length: scratch.length + 1 })

/**
 * Makes the bytes of a header's text once, so that hashing and signing need not both do it.
 * @param header as `headerText` makes it: ASCII, some 350 characters
 */
export function headerBytes(header: string): HeaderBytes {
  const end = 1 + scratch.write(header, 1, 'latin1')
  assert(end === 1 + header.length, 'a header has room')
  return (views[end] ??= { leaf: scratch.subarray(0, end), text: scratch.subarray(1, end) })
}
