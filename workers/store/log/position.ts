import type { Environment } from '../environment.js'
import type { LogPosition } from './file-log.js'

const key = Buffer.from('log-position')

const HASH_BYTES = 32
const BYTES = 6 + HASH_BYTES + 4 + 6

/** The row of `meta` that a copy of the store leaves out: where it lies, there is no log. */
export const positionKey = key

/** Up to where LMDB has what is in the log; undefined for a store that has never had a log. */
export function readPosition({ meta }: Environment): LogPosition | undefined {
  const value = meta.get(key)
  if (value === undefined) return undefined
  return {
    number: value.readUIntBE(0, 6),
    hash: Buffer.from(value.subarray(6, 6 + HASH_BYTES)),
    file: value.readUInt32BE(6 + HASH_BYTES),
    offset: value.readUIntBE(10 + HASH_BYTES, 6),
  }
}

/** Writes it, within the transaction that writes what the log has up to there; without one, the store has no log. */
export function putPosition({ meta }: Environment, position: LogPosition | undefined): void {
  if (position === undefined) return meta.remove(key)
  const { number, hash, file, offset } = position
  const value = Buffer.alloc(BYTES)
  value.writeUIntBE(number, 0, 6)
  value.set(hash, 6)
  value.writeUInt32BE(file, 6 + HASH_BYTES)
  value.writeUIntBE(offset, 10 + HASH_BYTES, 6)
  meta.put(key, value)
}
