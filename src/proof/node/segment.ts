import { isUtf8 } from 'node:buffer'
import { lineEnd } from '../../base/line-splitter.js'
import type { Manifest, Trailer } from '../../strand/strand-export.js'
import { type ChainPlace, assumedPlace } from '../chain-check.js'
import { runSync } from '../job.js'
import type { ReadLine } from '../record.js'
import { SegmentCheck, type SegmentOptions, type SegmentResult } from '../segment-check.js'
import { jobs } from './jobs.js'
import { LineReader } from './line-reader.js'

/** Consecutive whole lines of an export, without its first line. */
export interface Segment {
  manifest: Manifest
  /** Lines, split at LF; text after the last LF is a line if it is not empty. */
  bytes: Uint8Array
  /** The state of the chain before the segment; undefined if it is not known yet. */
  place: ChainPlace | undefined
  /** The trailer, if it precedes these lines. */
  trailer?: Trailer | undefined
  options: SegmentOptions
}

/**
 * Checks a segment of an export. If the state before it is unknown, the state is assumed from the first
 * record, so that segments can be checked in parallel and joined afterwards (`ExportCheck`).
 * @returns undefined if the state is unknown and the first line is not a record
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
    begin = first !== undefined && 'record' in first ? assumedPlace(first.record) : undefined
    if (begin === undefined) return undefined
  }
  const check = new SegmentCheck(manifest, { place: begin, trailer }, options)
  let after: ChainPlace | undefined
  let end = 0
  for (let start = 0; start < buffer.length; start = end + 1) {
    end = lineEnd(buffer, start)
    // If all bytes are UTF-8, so is each line.
    if (!readable && !isUtf8(buffer.subarray(start, end))) check.refuse('a line is not UTF-8')
    else take(check, reader.read(buffer, start, end))
    if (check.ended) break
    after ??= check.place
  }
  if (place !== undefined) return check.result()
  return after && { ...check.result(), assumed: { line: buffer.toString('utf8', 0, firstEnd), after } }
}

/** Runs two generators one after another, which passes on fewer jobs than nesting them. */
function take(check: SegmentCheck, line: ReadLine): void {
  const record = line !== undefined && 'record' in line ? line.record : undefined
  const examined = record && runSync(check.examine(record), jobs)
  runSync(check.take(line, examined), jobs)
}
