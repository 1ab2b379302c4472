import { isUtf8 } from 'node:buffer'
import { lineEnd } from '../../base/line-splitter.js'
import type { Manifest, Trailer } from '../../strand/strand-export.js'
import { type ChainPlace, placeFor } from '../chain-check.js'
import { runNow } from '../job.js'
import type { ReadLine } from '../record.js'
import { SegmentCheck, type SegmentOptions, type SegmentResult } from '../segment-check.js'
import { jobs } from './jobs.js'
import { LineReader } from './line-reader.js'

/** Some whole lines of an export, in order, without the export's first line. */
export interface Segment {
  manifest: Manifest
  /** Lines, split at LF; text after the last LF is a line if it is not empty. */
  bytes: Uint8Array
  /** Where the records before lead to; undefined where that is not known yet. */
  place: ChainPlace | undefined
  /** The trailer, where it has come before these lines. */
  trailer?: Trailer | undefined
  options: SegmentOptions
}

/**
 * Checks a segment of an export. If its place is not known, it is taken from the first record, so that segments can be
 * checked in parallel and joined afterwards (`ExportCheck`).
 * @returns undefined where the place is not known and the first line does not name one
 */
export function checkSegment({
  manifest,
  bytes,
  place,
  trailer,
  options,
}: Segment): SegmentResult | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const readable = isUtf8(buffer)
  const reader = new LineReader()
  const firstEnd = lineEnd(buffer, 0)
  let begin = place
  if (begin === undefined) {
    const first = readable ? reader.read(buffer, 0, firstEnd) : undefined
    begin = first !== undefined && 'record' in first ? placeFor(first.record) : undefined
    if (begin === undefined) return undefined
  }
  const check = new SegmentCheck(manifest, { place: begin, trailer }, options)
  let after: ChainPlace | undefined
  let end = 0
  for (let start = 0; start < buffer.length; start = end + 1) {
    end = lineEnd(buffer, start)
    // A line that is cut out of UTF-8 at LF is UTF-8 itself.
    if (!readable && !isUtf8(buffer.subarray(start, end))) check.refuse('a line is not UTF-8')
    else take(check, reader.read(buffer, start, end))
    if (check.ended) break
    after ??= check.place
  }
  if (place !== undefined) return check.result()
  return after && { ...check.result(), assumed: { line: buffer.toString('utf8', 0, firstEnd), after } }
}

/** Two generators in a row pass on fewer jobs than one inside the other. */
function take(check: SegmentCheck, line: ReadLine): void {
  const record = line !== undefined && 'record' in line ? line.record : undefined
  const examined = record && runNow(check.examine(record), jobs)
  runNow(check.take(line, examined), jobs)
}
