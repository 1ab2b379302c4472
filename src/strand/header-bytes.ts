import { assert } from '../base/assert.js'

/** A header as bytes, until the next one is laid. */
export interface HeaderBytes {
  /** 0x00 ‖ H: the record's hash is the SHA-256 of it. */
  leaf: Buffer
  /** H, which is signed. */
  text: Buffer
}

// One block that every header is put in: hashing and signing are synchronous, so none sees another's. The first byte is
// the 0x00 before a leaf. The views are made once for each length.
const scratch = Buffer.alloc(1024)
const views: (HeaderBytes | undefined)[] = Array.from({ length: scratch.length + 1 })

/**
 * Lays the text of a header as bytes, so that hashing and signing need not turn it into bytes each.
 * @param header as `headerText` makes it: ASCII, some 350 characters
 */
export function headerBytes(header: string): HeaderBytes {
  const end = 1 + scratch.write(header, 1, 'latin1')
  assert(end === 1 + header.length, 'a header has room')
  return (views[end] ??= { leaf: scratch.subarray(0, end), text: scratch.subarray(1, end) })
}
