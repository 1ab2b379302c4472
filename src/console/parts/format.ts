import { signal } from '@preact/signals'
import { persistentStore } from '../storage.js'

const counts = new Intl.NumberFormat('en')
const DIGITS_SHOWN = 8
const LINE_CHARACTERS = 240

/** A number with separated thousands. */
export function countText(count: number): string {
  return counts.format(count)
}

/** `1 record`, `2 records`. */
export function counted(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`
}

/**
 * The number of a strand's records: `2,003 records and the genesis`. Record 0, the genesis, is counted apart,
 * as the server does in `record_count`.
 */
export function recordsText(lastSeq: number, firstSeq = 0): string {
  return firstSeq > 0
    ? counted(lastSeq - firstSeq + 1, 'record')
    : `${counted(lastSeq, 'record')} and the genesis`
}

/** A size in the largest unit of which it has at least one. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let amount = bytes
  let unit = 0
  for (; amount >= 1_000 && unit < units.length - 1; unit += 1) amount /= 1_000
  return `${unit === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${units[unit]}`
}

/**
 * The Unix milliseconds of a hybrid logical clock, stored in its first 12 hex digits (docs/FORMAT.md,
 * Header).
 */
export function msOf(hlc: string): number {
  return Number.parseInt(hlc.slice(0, 12), 16)
}

/** A time in the chosen time zone, to the millisecond: `2026-11-27 15:33:41.123 +01:00`. */
export function timeText(ms: number): string {
  const offset = offsetOf(ms)
  if (Number.isNaN(offset)) return String(ms)
  const sign = offset < 0 ? '-' : '+'
  const zone = isUtc.value ? 'UTC' : `${sign}${isoOf(Math.abs(offset)).slice(11, 16)}`
  return `${isoOf(ms + offset)
    .slice(0, -1)
    .replace('T', ' ')} ${zone}`
}

/** The hours, minutes and seconds of a time in the chosen time zone. */
export function clockText(ms: number): string {
  return isoOf(ms + offsetOf(ms)).slice(11, 19)
}

/** The name of the chosen time zone. */
export function timeZoneText(): string {
  return isUtc.value ? 'UTC' : 'local'
}

/** The Unix milliseconds of a datetime-local field, which means the chosen time zone; undefined if it is empty. */
export function msOfField(text: string): number | undefined {
  return msOfIso(isUtc.value ? `${text}Z` : text)
}

/** The text of a datetime-local field for a time, to the second; the inverse of `msOfField`. */
export function fieldOfMs(ms: number): string {
  return isoOf(ms + offsetOf(ms)).slice(0, 19)
}

/** The milliseconds by which the chosen time zone is ahead of UTC at a time. */
function offsetOf(ms: number): number {
  return new Date(ms).getTimezoneOffset() * (isUtc.value ? 0 : -60_000)
}

/** A time as ISO 8601. The server would read Unix milliseconds before 1973 as seconds, and refuse them. */
export function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}

/** The times that every time zone writes with a year of four digits. */
const TIME_MIN_MS = Date.parse('0001-01-02T00:00Z')
const TIME_MAX_MS = Date.parse('9999-12-31T00:00Z')

/** The Unix milliseconds of an ISO 8601 time of the years 1 to 9999, as in addresses; undefined for any other text. */
export function msOfIso(text: string): number | undefined {
  const ms = Date.parse(text)
  return ms >= TIME_MIN_MS && ms <= TIME_MAX_MS ? ms : undefined
}

/** A time to the millisecond, in UTC. */
export function exactTimeText(ms: number): string {
  const at = new Date(ms)
  return Number.isNaN(at.getTime()) ? String(ms) : at.toISOString()
}

/** The first digits of a hash or key. */
export function shortHash(hash: string): string {
  return `${hash.slice(0, DIGITS_SHOWN)}…`
}

/** The last digits of a key, which identify it in the console. */
export function keyDigits(key: string): string {
  return key.slice(-DIGITS_SHOWN)
}

/** A text shortened to the length of a line. */
export function lineText(text: string): string {
  return text.length > LINE_CHARACTERS ? `${text.slice(0, LINE_CHARACTERS)}…` : text
}

const NAME = 'times'

/** Whether the console shows and reads times in UTC; otherwise in the browser's time zone. */
export const isUtc = signal(persistentStore.read(NAME) === 'utc')

/** Chooses the time zone, also for later visits. */
export function showUtc(isOn: boolean): void {
  isUtc.value = isOn
  persistentStore.write(NAME, isOn ? 'utc' : undefined)
}
