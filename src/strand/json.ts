import { BRACE_CLOSE, BRACE_OPEN, BRACKET_CLOSE, BRACKET_OPEN, COLON, MINUS, QUOTE } from '../base/ascii.js'
import { isAscii, isUtf8 } from 'node:buffer'
import canonicalize from 'canonicalize'
import { assert } from '../base/assert.js'
import { asBuffer } from '../base/bytes.js'
import { type Refusal, refuse } from '../base/errors.js'
import { isDigit, numberEnd, spaceEnd, type Span, stringEnd } from './json-scanner.js'

/**
 * Parses JSON as strictly as docs/FORMAT.md, Body, requires: no duplicate keys, lone surrogates, `__proto__`
 * keys, NUL in keys, bytes that are not UTF-8, infinite numbers, integer literals beyond ±(2^53-1), nor more
 * than `depthMax` levels of arrays and objects.
 *
 * The platform's parser checks the grammar. A pass over the bytes counts the colons outside strings: a
 * document with a duplicate key has more colons than its value has members.
 *
 * A number with a fraction or an exponent becomes the nearest double: 9007199254740993.0 is 9007199254740992,
 * and 1e-400 is 0 (docs/FORMAT.md, Body). Its canonical form can be an integer beyond ±(2^53-1), which is
 * only accepted with `canonical`; the caller must then check that the text is canonical.
 *
 * With `largeAsText`, an integer literal beyond ±(2^53-1) is read as a string of its digits. With `anyText`,
 * lone surrogates, `__proto__` keys and NUL in keys are accepted; the caller must then check what it uses.
 * @returns the value, or `validation_failed`
 */
export function readJson(
  bytes: Uint8Array,
  depthMax: number,
  {
    canonical = false,
    largeAsText = false,
    anyText = false,
  }: { canonical?: boolean; largeAsText?: boolean; anyText?: boolean } = {},
): { value: unknown } | Refusal {
  const buffer = asBuffer(bytes)
  const ascii = isAscii(buffer)
  if (!ascii && !isUtf8(buffer)) return isUtf16(buffer) ? utf16Given : invalid('Expected UTF-8')
  const tokens = scan(buffer, { depthMax, canonical, largeAsText })
  if (typeof tokens === 'string') return invalid(tokens)
  const text = quoted(buffer, tokens.large, ascii ? 'latin1' : 'utf8')
  const parsed = parse(text)
  if (parsed === undefined) return isUtf16(buffer) ? utf16Given : malformedJson
  const members = countMembers(parsed.value)
  if (Number.isNaN(members)) return invalid('Expected every number to be finite as a double')
  if (members !== tokens.colons) return invalid('Expected no duplicate keys')
  // UTF-8 has no lone surrogates, and raw NUL is not JSON, so only an escape can produce either.
  if (!anyText && (text.includes('\\') || text.includes('__proto__'))) {
    const fault = textFault(parsed.value)
    if (fault !== undefined) return invalid(fault)
  }
  return parsed
}

/**
 * Why bytes are not JSON of at most `depthMax` levels, if they are not. Checks only the grammar: strings may
 * have invalid UTF-8, and `readJson` can refuse values in it.
 */
export function grammarFault(bytes: Buffer, depthMax: number): Refusal | undefined {
  const tokens = scan(bytes, { depthMax, canonical: true, largeAsText: false })
  if (typeof tokens === 'string') return invalid(tokens)
  if (parse(bytes.toString('latin1')) !== undefined) return undefined
  return isUtf16(bytes) ? utf16Given : malformedJson
}

/**
 * The canonical form of a JSON value (RFC 8785), whose UTF-8 bytes are stored, hashed and exported.
 *
 * RFC 8785 is JSON.stringify with keys sorted by UTF-16 code units. A value with unsorted keys is copied in
 * order; if the platform enumerates the copy in a different order (keys such as "10"), the `canonicalize`
 * package is used.
 * @throws Error for a value outside of JSON: a number that is not finite, `undefined`, a `__proto__` key
 */
export function canonicalJson(value: unknown): string {
  const ordered = isOrdered(value) ? value : orderedCopy(value)
  const text = ordered === value || isOrdered(ordered) ? JSON.stringify(ordered) : canonicalize(value)
  assert(typeof text === 'string', 'only a JSON value has a canonical form')
  return text
}

/** The text is not JSON; `locateFault` (json-fault.ts) adds the position. */
export const malformedJson: Refusal = invalid('Expected one JSON value')

/** The text is UTF-16, but JSON between systems is UTF-8 (RFC 8259, 8.1). */
export const utf16Given: Refusal = invalid('Expected UTF-8, got UTF-16')

/**
 * Whether malformed JSON looks like UTF-16: it begins with a byte order mark, or one of its first two bytes
 * is zero.
 */
export function isUtf16(bytes: Uint8Array): boolean {
  const [first, second] = bytes
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
  return isMarked || first === 0 || second === 0
}

function invalid(detail: string): Refusal {
  return refuse('validation_failed', detail)
}

function parse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** An integer with at most this many digits is within ±(2^53-1), whatever its value. */
const SAFE_DIGITS = 15

interface Tokens {
  colons: number
  /** The integers to read as strings. */
  large: Span[]
}

/** The lexical pass. The parser refuses bad grammar; this pass only must not loop on it. */
function scan(
  bytes: Buffer,
  { depthMax, canonical, largeAsText }: { depthMax: number; canonical: boolean; largeAsText: boolean },
): Tokens | string {
  const large: Span[] = []
  let colons = 0
  let depth = 0
  let at = 0
  while (at < bytes.length) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      at = stringEnd(bytes, at)
      continue
    }
    if (byte === MINUS || isDigit(byte)) {
      const from = at
      at = numberEnd(bytes, from + 1)
      if (at - from <= SAFE_DIGITS || canonical) continue
      const literal = bytes.toString('latin1', from, at)
      if (!isUnsafeInteger(literal)) continue
      if (!largeAsText || !isWritten(literal) || bytes[spaceEnd(bytes, at)] === COLON)
        return 'Expected integers within -(2^53-1) and 2^53-1: send larger ones as strings'
      large.push({ from, to: at })
      continue
    }
    if (byte === COLON) colons += 1
    else if (byte === BRACE_OPEN || byte === BRACKET_OPEN) {
      depth += 1
      if (depth > depthMax) return `Expected at most ${depthMax} levels of nesting`
    } else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) depth -= 1
    at += 1
  }
  return { colons, large }
}

/**
 * Puts quotes around the large integers. Invalid JSON stays invalid, because none of the integers is a key.
 */
function quoted(bytes: Buffer, large: readonly Span[], encoding: 'latin1' | 'utf8'): string {
  let text = ''
  let at = 0
  for (const { from, to } of large) {
    text += `${bytes.toString(encoding, at, from)}"${bytes.toString(encoding, from, to)}"`
    at = to
  }
  return text + bytes.toString(encoding, at)
}

/** Whether an integer has no leading zeros, which JSON forbids. */
function isWritten(literal: string): boolean {
  return /^-?[1-9]/.test(literal)
}

/** An integer above 2^53-1 becomes a double of at least 2^53, so that checking the double suffices. */
function isUnsafeInteger(literal: string): boolean {
  return /^-?\d+$/.test(literal) && !Number.isSafeInteger(Number(literal))
}

function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** The number of members of all objects in the value, or NaN if a number is not finite. */
function countMembers(value: unknown): number {
  if (typeof value === 'number') return Number.isFinite(value) ? 0 : Number.NaN
  if (!isMembers(value)) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) count += countMembers(value[at])
    return count
  }
  for (const key in value) count += 1 + countMembers(value[key])
  return count
}

// With the u flag, a surrogate only matches outside of a pair.
const loneSurrogate = /\p{Surrogate}/u

function textFault(value: unknown): string | undefined {
  if (typeof value === 'string') {
    return loneSurrogate.test(value) ? 'Expected strings without lone surrogates' : undefined
  }
  if (!isMembers(value)) return undefined
  const isArray = Array.isArray(value)
  for (const key of Object.keys(value)) {
    const fault = (isArray ? undefined : keyFault(key)) ?? textFault(value[key])
    if (fault !== undefined) return fault
  }
  return undefined
}

function keyFault(key: string): string | undefined {
  if (key === '__proto__') return 'Expected no key named __proto__'
  if (key.includes('\0')) return 'Expected keys without NUL'
  return loneSurrogate.test(key) ? 'Expected keys without lone surrogates' : undefined
}

/** Whether every object enumerates its keys in the order of their UTF-16 code units. */
function isOrdered(value: unknown): boolean {
  if (typeof value === 'number') assert(Number.isFinite(value), 'a number of a JSON value is finite')
  if (!isMembers(value)) return true
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) if (!isOrdered(value[at])) return false
    return true
  }
  let before: string | undefined
  for (const key in value) {
    if (before !== undefined && before >= key) return false
    before = key
    if (!isOrdered(value[key])) return false
  }
  return true
}

function orderedCopy(value: unknown): unknown {
  if (!isMembers(value)) return value
  if (Array.isArray(value)) return value.map(orderedCopy)
  const copy: Record<string, unknown> = {}
  for (const key of sortKeys(Object.keys(value))) {
    // Assigning this key would set the prototype of the copy and lose the member.
    assert(key !== '__proto__', 'no member of a JSON value is named __proto__')
    copy[key] = orderedCopy(value[key])
  }
  return copy
}

/** Up to this many keys, insertion sort is faster than the platform's sort. */
const FEW_KEYS = 16

/** Sorts keys by their UTF-16 code units, in place. */
function sortKeys(keys: string[]): string[] {
  if (keys.length > FEW_KEYS) return keys.sort()
  for (let next = 1; next < keys.length; next += 1) {
    const key = keys[next]
    assert(key !== undefined, 'the index is within the list')
    let at = next
    for (; at > 0; at -= 1) {
      const before = keys[at - 1]
      if (before === undefined || before <= key) break
      keys[at] = before
    }
    keys[at] = key
  }
  return keys
}
