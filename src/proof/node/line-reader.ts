import { commitmentPrefix, saltBytes } from '../../strand/hash.js'
import type { RecordHeader } from '../../strand/header.js'
import { type ReadContent, type ReadLine, type ReadRecord, readLineText } from '../record.js'

const LF = 0x0a
const QUOTE = 0x22
const DASH = 0x2d
const ZERO = 0x30
const NINE = 0x39
const BACKSLASH = 0x5c
const SPACE = 0x20

/** Numbers with more digits, which may be unsafe, are left to `readLineText`. */
const NUMBER_DIGITS_MAX = 15
const HASH_DIGITS = 64
const SIGNATURE_DIGITS = 128
const SALT_DIGITS = 2 * saltBytes
const HLC_MS_DIGITS = 12
const HLC_COUNTER_DIGITS = 4
const HLC_CHARS = HLC_MS_DIGITS + 1 + HLC_COUNTER_DIGITS
const TYPE_CHARS_MAX = 64
const HEADER_BYTES_MAX = 512
const BODY_AT = commitmentPrefix.length + saltBytes

/** The texts between the values of a record, as `recordLine` and `headerText` write them. */
const written = {
  strand: Buffer.from('{"h":"strand-record/v1\\nstrand '),
  key: Buffer.from('\\nkey '),
  seq: Buffer.from('\\nseq '),
  prev: Buffer.from('\\nprev '),
  hlc: Buffer.from('\\nhlc '),
  type: Buffer.from('\\ntype '),
  commitment: Buffer.from('\\nbody '),
  signature: Buffer.from('\\n","sig":"'),
  sealedBy: Buffer.from('\\n","sealed_by":'),
  endOfText: Buffer.from('"'),
  salt: Buffer.from(',"salt":"'),
  body: Buffer.from('","body":"'),
  erased: Buffer.from(',"erased":true}'),
  withheld: Buffer.from(',"withheld":true}'),
}

/** Bytes from the start of a line to its seq, which are mostly the same as in the previous line. */
const FRAME_BYTES = written.strand.length + written.key.length + written.seq.length + 2 * HASH_DIGITS

/** The values of lower-case hex digits; 255 for every other byte. */
const hexValues = new Uint8Array(256).fill(255)
for (let value = 0; value < 16; value += 1) hexValues[value.toString(16).charCodeAt(0)] = value

/** 1 for the bytes that a record type may contain. */
const typeBytes = new Uint8Array(256)
for (const byte of Buffer.from('abcdefghijklmnopqrstuvwxyz0123456789_./-')) typeBytes[byte] = 1

/**
 * Reads lines from their bytes. A record line exactly as `recordLine` writes it is read without parsing JSON,
 * any other line by `readLineText`, with the same result.
 */
export class LineReader {
  /** 0x00 and the text of the header. */
  readonly #leaf = Buffer.alloc(HEADER_BYTES_MAX)
  #committed = Buffer.alloc(BODY_AT)
  /** The next byte to read from the line, and the next byte to write in `#leaf`. */
  #at = 0
  #to = 0
  /** The start of the last line. Its part of the header is in `#leaf`, up to `#frameEnd`. */
  readonly #frame = Buffer.alloc(FRAME_BYTES)
  #frameEnd = 0
  #strand = ''
  #key = ''

  constructor() {
    this.#committed.set(commitmentPrefix)
  }

  /** Reads the UTF-8 line from `start` up to but not including `end`, without its LF. */
  read(bytes: Buffer, start: number, end: number): ReadLine {
    const record = this.readWritten(bytes, start, end)
    return record === undefined ? readLineText(bytes.toString('utf8', start, end)) : { record }
  }

  /** The record of a line as `recordLine` writes it; undefined for a line of any other form. */
  readWritten(bytes: Buffer, start: number, end: number): ReadRecord | undefined {
    this.#at = start
    const read = this.#header(bytes)
    if (read === undefined) return undefined
    const leaf = this.#leaf.subarray(0, this.#to)
    let sig: string | undefined
    let sealedBy: number | undefined
    if (this.#skip(bytes, written.signature)) {
      const from = this.#at
      if (!isHex(bytes, from, SIGNATURE_DIGITS)) return undefined
      this.#at += SIGNATURE_DIGITS
      sig = bytes.toString('latin1', from, this.#at)
      if (!this.#skip(bytes, written.endOfText)) return undefined
    } else {
      if (!this.#skip(bytes, written.sealedBy)) return undefined
      sealedBy = this.#number(bytes)
      if (sealedBy === undefined) return undefined
    }
    let content: ReadContent | undefined
    let withheld = false
    if (this.#skip(bytes, written.salt)) {
      content = this.#content(bytes, end)
      if (content === undefined) return undefined
    } else {
      withheld = this.#skip(bytes, written.withheld)
      if (!withheld && !this.#skip(bytes, written.erased)) return undefined
    }
    if (this.#at !== end) return undefined
    return { header: read.header, h: read.h, leaf, sig, sealedBy, content, withheld }
  }

  /** Reads the header and writes its text after the 0x00 in `#leaf`. */
  #header(bytes: Buffer): { header: RecordHeader; h: string } | undefined {
    if (!this.#skipFrame(bytes)) return undefined
    this.#to = this.#frameEnd
    const seqAt = this.#at
    const seq = this.#number(bytes)
    if (seq === undefined) return undefined
    for (let at = seqAt; at < this.#at; at += 1) this.#leaf[this.#to++] = bytes[at] ?? 0
    if (!this.#name(bytes, written.prev)) return undefined
    const prevAt = this.#to
    if (!this.#hex(bytes, HASH_DIGITS) || !this.#name(bytes, written.hlc)) return undefined
    const hlcAt = this.#to
    if (!this.#hex(bytes, HLC_MS_DIGITS) || bytes[this.#at] !== DASH) return undefined
    this.#at += 1
    this.#leaf[this.#to++] = DASH
    if (!this.#hex(bytes, HLC_COUNTER_DIGITS) || !this.#name(bytes, written.type)) return undefined
    const typeAt = this.#to
    if (!this.#type(bytes)) return undefined
    const typeEnd = this.#to
    if (!this.#name(bytes, written.commitment)) return undefined
    const bodyAt = this.#to
    if (!this.#hex(bytes, HASH_DIGITS)) return undefined
    this.#leaf[this.#to++] = LF
    const h = this.#leaf.toString('latin1', 1, this.#to)
    const header = {
      strand: this.#strand,
      key: this.#key,
      seq,
      // Offsets in the text are one less than in `#leaf`.
      prev: h.slice(prevAt - 1, prevAt - 1 + HASH_DIGITS),
      hlc: h.slice(hlcAt - 1, hlcAt - 1 + HLC_CHARS),
      type: h.slice(typeAt - 1, typeEnd - 1),
      body: h.slice(bodyAt - 1, bodyAt - 1 + HASH_DIGITS),
    }
    return { header, h }
  }

  /** Skips the start of a line, with strand and key. */
  #skipFrame(bytes: Buffer): boolean {
    return (this.#frameEnd > 0 && this.#skip(bytes, this.#frame)) || this.#newFrame(bytes)
  }

  #newFrame(bytes: Buffer): boolean {
    const start = this.#at
    this.#frameEnd = 0
    this.#to = this.#leaf.write('\0strand-record/v1\nstrand ', 'latin1')
    if (!this.#skip(bytes, written.strand)) return false
    const strandAt = this.#to
    if (!this.#hex(bytes, HASH_DIGITS) || !this.#name(bytes, written.key)) return false
    const keyAt = this.#to
    if (!this.#hex(bytes, HASH_DIGITS) || !this.#name(bytes, written.seq)) return false
    this.#strand = this.#leaf.toString('latin1', strandAt, strandAt + HASH_DIGITS)
    this.#key = this.#leaf.toString('latin1', keyAt, keyAt + HASH_DIGITS)
    this.#frame.set(bytes.subarray(start, this.#at))
    this.#frameEnd = this.#to
    return true
  }

  /** Skips `part` if it comes next. */
  #skip(bytes: Buffer, part: Uint8Array): boolean {
    const at = this.#at
    for (let offset = 0; offset < part.length; offset += 1) {
      if (bytes[at + offset] !== part[offset]) return false
    }
    this.#at = at + part.length
    return true
  }

  /** Skips the name of a header line, and copies it to `#leaf`; its LF has two characters in JSON. */
  #name(bytes: Buffer, part: Uint8Array): boolean {
    if (!this.#skip(bytes, part)) return false
    this.#leaf[this.#to++] = LF
    for (let offset = 2; offset < part.length; offset += 1) this.#leaf[this.#to++] = part[offset] ?? 0
    return true
  }

  /** Copies hex digits to `#leaf`. */
  #hex(bytes: Buffer, digits: number): boolean {
    const leaf = this.#leaf
    const from = this.#at
    const to = this.#to
    let seen = 0
    for (let offset = 0; offset < digits; offset += 1) {
      const byte = bytes[from + offset] ?? 0
      seen |= hexValues[byte] ?? 255
      leaf[to + offset] = byte
    }
    this.#at = from + digits
    this.#to = to + digits
    return seen < 16
  }

  /** Copies a record type to `#leaf`. */
  #type(bytes: Buffer): boolean {
    const from = this.#at
    for (let byte = bytes[from] ?? 0; typeBytes[byte] === 1; byte = bytes[this.#at] ?? 0) {
      if (this.#at - from === TYPE_CHARS_MAX) return false
      this.#leaf[this.#to++] = byte
      this.#at += 1
    }
    return this.#at > from
  }

  /** Reads a number without leading zeros. */
  #number(bytes: Buffer): number | undefined {
    const from = this.#at
    let value = 0
    let at = from
    for (let byte = bytes[at] ?? 0; byte >= ZERO && byte <= NINE; byte = bytes[at] ?? 0) {
      value = value * 10 + (byte - ZERO)
      at += 1
    }
    const digits = at - from
    if (digits === 0 || digits > NUMBER_DIGITS_MAX || (digits > 1 && bytes[from] === ZERO)) return undefined
    this.#at = at
    return value
  }

  /** Reads salt and body, up to the end of the line. */
  #content(bytes: Buffer, end: number): ReadContent | undefined {
    const from = this.#at
    if (!isHex(bytes, from, SALT_DIGITS)) return undefined
    this.#at += SALT_DIGITS
    if (!this.#skip(bytes, written.body)) return undefined
    // A text does not grow when its escapes are decoded.
    const bytesMax = BODY_AT + end - this.#at
    if (this.#committed.length < bytesMax) {
      this.#committed = Buffer.alloc(2 * bytesMax)
      this.#committed.set(commitmentPrefix)
    }
    const target = this.#committed
    let to = commitmentPrefix.length
    for (let at = from; at < from + SALT_DIGITS; at += 2) {
      target[to++] = (hexValues[bytes[at] ?? 0] ?? 0) * 16 + (hexValues[bytes[at + 1] ?? 0] ?? 0)
    }
    return this.#body(bytes, end)
  }

  /** Decodes the text of the body into `#committed`. Canonical JSON needs only two kinds of escapes. */
  #body(bytes: Buffer, end: number): ReadContent | undefined {
    const target = this.#committed
    let at = this.#at
    let to = BODY_AT
    for (; at < end; at += 1) {
      let byte = bytes[at] ?? 0
      if (byte === QUOTE) break
      if (byte === BACKSLASH) {
        at += 1
        byte = bytes[at] ?? 0
        if (byte !== QUOTE && byte !== BACKSLASH) return undefined
      } else if (byte < SPACE) return undefined
      target[to++] = byte
    }
    // The quote that ends the body, and the brace that ends the line.
    if (bytes[at] !== QUOTE || bytes[at + 1] !== 0x7d) return undefined
    this.#at = at + 2
    return { committed: target.subarray(0, to) }
  }
}

function isHex(bytes: Uint8Array, from: number, digits: number): boolean {
  let seen = 0
  for (let at = from; at < from + digits; at += 1) seen |= hexValues[bytes[at] ?? 0] ?? 255
  return seen < 16
}
