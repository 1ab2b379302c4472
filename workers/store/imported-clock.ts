import { zeroHlc, type Hlc } from '../../src/strand/hlc.js'
import type { Environment } from './environment.js'

/*
 * The latest clock among imported records that was ahead of the shard's own. The shard's log does not hold them, and
 * what is written next must come later all the same (docs/adr/0022-import.md).
 */

const key = Buffer.from('imported-clock')

/** The latest clock of imported records that was ahead of the shard's; the first of all when there was none. */
export function importedClock({ meta }: Environment): Hlc {
  const value = meta.get(key)
  return value === undefined ? zeroHlc : { ms: value.readUIntBE(0, 6), counter: value.readUInt16BE(6) }
}

/** Keeps it, within the caller's transaction: milliseconds u48, counter u16. */
export function keepImportedClock({ meta }: Environment, { ms, counter }: Hlc): void {
  const value = Buffer.allocUnsafe(8)
  value.writeUIntBE(ms, 0, 6)
  value.writeUInt16BE(counter, 6)
  meta.put(key, value)
}
