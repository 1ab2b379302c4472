import { shardsMax } from '../../settings/shards.js'
import { formatHlc, parseHlc, zeroHlc, type Hlc } from '../../strand/hlc.js'
import { earlierPlace, laterPlace, type LogPlace } from '../../strand/log-place.js'

/*
 * Cursors of streams, which are the `id:` of their events. A stream of one agent counts by seq. A stream of many goes
 * along the clocks of the shards, so its cursor is one HLC a shard, joined by points. Where a record is not the only one of
 * its HLC in its shard, a hyphen and the first digits of its hash follow.
 *
 * A cursor of another number of shards stays good after the move (docs/adr/0021-resharding.md): what it had seen is left
 * out. Until everything behind it was told, cursors carry it along, behind a tilde.
 */

/** Places in a strand have 48 bits in the store. */
const SEQ_MAX = 2 ** 48 - 1

/** What a global stream has told: everything up to one of these. */
export interface ClockCursor {
  /** By shard. */
  reached: LogPlace[]
  /** By the shards of other numbers of them, which the directory had before. */
  seen: LogPlace[][]
}

/** The cursor of one agent's stream; undefined when it is none. */
export function parseSeqCursor(text: string): number | undefined {
  const seq = /^\d{1,15}$/.test(text) ? Number(text) : SEQ_MAX
  return seq < SEQ_MAX ? seq : undefined
}

/** The cursor of a global stream, for `shards` shards; undefined when it is none. */
export function parseClockCursor(text: string, shards: number): ClockCursor | undefined {
  const byCount = new Map<number, LogPlace[]>()
  for (const part of text.split('~', shardsMax)) {
    const places = parsePlaces(part)
    if (places === undefined) return undefined
    // Of two places by the same shards the later one holds.
    const other = byCount.get(places.length)
    byCount.set(
      places.length,
      places.map((place, shard) => laterPlace(place, other?.[shard] ?? zeroHlc)),
    )
  }
  const { [shards]: own } = Object.fromEntries(byCount)
  byCount.delete(shards)
  const seen = [...byCount.values()]
  // A shard may hold what was in any other, so what every one of those had passed is passed.
  const start = seen.map((places) => places.reduce(earlierPlace)).reduce(laterPlace, zeroHlc)
  const reached = Array.from({ length: shards }, (_none, shard) => laterPlace(own?.[shard] ?? zeroHlc, start))
  return { reached, seen }
}

export function formatClockCursor({ reached, seen }: ClockCursor): string {
  return [reached, ...seen].map((places) => places.map(formatPlace).join('.')).join('~')
}

/** What of `seen` can still leave something out: a place that every shard has passed cannot. */
export function unpassed(seen: LogPlace[][], reached: readonly LogPlace[]): LogPlace[][] {
  if (seen.length === 0) return seen
  const least = reached.reduce(earlierPlace)
  return seen.filter((places) => {
    const last = places.reduce(laterPlace)
    return laterPlace(least, last) !== least
  })
}

/** The reading right before `moment`: what a page that begins behind it shows begins at `moment`. */
export function before(moment: Hlc): Hlc {
  if (moment.counter > 0) return { ms: moment.ms, counter: moment.counter - 1 }
  return moment.ms > 0 ? { ms: moment.ms - 1, counter: 0xffff } : zeroHlc
}

function parsePlaces(text: string): LogPlace[] | undefined {
  const places: LogPlace[] = []
  for (const part of text.split('.')) {
    const [, clock = '', tie] = /^([0-9a-f]{12}-[0-9a-f]{4})(?:-([0-9a-f]{16}))?$/.exec(part) ?? []
    const hlc = parseHlc(clock)
    if (hlc === undefined) return undefined
    places.push(tie === undefined ? hlc : { ...hlc, tie })
  }
  return places.length <= shardsMax ? places : undefined
}

function formatPlace(place: LogPlace): string {
  return place.tie === undefined ? formatHlc(place) : `${formatHlc(place)}-${place.tie}`
}
