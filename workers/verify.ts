import { type Segment, checkSegment } from '../src/proof/node/segment.js'
import type { SegmentResult } from '../src/proof/segment-check.js'

/** Checks one segment of an export, in a thread of `strandfast verify`. */
export function verifySegment(segment: Segment): SegmentResult | undefined {
  return checkSegment(segment)
}
