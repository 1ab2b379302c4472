import type { FrontFigures } from '../front/metrics/request-counts.js'
import type { FrontParts } from './parts.js'

/** What one front has counted, for metrics. */
export function figuresOf(front: number, { counts, streams, shards }: FrontParts): FrontFigures {
  return { front, ...counts.figures, streams: streams.count, cache: shards.cacheFigures(), silentMs: 0 }
}
