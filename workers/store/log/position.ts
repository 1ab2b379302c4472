import { commitDurably, type Environment } from '../environment.js'
import { openEnvironment } from '../open-environment.js'
import type { LogPosition } from './file-log.js'

/** The row of `meta` with the position. A copy of the store does not have it, because the copy has no log. */
export const positionKey = Buffer.from('log-position')

const HASH_BYTES = 32
const BYTES = 6 + HASH_BYTES + 4 + 6

/**
 * The file number in positions of a cluster's log, whose offset is a segment number. Files are numbered
 * from 1.
 */
export const noFile = 0

export function isOfCluster({ file }: LogPosition): boolean {
  return file === noFile
}

/** The position up to which LMDB has the log; undefined for a store that has never had a log. */
export function readPosition({ meta }: Environment): LogPosition | undefined {
  const value = meta.get(positionKey)
  if (value === undefined) return undefined
  return {
    number: value.readUIntBE(0, 6),
    hash: Buffer.from(value.subarray(6, 6 + HASH_BYTES)),
    file: value.readUInt32BE(6 + HASH_BYTES),
    offset: value.readUIntBE(10 + HASH_BYTES, 6),
  }
}

/** Writes the position, within the transaction that writes the rows up to it. `undefined` removes it. */
export function putPosition({ meta }: Environment, position: LogPosition | undefined): void {
  if (position === undefined) return meta.remove(positionKey)
  const { number, hash, file, offset } = position
  const value = Buffer.alloc(BYTES)
  value.writeUIntBE(number, 0, 6)
  value.set(hash, 6)
  value.writeUInt32BE(file, 6 + HASH_BYTES)
  value.writeUIntBE(offset, 10 + HASH_BYTES, 6)
  meta.put(positionKey, value)
}

/** Reads the position of a store that is not open. */
export async function positionAt(path: string): Promise<LogPosition | undefined> {
  const environment = openEnvironment(path, 'read')
  try {
    return readPosition(environment)
  } finally {
    await environment.root.close()
  }
}

/** Writes the position to a store that is not open. Resolves when it is on disk. */
export async function setPositionAt(path: string, position: LogPosition | undefined): Promise<void> {
  const environment = openEnvironment(path, 'write')
  try {
    commitDurably(environment, () => putPosition(environment, position))
  } finally {
    await environment.root.close()
  }
}
