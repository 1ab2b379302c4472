import { limits } from '../../src/base/limits/limits.js'
import type { CheckedTable } from '../store/tables/checked-table.js'
import { commitDurably, type Environment } from '../store/environment.js'

/** A table by its name in an environment. */
export type TableName = {
  [Name in keyof Environment]: Environment[Name] extends CheckedTable ? Name : never
}[keyof Environment]

/** Writes rows to a new shard, many in one transaction. */
export class RowWriter {
  readonly #environment: Environment
  #rows: { table: TableName; key: Buffer; value: Buffer }[] = []
  #bytes = 0
  readonly #written = new Map<TableName, number>()

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** Rows that were put, by table. */
  get written(): ReadonlyMap<TableName, number> {
    return this.#written
  }

  put(table: TableName, key: Buffer, value: Buffer): void {
    this.#rows.push({ table, key, value })
    this.#bytes += key.length + value.length
    this.#written.set(table, (this.#written.get(table) ?? 0) + 1)
    const full = this.#rows.length >= limits.reshardGroupRows || this.#bytes >= limits.reshardGroupBytes
    if (full) this.flush()
  }

  /** Writes what waits to disk. */
  flush(): void {
    const rows = this.#rows
    if (rows.length === 0) return
    commitDurably(this.#environment, () => {
      for (const { table, key, value } of rows) this.#environment[table].put(key, value)
    })
    this.#rows = []
    this.#bytes = 0
  }
}
