import type { Refusal } from '../../../base/errors.js'
import { shardsMax } from '../../../settings/threads.js'
import { formatHlc, parseHlc, zeroHlc, type Hlc } from '../../../strand/hlc.js'
import { momentLower } from '../../../strand/moment.js'
import { earlierPosition, laterPosition, type RecordPosition } from '../../../strand/record-position.js'
import type { StreamRequest } from '../../routes/route.js'
import { badCursor } from './events.js'

/*
 * Cursors of streams, which are the `id:` of their events. The cursor of a stream of one agent is a seq. A
 * stream of many agents follows the clocks of the shards, so its cursor is one HLC per shard, joined by dots.
 * If several records of a shard have the same HLC, a hyphen and the first digits of the record's hash follow.
 *
 * A cursor for another number of shards stays valid after a reshard (docs/adr/0021-resharding.md): records
 * before it are skipped. Until all records after it were sent, new cursors include it after a tilde.
 */

/** A seq has 48 bits in the store. */
const SEQ_MAX = 2 ** 48 - 1

/** What a global stream has sent: everything up to one of these positions. */
export interface ClockCursor {
  reached: RecordPosition[]
  /** Positions of cursors from when the directory had another number of shards. */
  seen: RecordPosition[][]
}

/** Parses the cursor of one agent's stream; undefined if invalid. */
export function parseSeqCursor(text: string): number | undefined {
  const seq = /^\d{1,15}$/.test(text) ? Number(text) : SEQ_MAX
  return seq < SEQ_MAX ? seq : undefined
}

/** Parses the cursor of a global stream for `shards` shards; undefined if invalid. */
export function parseClockCursor(text: string, shards: number): ClockCursor | undefined {
  const byCount = new Map<number, RecordPosition[]>()
  for (const part of text.split('~', shardsMax)) {
    const positions = parsePositions(part)
    if (positions === undefined) return undefined
    // Of two cursors with the same number of shards, the later positions count.
    const earlier = byCount.get(positions.length)
    byCount.set(
      positions.length,
      positions.map((position, shard) => laterPosition(position, earlier?.[shard] ?? zeroHlc)),
    )
  }
  const { [shards]: current } = Object.fromEntries(byCount)
  byCount.delete(shards)
  const seen = [...byCount.values()]
  // A shard may have records of any old shard, so only positions before all of the old ones are known to be
  // sent.
  const start = seen.map((positions) => positions.reduce(earlierPosition)).reduce(laterPosition, zeroHlc)
  const reached = Array.from({ length: shards }, (_none, shard) =>
    laterPosition(current?.[shard] ?? zeroHlc, start),
  )
  return { reached, seen }
}

/** Where a global stream begins; undefined for the current end of the log, 400 for an invalid cursor. */
export function clockStart(
  { cursor, since }: Pick<StreamRequest, 'cursor' | 'since'>,
  shards: number,
): ClockCursor | Refusal | undefined {
  if (cursor !== undefined) return parseClockCursor(cursor, shards) ?? badCursor
  if (since === undefined) return undefined
  const start = justBefore(momentLower(since) ?? zeroHlc)
  return { reached: Array.from({ length: shards }, () => start), seen: [] }
}

export function formatClockCursor({ reached, seen }: ClockCursor): string {
  return [reached, ...seen].map((positions) => positions.map(formatPosition).join('.')).join('~')
}

/** The part of `seen` that still matters: positions that some shard has not passed. */
export function notYetPassed(
  seen: RecordPosition[][],
  reached: readonly RecordPosition[],
): RecordPosition[][] {
  if (seen.length === 0) return seen
  const least = reached.reduce(earlierPosition)
  return seen.filter((positions) => {
    const last = positions.reduce(laterPosition)
    return laterPosition(least, last) !== least
  })
}

/** The clock reading right before `moment`: a page that starts after it starts at `moment`. */
export function justBefore(moment: Hlc): Hlc {
  if (moment.counter > 0) return { ms: moment.ms, counter: moment.counter - 1 }
  return moment.ms > 0 ? { ms: moment.ms - 1, counter: 0xffff } : zeroHlc
}

function parsePositions(text: string): RecordPosition[] | undefined {
  const positions: RecordPosition[] = []
  for (const part of text.split('.')) {
    const [, clock = '', tie] = /^([0-9a-f]{12}-[0-9a-f]{4})(?:-([0-9a-f]{16}))?$/.exec(part) ?? []
    const hlc = parseHlc(clock)
    if (hlc === undefined) return undefined
    positions.push(tie === undefined ? hlc : { ...hlc, tie })
  }
  return positions.length <= shardsMax ? positions : undefined
}

function formatPosition(position: RecordPosition): string {
  return position.tie === undefined ? formatHlc(position) : `${formatHlc(position)}-${position.tie}`
}
