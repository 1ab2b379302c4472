import {
  BACKSLASH,
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  COLON,
  COMMA,
  LINE_FEED,
  MINUS,
  QUOTE,
  SPACE,
} from '../base/ascii.js'
import { asBuffer } from '../base/bytes.js'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits/limits.js'
import { malformedJson } from './json.js'
import { isDigit, numberEnd, spaceEnd } from './json-scanner.js'

/**
 * Adds the line and column of the fault to the refusal of malformed JSON (`readJson`). Any other refusal, or
 * that of a body of more than `limits.jsonFaultBytesMax`, is returned unchanged. Valid bodies pay nothing for
 * this search.
 * @param body the refused body, or the whole of which it was a part
 */
export function locateFault(body: Uint8Array, refusal: Refusal): Refusal {
  if (refusal !== malformedJson || body.length > limits.jsonFaultBytesMax) return refusal
  const bytes = asBuffer(body)
  const fault = firstFault(bytes)
  if (fault === undefined) return refusal
  const { line, column } = positionOf(bytes, fault.at)
  const end = fault.at >= bytes.length ? ', but the text ends there' : ''
  return refuse(
    refusal.code,
    `${refusal.detail}: at line ${line}, column ${column} there should be ${fault.needs}${end}`,
  )
}

interface JsonFault {
  /** Byte offset of the first fault. */
  at: number
  /** The expected token, in words. */
  needs: string
}

/** The tokens that RFC 8259 allows next, with their words. */
const needs = {
  value: 'a value',
  'first item': 'a value or ]',
  'first name': 'a name in double quotes or }',
  name: 'a name in double quotes',
  colon: 'a colon',
  'end of item': 'a comma or ]',
  'end of member': 'a comma or }',
  end: 'the end of the text',
} as const

/** Finds the first fault; undefined for valid JSON. Time and memory are linear in the length of the text. */
function firstFault(bytes: Buffer): JsonFault | undefined {
  /** The closing brackets that are still missing. */
  const open: number[] = []
  let next: keyof typeof needs = 'value'
  for (let at = 0; ;) {
    at = spaceEnd(bytes, at)
    const byte = bytes[at]
    if (byte === undefined) return next === 'end' ? undefined : { at, needs: needs[next] }
    if (byte === open.at(-1) && closes.has(next)) {
      open.pop()
      at += 1
      next = afterValue(open)
    } else if (next === 'value' || next === 'first item') {
      if (byte === BRACE_OPEN || byte === BRACKET_OPEN) {
        open.push(byte === BRACE_OPEN ? BRACE_CLOSE : BRACKET_CLOSE)
        next = byte === BRACE_OPEN ? 'first name' : 'first item'
        at += 1
      } else {
        const end = scalarEnd(bytes, at, needs[next])
        if (typeof end !== 'number') return end
        at = end
        next = afterValue(open)
      }
    } else if ((next === 'name' || next === 'first name') && byte === QUOTE) {
      const end = stringEnd(bytes, at)
      if (typeof end !== 'number') return end
      at = end
      next = 'colon'
    } else {
      const then: Separator | undefined = separated[next]
      if (then?.byte !== byte) return { at, needs: needs[next] }
      at += 1
      next = then.next
    }
  }
}

/** The states in which a closing bracket is allowed. */
const closes: ReadonlySet<string> = new Set(['first item', 'first name', 'end of item', 'end of member'])

interface Separator {
  byte: number
  next: keyof typeof needs
}

const separated: Readonly<Record<string, Separator>> = {
  colon: { byte: COLON, next: 'value' },
  'end of item': { byte: COMMA, next: 'value' },
  'end of member': { byte: COMMA, next: 'name' },
}

function afterValue(open: readonly number[]): keyof typeof needs {
  const closing = open.at(-1)
  if (closing === undefined) return 'end'
  return closing === BRACE_CLOSE ? 'end of member' : 'end of item'
}

const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text))
const LOWER_U = 0x75
const escaped: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrtu'))
const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const HEX_DIGITS = 4

/** The end of the string, number or literal that begins at `start`. */
function scalarEnd(bytes: Buffer, start: number, wanted: string): number | JsonFault {
  const byte = bytes[start]
  if (byte === QUOTE) return stringEnd(bytes, start)
  if (byte === MINUS || isDigit(byte)) {
    const end = numberEnd(bytes, start + 1)
    if (numberPattern.test(bytes.toString('latin1', start, end))) return end
    return { at: start, needs: 'a valid JSON number' }
  }
  const literal = literals.find((one) => bytes.subarray(start, start + one.length).equals(one))
  return literal === undefined ? { at: start, needs: wanted } : start + literal.length
}

/** The offset after the string that begins at `start`. */
function stringEnd(bytes: Buffer, start: number): number | JsonFault {
  for (let at = start + 1; ; at += 1) {
    const byte = bytes[at]
    if (byte === undefined) return { at, needs: 'a closing quote' }
    if (byte === QUOTE) return at + 1
    if (byte < SPACE) return { at, needs: 'an escape such as \\n in place of a control character' }
    if (byte !== BACKSLASH) continue
    at += 1
    const kind = bytes[at]
    if (kind === undefined || !escaped.has(kind))
      return { at, needs: 'one of "\\/bfnrtu after the backslash' }
    if (kind !== LOWER_U) continue
    const digits = bytes.toString('latin1', at + 1, at + 1 + HEX_DIGITS)
    if (!/^[\dA-Fa-f]{4}$/.test(digits)) return { at: at + 1, needs: 'four hex digits' }
    at += HEX_DIGITS
  }
}

/** Line and column of an offset, both from 1. Columns count characters (code points). */
function positionOf(bytes: Buffer, at: number): { line: number; column: number } {
  let line = 1
  let column = 1
  for (const byte of bytes.subarray(0, at)) {
    if (byte === LINE_FEED) {
      line += 1
      column = 1
    } else if (!isContinuation(byte)) column += 1
  }
  return { line, column }
}

/** Whether a byte is a continuation byte of UTF-8. */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}
