/*
 * JSON for verifiers (docs/FORMAT.md, JSON): text that parsers could read differently is refused. The server
 * deliberately uses a separate scanner (src/strand/json-scanner.ts), so that one finds the errors of the
 * other. This one needs no Node.
 */

/** Levels of arrays and objects in a body. */
const BODY_DEPTH_MAX = 64

/** A line is a flat object. */
const LINE_DEPTH_MAX = 1

const QUOTE = 0x22
const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const BRACKET_OPEN = 0x5b
const BACKSLASH = 0x5c
const BRACKET_CLOSE = 0x5d
const BRACE_OPEN = 0x7b
const BRACE_CLOSE = 0x7d

const COUNT = /(?:0|[1-9][0-9]{0,15})(?![0-9.eE])/y

// With the u flag, a surrogate only matches outside of a pair.
const LONE_SURROGATE = /\p{Surrogate}/u

/** The members of a line of an export; undefined unless it is a flat object whose numbers are counts. */
export function readLineMembers(text: string): Record<string, unknown> | undefined {
  const value = readStrictly(text, { depthMax: LINE_DEPTH_MAX, countsOnly: true })?.value
  return isMembers(value) && !Array.isArray(value) ? value : undefined
}

/** The value of a body, wrapped because it can be null; undefined if the text is invalid. */
export function readBodyJson(text: string): { value: unknown } | undefined {
  return readStrictly(text, { depthMax: BODY_DEPTH_MAX, countsOnly: false })
}

/**
 * The members of a body that the server wrote; empty unless it is an object whose numbers are counts (seqs
 * and sizes).
 */
export function readCountingBody(text: string): Record<string, unknown> {
  const value = readStrictly(text, { depthMax: BODY_DEPTH_MAX, countsOnly: true })?.value
  return isMembers(value) ? value : {}
}

/** Whether a value is an object or an array. */
export function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

interface Strictness {
  depthMax: number
  /** Whether every number must be an integer in decimal digits from 0 to 2^53-1. */
  countsOnly: boolean
}

function readStrictly(text: string, strictness: Strictness): { value: unknown } | undefined {
  const tokens = scan(text, strictness)
  const read = tokens && parse(text)
  if (tokens === undefined || read === undefined || countMembers(read.value) !== tokens.colons)
    return undefined
  // Only an escape can produce a lone surrogate or NUL, unless the text was not UTF-8.
  const isSuspect = tokens.escapes || text.includes('__proto__') || LONE_SURROGATE.test(text)
  return isSuspect && !isClean(read.value) ? undefined : read
}

function parse(text: string): { value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return { value }
  } catch {
    return undefined
  }
}

/**
 * The lexical pass. A document with a duplicate key has more colons than its value has members. The parser
 * refuses bad grammar.
 */
function scan(
  text: string,
  { depthMax, countsOnly }: Strictness,
): { colons: number; escapes: boolean } | undefined {
  let colons = 0
  let depth = 0
  let escapes = false
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === QUOTE) {
      for (at += 1; at < text.length; at += 1) {
        const within = text.charCodeAt(at)
        if (within === QUOTE) break
        if (within !== BACKSLASH) continue
        escapes = true
        at += 1
      }
    } else if (unit === COLON) colons += 1
    else if (unit === BRACE_OPEN || unit === BRACKET_OPEN) {
      depth += 1
      if (depth > depthMax) return undefined
    } else if (unit === BRACE_CLOSE || unit === BRACKET_CLOSE) depth -= 1
    else if (countsOnly && (unit === MINUS || (unit >= ZERO && unit <= NINE))) {
      COUNT.lastIndex = at
      const digits = COUNT.exec(text)?.[0]
      if (digits === undefined || !Number.isSafeInteger(Number(digits))) return undefined
      at += digits.length - 1
    }
  }
  return { colons, escapes }
}

function countMembers(value: unknown): number {
  if (!isMembers(value)) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) count += countMembers(value[at])
    return count
  }
  for (const key in value) count += 1 + countMembers(value[key])
  return count
}

/** Whether no text has a lone surrogate, and no key contains NUL or is `__proto__`. */
function isClean(value: unknown): boolean {
  if (typeof value === 'string') return !LONE_SURROGATE.test(value)
  if (!isMembers(value)) return true
  const isArray = Array.isArray(value)
  return Object.keys(value).every((key) => {
    const isCleanKey = isArray || (key !== '__proto__' && !key.includes('\0') && !LONE_SURROGATE.test(key))
    return isCleanKey && isClean(value[key])
  })
}
