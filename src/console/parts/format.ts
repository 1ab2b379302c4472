const counts = new Intl.NumberFormat('en')
const DIGITS_SHOWN = 8
const LINE_CHARACTERS = 240

/** A number with its thousands apart. */
export function countText(count: number): string {
  return counts.format(count)
}

/** `1 record`, `2 records`. */
export function counted(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** Bytes in the unit that keeps the number short. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let amount = bytes
  let unit = 0
  for (; amount >= 1_000 && unit < units.length - 1; unit += 1) amount /= 1_000
  return `${unit === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${units[unit]}`
}

/** Unix milliseconds of a hybrid logical clock, whose first 12 hex digits they are (docs/FORMAT.md, Header). */
export function msOf(hlc: string): number {
  return Number.parseInt(hlc.slice(0, 12), 16)
}

/** A moment in the zone of the reader, to the second. */
export function timeText(ms: number): string {
  const at = new Date(ms)
  const two = (number: number): string => String(number).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** The moment of a field of type datetime-local; undefined for an empty one. */
export function msOfField(text: string): number | undefined {
  const ms = new Date(text).getTime()
  return text === '' || Number.isNaN(ms) ? undefined : ms
}

/** A moment as the server reads it, whatever its year: milliseconds before 1973 are taken for seconds, and refused. */
export function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}

/** How long something takes, in the unit that keeps it short. */
export function durationText(ms: number): string {
  const units = { day: 86_400_000, hour: 3_600_000, minute: 60_000, second: 1_000 }
  const [unit, unitMs] = Object.entries(units).find(([, size]) => ms >= size) ?? ['second', units.second]
  const amount = Math.round((ms / unitMs) * 10) / 10
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`
}

/** A moment exactly, in UTC. */
export function exactTimeText(ms: number): string {
  const at = new Date(ms)
  return Number.isNaN(at.getTime()) ? String(ms) : at.toISOString()
}

/** The beginning of a hash or key, enough to tell it from its neighbours. */
export function shortHash(hash: string): string {
  return `${hash.slice(0, DIGITS_SHOWN)}…`
}

/** The last digits of a key, by which people name it. */
export function keyDigits(key: string): string {
  return key.slice(-DIGITS_SHOWN)
}

/** A text cut to what a line can show. */
export function lineText(text: string): string {
  return text.length > LINE_CHARACTERS ? `${text.slice(0, LINE_CHARACTERS)}…` : text
}
