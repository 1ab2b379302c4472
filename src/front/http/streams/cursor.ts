import { shardsMax } from '../../../settings/threads.js'
import { formatHlc, parseHlc, zeroHlc, type Hlc } from '../../../strand/hlc.js'
import { earlierPlace, laterPlace, type LogPlace } from '../../../strand/log-place.js'

/*
 * Cursors of streams, which are the `id:` of their events. A stream of one agent counts by seq. A stream of many
 * follows the clocks of the shards, so its cursor is one HLC for each shard, joined by points. If a record is not the
 * only one with its HLC in its shard, a hyphen and the first digits of its hash follow.
 *
 * A cursor of another number of shards stays valid after a reshard (docs/adr/0021-resharding.md): records that it had
 * passed are left out. Until everything after it was sent, new cursors carry it along, after a tilde.
 */

/** A seq has 48 bits in the store. */
const SEQ_MAX = 2 ** 48 - 1

/** What a global stream has sent: everything up to one of these places. */
export interface ClockCursor {
  /** By shard. */
  reached: LogPlace[]
  /** Places of cursors made when the directory had another number of shards. */
  seen: LogPlace[][]
}

/** Reads the cursor of one agent's stream; undefined when it is not one. */
export function parseSeqCursor(text: string): number | undefined {
  const seq = /^\d{1,15}$/.test(text) ? Number(text) : SEQ_MAX
  return seq < SEQ_MAX ? seq : undefined
}

/** Reads the cursor of a global stream, for `shards` shards; undefined when it is not one. */
export function parseClockCursor(text: string, shards: number): ClockCursor | undefined {
  const byCount = new Map<number, LogPlace[]>()
  for (const part of text.split('~', shardsMax)) {
    const places = parsePlaces(part)
    if (places === undefined) return undefined
    // Of two cursors with the same number of shards, the later places count.
    const other = byCount.get(places.length)
    byCount.set(
      places.length,
      places.map((place, shard) => laterPlace(place, other?.[shard] ?? zeroHlc)),
    )
  }
  const { [shards]: own } = Object.fromEntries(byCount)
  byCount.delete(shards)
  const seen = [...byCount.values()]
  // A shard may hold records of any old shard, so only what all of these had passed is passed.
  const start = seen.map((places) => places.reduce(earlierPlace)).reduce(laterPlace, zeroHlc)
  const reached = Array.from({ length: shards }, (_none, shard) => laterPlace(own?.[shard] ?? zeroHlc, start))
  return { reached, seen }
}

export function formatClockCursor({ reached, seen }: ClockCursor): string {
  return [reached, ...seen].map((places) => places.map(formatPlace).join('.')).join('~')
}

/** The part of `seen` that can still leave out records: places that every shard has passed cannot. */
export function unpassed(seen: LogPlace[][], reached: readonly LogPlace[]): LogPlace[][] {
  if (seen.length === 0) return seen
  const least = reached.reduce(earlierPlace)
  return seen.filter((places) => {
    const last = places.reduce(laterPlace)
    return laterPlace(least, last) !== least
  })
}

/** The reading right before `moment`: a page that begins after it begins at `moment`. */
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
