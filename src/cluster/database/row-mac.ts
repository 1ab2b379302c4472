import { createHmac, timingSafeEqual } from 'node:crypto'

/** By what the nodes of a cluster recognise rows of its tables: without the master seed nobody can write one. */
export interface RowSecret {
  /** 32 bytes, derived from the master seed. */
  key: Uint8Array
  /** The id of the cluster: a row of another cluster with the same seed is none of this one. */
  cluster: string
}

/** A value of a row. */
export type RowValue = string | number | boolean

const TITLE = 'strandfast-row/v1'

/**
 * The MAC of a row: HMAC-SHA256 over a title, the cluster's id, the table, and the values in their order, each with its length in
 * bytes before it, so that no two rows have the same text.
 */
export function rowMac({ key, cluster }: RowSecret, table: string, values: readonly RowValue[]): Buffer {
  const mac = createHmac('sha256', key)
  for (const value of [TITLE, cluster, table, ...values].map(String))
    mac.update(`${Buffer.byteLength(value)} ${value}\n`)
  return mac.digest()
}

/** Whether a row is as it was written by who has the master seed. */
export function hasMac(
  secret: RowSecret,
  { table, values, mac }: { table: string; values: readonly RowValue[]; mac: Uint8Array },
): boolean {
  const own = rowMac(secret, table, values)
  return own.length === mac.length && timingSafeEqual(own, mac)
}
