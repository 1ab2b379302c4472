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
 * Finds tokens, values and members in JSON text without parsing it, by quotes, brackets and commas only. It
 * does not check the grammar. Verifiers have a separate scanner (src/proof/strict-json.ts).
 */

/** The bytes of a value: `from` is its first byte, `to` the byte after its last. */
export interface Span {
  from: number
  to: number
}

/** White space between tokens (RFC 8259, 2). */
export function isJsonSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB || byte === LINE_FEED || byte === CARRIAGE_RETURN
}

/** The offset after the white space, if any, at `from`. */
export function spaceEnd(bytes: Uint8Array, from: number, to = bytes.length): number {
  let at = from
  while (at < to && isJsonSpace(bytes[at])) at += 1
  return at
}

/** Whether bytes are only white space. */
export function isBlank(bytes: Uint8Array, from = 0, to = bytes.length): boolean {
  return spaceEnd(bytes, from, to) === to
}

/** Whether a byte is an ASCII digit. */
export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}

/** The offset after the run of number characters at `at`. */
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
 * The offset after the string whose quote is at `start`. If the string does not end before `to`, the result
 * is `to` + 1, or `to` + 2 if the last byte is a backslash that begins an escape.
 */
export function stringEnd(bytes: Uint8Array, start: number, to = bytes.length): number {
  let at = start + 1
  while (at < to && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at + 1
}

/** The decoded string from its quote at `from` up to `to`; undefined if it is not a valid JSON string. */
export function stringText(bytes: Buffer, from: number, to: number): string | undefined {
  if (to > bytes.length) return undefined
  const text = bytes.toString('utf8', from + 1, to - 1)
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    return undefined
  }
}

/** The state of a search for the end of a value over several pieces of text. */
export interface Piece {
  /** The end of the current piece. */
  to: number
  /** Open brackets at `to`. */
  depth: number
  /** 0 outside strings, 1 in one, 2 after the backslash of an escape. */
  inString: number
}

/**
 * The end of the value that begins or continues at `from`: after its quote or bracket, or before the comma,
 * bracket or space that follows a number or literal. -1 if the value does not end within the piece.
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
 * The end of the array item or object member that contains `from`: the next comma, the closing bracket around
 * it, or the end of the bytes. The item is not checked; it may be malformed, such as two values.
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

/** The most bytes of an ASCII character in a string: those of an escape. */
const ESCAPE_BYTES = 6

/**
 * The start of the value of the first member called `name` (ASCII) of an object; -1 if it has no such member.
 */
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

/** A longer text, in bytes, cannot be the name of an agent. */
const MEMBER_BYTES_MAX = 1_024

/**
 * The string of the first member called `name` of an object; undefined if it is missing, no string, or too
 * long.
 */
export function memberText(text: Buffer, name: string): string | undefined {
  const at = memberStart(text, name)
  if (text[at] !== QUOTE) return undefined
  const end = stringEnd(text, at)
  return end - at > MEMBER_BYTES_MAX ? undefined : stringText(text, at, end)
}
