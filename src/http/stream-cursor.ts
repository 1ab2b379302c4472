import { zeroHlc, formatHlc, parseHlc, type Hlc } from '../strand/hlc.js'

/*
 * Cursors of streams, which are the `id:` of their events. A stream of one agent counts by seq. A stream of many goes
 * along the clocks of the shards, so its cursor is one HLC a shard, joined by points.
 */

/** Places in a strand have 48 bits in the store. */
const SEQ_MAX = 2 ** 48 - 1

/** The cursor of one agent's stream; undefined when it is none. */
export function parseSeqCursor(text: string): number | undefined {
  const seq = /^\d{1,15}$/.test(text) ? Number(text) : SEQ_MAX
  return seq < SEQ_MAX ? seq : undefined
}

/** The cursor of a global stream over `shards` shards; undefined when it is none of this server's. */
export function parseClockCursor(text: string, shards: number): Hlc[] | undefined {
  const clocks: Hlc[] = []
  for (const part of text.split('.')) {
    const clock = parseHlc(part)
    if (clock === undefined) return undefined
    clocks.push(clock)
  }
  return clocks.length === shards ? clocks : undefined
}

export function formatClockCursor(clocks: readonly Hlc[]): string {
  return clocks.map(formatHlc).join('.')
}

/** The reading right before `moment`: what a page that begins behind it shows begins at `moment`. */
export function before(moment: Hlc): Hlc {
  if (moment.counter > 0) return { ms: moment.ms, counter: moment.counter - 1 }
  return moment.ms > 0 ? { ms: moment.ms - 1, counter: 0xffff } : zeroHlc
}
