import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * The secret by which the nodes of a cluster authenticate rows of its tables: only holders of the master seed
 * can write them.
 */
export interface RowSecret {
  /** 32 bytes, derived from the master seed. */
  key: Uint8Array
  /** The id of the cluster, so that a row of another cluster with the same seed does not verify. */
  cluster: string
}

export type RowValue = string | number | boolean

const TITLE = 'strandfast-row/v1'
/** Bytes of a MAC. */
export const MAC_BYTES = 32

/**
 * The MAC of a row: HMAC-SHA256 over a title, the id of the cluster, the table, and the values in order. Each
 * is preceded by its length in bytes, so different rows never have the same text.
 */
export function rowMac({ key, cluster }: RowSecret, table: string, values: readonly RowValue[]): Buffer {
  const mac = createHmac('sha256', key)
  for (const value of [TITLE, cluster, table, ...values].map(String))
    mac.update(`${Buffer.byteLength(value)} ${value}\n`)
  return mac.digest()
}

/** Whether the MAC proves that a holder of the master seed wrote the row as it is. */
export function hasMac(
  secret: RowSecret,
  { table, values, mac }: { table: string; values: readonly RowValue[]; mac: Uint8Array },
): boolean {
  const own = rowMac(secret, table, values)
  return own.length === mac.length && timingSafeEqual(own, mac)
}
