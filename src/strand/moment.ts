import { type Hlc, parseHlc } from './hlc.js'

const MS_MAX = 2 ** 48 - 1
const COUNTER_MAX = 0xffff

/**
 * The smallest Unix milliseconds that are accepted, except 0 (March 1973): a smaller number is more likely
 * seconds, a year or a date without hyphens.
 */
const MS_MIN = 100_000_000_000

/** The error text for an invalid moment. */
export const momentExpected =
  `Expected an ISO 8601 time (2026-01-31T12:00:00Z), an HLC or Unix milliseconds, which are 0 or at least ${MS_MIN}: ` +
  'multiply seconds by 1000, and write dates with hyphens'

const isoPattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$/

/**
 * Parses a moment as a lower bound: the first timestamp of its millisecond. A number is Unix milliseconds. A
 * string is an HLC (`0199c5b8f2a4-0003`), an ISO 8601 date or date and time (UTC unless it has an offset), or
 * Unix milliseconds in decimal. Milliseconds other than 0 have at least 12 digits (`MS_MIN`).
 * @returns undefined for anything else
 */
export function momentLower(value: number | string): Hlc | undefined {
  return read(value, 0)
}

/** Parses a moment as an upper bound: the last timestamp of its millisecond. */
export function momentUpper(value: number | string): Hlc | undefined {
  return read(value, COUNTER_MAX)
}

const timestampPattern =
  /^(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))T(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i

/** Whether a text is a date and time with its offset (RFC 3339, 5.6). */
export function isTimestamp(text: string): boolean {
  const date = timestampPattern.exec(text)?.[1]
  return date !== undefined && isDay(date)
}

function read(value: number | string, counter: number): Hlc | undefined {
  if (typeof value === 'number') return value === 0 || value >= MS_MIN ? fromMs(value, counter) : undefined
  if (/^(?:0|[1-9]\d{11,14})$/.test(value)) return fromMs(Number(value), counter)
  return parseHlc(value) ?? fromMs(isoMs(value), counter)
}

function fromMs(ms: number, counter: number): Hlc | undefined {
  return Number.isInteger(ms) && ms >= 0 && ms <= MS_MAX ? { ms, counter } : undefined
}

/**
 * Unix milliseconds of an ISO 8601 text, NaN for any other text. Digits after the millisecond are dropped.
 */
function isoMs(text: string): number {
  const match = isoPattern.exec(text)
  if (match === null) return Number.NaN
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', offset = 'Z'] = match
  const date = `${year}-${month}-${day}`
  if (!isDay(date)) return Number.NaN
  const zone = offset.length === 5 ? `${offset.slice(0, 3)}:${offset.slice(3)}` : offset
  return Date.parse(`${date}T${hour}:${minute}:${second}.${fraction.slice(0, 3).padEnd(3, '0')}${zone}`)
}

/** Whether a date exists; the platform reads 30 February as 1 March. */
function isDay(date: string): boolean {
  const midnightMs = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(midnightMs) && new Date(midnightMs).toISOString().startsWith(date)
}
