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

/** A time in the browser's time zone, to the second. */
export function timeText(ms: number): string {
  const at = new Date(ms)
  const two = (number: number): string => String(number).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** The Unix milliseconds of a datetime-local field; undefined if the field is empty. */
export function msOfField(text: string): number | undefined {
  const ms = new Date(text).getTime()
  return text === '' || Number.isNaN(ms) ? undefined : ms
}

/** The text of a datetime-local field for a time, to the second; the inverse of `msOfField`. */
export function fieldOfMs(ms: number): string {
  const offsetMs = new Date(ms).getTimezoneOffset() * 60_000
  return new Date(ms - offsetMs).toISOString().slice(0, 19)
}

/** A time as ISO 8601. The server would read Unix milliseconds before 1973 as seconds, and refuse them. */
export function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}

/** A duration in the largest unit of which it has at least one. */
export function durationText(ms: number): string {
  const units = { day: 86_400_000, hour: 3_600_000, minute: 60_000, second: 1_000 }
  const [unit, unitMs] = Object.entries(units).find(([, size]) => ms >= size) ?? ['second', units.second]
  const amount = Math.round((ms / unitMs) * 10) / 10
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`
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
