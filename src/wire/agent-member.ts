import {
  BACKSLASH,
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  COLON,
  COMMA,
  QUOTE,
} from '../base/ascii.js'

/**
 * The member `agent` of the object that a line should be: the text between the quotes, with escapes decoded; undefined
 * where there is none. The rest of the line is not checked. An exception for each of a million lines that are not JSON
 * would take seconds, and so would parsing lines that the shard parses again.
 */
export function agentMember(line: Buffer): string | undefined {
  let at = pastSpace(line, 0)
  if (line[at++] !== BRACE_OPEN) return undefined
  let depth = 1
  let atKey = true
  while (at < line.length && depth > 0) {
    const byte = line[at]
    if (byte === QUOTE) {
      const end = stringEnd(line, at)
      const after = pastSpace(line, end)
      if (depth === 1 && atKey && line[after] === COLON && stringOf(line, at, end) === 'agent') {
        const value = pastSpace(line, after + 1)
        return line[value] === QUOTE ? stringOf(line, value, stringEnd(line, value)) : undefined
      }
      at = end
      continue
    }
    if (byte === BRACE_OPEN || byte === BRACKET_OPEN) depth++
    else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) depth--
    else if (depth === 1 && byte === COMMA) atKey = true
    else if (depth === 1 && byte === COLON) atKey = false
    at++
  }
  return undefined
}

/** Where the string that begins at `start` has ended. */
function stringEnd(line: Buffer, start: number): number {
  let at = start + 1
  while (at < line.length && line[at] !== QUOTE) at += line[at] === BACKSLASH ? 2 : 1
  return at + 1
}

/** A longer string, in bytes, is neither the name of a member nor that of an agent. */
const STRING_BYTES_MAX = 1_024

function stringOf(line: Buffer, start: number, end: number): string | undefined {
  if (end > line.length || end - start > STRING_BYTES_MAX) return undefined
  const text = line.toString('utf8', start + 1, end - 1)
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    // Not a JSON string, so not a name either.
    return undefined
  }
}

function pastSpace(line: Buffer, from: number): number {
  let at = from
  while (isSpace(line[at])) at++
  return at
}

/** White space of JSON, except the line feed. */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d
}
