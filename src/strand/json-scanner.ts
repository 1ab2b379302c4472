import {
  BACKSLASH,
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  CARRIAGE_RETURN,
  COLON,
  COMMA,
  DOT,
  LINE_FEED,
  LOWER_E,
  MINUS,
  NINE,
  PLUS,
  QUOTE,
  SPACE,
  TAB,
  UPPER_E,
  ZERO,
} from '../base/ascii.js'

/*
 * Finds tokens, values and members in the bytes of JSON text, by quotes, brackets and commas alone: what the server reads of
 * JSON without parsing it. The grammar is left to the parser. Verifiers have a scanner of their own (src/proof/strict-json.ts).
 */

/** Where a value is in the bytes: from its first byte to the one after its last. */
export interface Span {
  from: number
  to: number
}

/** White space between tokens (RFC 8259, 2). */
export function isJsonSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB || byte === LINE_FEED || byte === CARRIAGE_RETURN
}

/** Where the white space ends that may begin at `from`. */
export function spaceEnd(bytes: Uint8Array, from: number, to = bytes.length): number {
  let at = from
  while (at < to && isJsonSpace(bytes[at])) at += 1
  return at
}

/** Whether bytes are white space alone. */
export function isBlank(bytes: Uint8Array, from = 0, to = bytes.length): boolean {
  return spaceEnd(bytes, from, to) === to
}

/** An ASCII digit. */
export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}

/** Where the run of number characters that continues at `at` ends. */
export function numberEnd(bytes: Uint8Array, at: number): number {
  let end = at
  for (; end < bytes.length; end += 1) {
    const byte = bytes[end]
    if (
      !isDigit(byte) &&
      byte !== DOT &&
      byte !== LOWER_E &&
      byte !== UPPER_E &&
      byte !== MINUS &&
      byte !== PLUS
    ) {
      break
    }
  }
  return end
}

/**
 * Where the string whose quote is at `start` has ended. Where it has not before `to`: 1 more than `to`, or 2 more if its
 * last byte is a backslash that begins an escape.
 */
export function stringEnd(bytes: Uint8Array, start: number, to = bytes.length): number {
  let at = start + 1
  while (at < to && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at + 1
}

/** What the string from its quote at `from` up to `to` says; undefined where it is no JSON string. */
export function stringText(bytes: Buffer, from: number, to: number): string | undefined {
  if (to > bytes.length) return undefined
  const text = bytes.toString('utf8', from + 1, to - 1)
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    // Not a JSON string, so not a name either.
    return undefined
  }
}

/** A value that is searched for its end piece by piece: where the piece ends, and what is open there. */
export interface Piece {
  to: number
  depth: number
  /** 0 outside strings, 1 in one, 2 after the backslash of an escape. */
  inString: number
}

/**
 * Where the value that begins at `from`, or continues there, has ended: after its quote or bracket, or before the comma,
 * bracket or space that follows a number or literal. -1 where it does not end before the end of the piece.
 */
export function valueEnd(
  bytes: Uint8Array,
  from: number,
  piece: Piece = { to: bytes.length, depth: 0, inString: 0 },
): number {
  const { to } = piece
  let { depth, inString } = piece
  let at = from
  while (at < to) {
    const byte = bytes[at]
    if (inString > 0 || byte === QUOTE) {
      at = stringEnd(bytes, inString > 0 ? at - 2 + inString : at, to)
      inString = Math.max(0, at - to)
      if (inString > 0) break
      if (depth === 0) return at
      continue
    }
    if (byte === BRACE_OPEN || byte === BRACKET_OPEN) depth += 1
    else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) {
      if (depth === 0) return at
      depth -= 1
      if (depth === 0) return at + 1
    } else if (depth === 0 && (byte === COMMA || isJsonSpace(byte))) return at
    at += 1
  }
  piece.depth = depth
  piece.inString = inString
  return -1
}

/**
 * Where the item of an array or object ends in which `from` is: at the comma behind it, or at the bracket that closes what
 * it is in; where there is neither, at the end of the bytes. It may be anything between the two, such as two values.
 */
export function itemEnd(bytes: Uint8Array, from: number): number {
  for (let at = from; ;) {
    at = spaceEnd(bytes, at)
    const byte = bytes[at]
    if (byte === COMMA || byte === BRACE_CLOSE || byte === BRACKET_CLOSE) return at
    const end = valueEnd(bytes, at)
    if (end === -1) return bytes.length
    at = end
  }
}

/** The most bytes of a character in a string: those of an escape. */
const ESCAPE_BYTES = 6

/** Where the value begins of the first member of that name, ASCII, in the object that a text is; -1 where there is none. */
export function memberStart(text: Buffer, name: string): number {
  let at = spaceEnd(text, 0)
  if (text[at] !== BRACE_OPEN) return -1
  do {
    at = spaceEnd(text, at + 1)
    if (text[at] === QUOTE) {
      const end = stringEnd(text, at)
      const colon = spaceEnd(text, end)
      const isColon = text[colon] === COLON
      const nameBytes = end - at - 2
      const canBe = isColon && nameBytes >= name.length && nameBytes <= name.length * ESCAPE_BYTES
      if (canBe && stringText(text, at, end) === name) return spaceEnd(text, colon + 1)
      at = isColon ? colon + 1 : end
    }
    at = itemEnd(text, at)
  } while (text[at] === COMMA)
  return -1
}

/** A longer text of a member, in bytes, is not the name of an agent. */
const MEMBER_BYTES_MAX = 1_024

/** The text of the first member of that name in the object that a text is; undefined where there is none, or a long one. */
export function memberText(text: Buffer, name: string): string | undefined {
  const at = memberStart(text, name)
  if (text[at] !== QUOTE) return undefined
  const end = stringEnd(text, at)
  return end - at > MEMBER_BYTES_MAX ? undefined : stringText(text, at, end)
}
