import { zeroHlc, type Hlc } from '../../../src/strand/hlc.js'
import type { Environment } from '../environment.js'

/*
 * Rows of the table `meta`. Two more are about one store alone, and stay where they are when rows move: up to where it has its log
 * (workers/store/log/position.ts), and its own runs (workers/store/tables/strand-runs.ts).
 */

const floorKey = Buffer.from('clock-floor')
const REPORTED = 'last-told '

/**
 * The reading after which the shard's clock starts, whatever its last record is; zero if there is none. Strands that
 * were moved here had the clocks of other shards, whose readings are in cursors of streams: a new record must not look
 * as if a cursor had passed it (docs/adr/0021-resharding.md). Imported records, which the shard's log does not hold,
 * can be ahead of it, and what is written next must come later all the same (docs/adr/0022-import.md).
 */
export function readClockFloor({ meta }: Environment): Hlc {
  const value = meta.get(floorKey)
  return value === undefined ? zeroHlc : { ms: value.readUIntBE(0, 6), counter: value.readUInt16BE(6) }
}

/** Keeps the reading, within the caller's transaction. */
export function putClockFloor({ meta }: Environment, { ms, counter }: Hlc): void {
  const value = Buffer.alloc(8)
  value.writeUIntBE(ms, 0, 6)
  value.writeUInt16BE(counter, 6)
  meta.put(floorKey, value)
}

/** The content of the last audit record of a type that is written only when it changes; undefined before the first. */
export function lastReported({ meta }: Environment, type: string): string | undefined {
  return meta.get(Buffer.from(REPORTED + type))?.toString()
}

/** Keeps it, within the caller's transaction. */
export function putLastReported({ meta }: Environment, reported: ReadonlyMap<string, string>): void {
  for (const [type, body] of reported) meta.put(Buffer.from(REPORTED + type), Buffer.from(body))
}

/** Whether a row has that content. */
export function isLastReported(key: Buffer): boolean {
  return key.toString().startsWith(REPORTED)
}
