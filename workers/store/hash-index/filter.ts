import { FILTER_LINE_BYTES, PREFIX_LIMIT } from './format.js'

const LINE_WORDS = FILTER_LINE_BYTES / 4

/*
 * A blocked Bloom filter (Putze, Sanders, Singler 2007): the top bits of the prefix choose one 64-byte line,
 * in which four bits are set. The line rises with the prefix, so a run written in order fills its filter from
 * front to back, and a merge can write finished segments before it ends.
 *
 * Every word read is within the filter. `?? 0` satisfies the compiler at no cost; an assertion made a probe
 * 8% slower.
 */

/** The line of `prefix` among `lines`; rises with the prefix. */
export function filterLine(prefix: number, lines: number): number {
  return (prefix * (lines / PREFIX_LIMIT)) | 0
}

/** Adds `prefix` to a filter, whose length is a multiple of the line length. */
export function addToFilter(filter: Uint32Array, prefix: number): void {
  const base = filterLine(prefix, filter.length / LINE_WORDS) * LINE_WORDS
  const low = prefix >>> 0
  const mixed = Math.imul(low ^ (low >>> 15), 0x85ebca6b)
  setBit(filter, base, low & 511)
  setBit(filter, base, (low >>> 9) & 511)
  setBit(filter, base, (low >>> 18) & 511)
  setBit(filter, base, mixed >>> 23)
}

function setBit(filter: Uint32Array, base: number, bit: number): void {
  const at = base + (bit >>> 5)
  filter[at] = (filter[at] ?? 0) | (1 << (bit & 31))
}

/** Whether `prefix` may have been added. `false` is certain; `true` is wrong about once in 70. */
export function mayContain(filter: Uint32Array, prefix: number): boolean {
  const base = filterLine(prefix, filter.length / LINE_WORDS) * LINE_WORDS
  const low = prefix >>> 0
  if (!hasBit(filter, base, low & 511)) return false
  if (!hasBit(filter, base, (low >>> 9) & 511)) return false
  if (!hasBit(filter, base, (low >>> 18) & 511)) return false
  const mixed = Math.imul(low ^ (low >>> 15), 0x85ebca6b)
  return hasBit(filter, base, mixed >>> 23)
}

function hasBit(filter: Uint32Array, base: number, bit: number): boolean {
  return (((filter[base + (bit >>> 5)] ?? 0) >>> (bit & 31)) & 1) === 1
}
