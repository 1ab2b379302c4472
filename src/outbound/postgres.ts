import type { Socket } from 'node:net'
import type { Client } from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { assert } from '../base/assert.js'
import { hostUrls } from '../base/host-urls.js'
import { limits } from '../base/limits/limits.js'
import { isNumber, isText, listOf, members } from '../base/shape.js'
import { firstToOpen, makeClient, refuseReader, type SocketClient } from './postgres-client.js'
import {
  columns,
  copyText,
  failureText,
  refusalCode,
  suspectCode,
  type RefusedRow,
  type SinkRow,
} from './postgres-rows.js'
import { makeTables, SQLSTATE_CHARS } from './postgres-tables.js'

/** Rows of the table of cursors; 64-bit numbers come as texts. */
const areCursors = listOf(
  members<{ shard: number; block_no: string; content_hash: string }>({
    shard: isNumber,
    block_no: isText,
    content_hash: isText,
  }),
)

/**
 * A place in one shard's log: the last block that was delivered, and the hash of its last record, which identifies it.
 */
export interface SinkCursor {
  blockNo: number
  contentHash: string
}

/** What one transaction delivers to PostgreSQL. */
export interface SinkBatch {
  shard: number
  rows: readonly SinkRow[]
  /** Hashes of erased records whose bodies must be removed, whether they were delivered or not. */
  erased: readonly string[]
  /** How far the log is delivered after this batch. */
  cursor: SinkCursor
  /** The batch has failed several times while the connection worked: one of its rows may be the cause. */
  suspect: boolean
}

/** The results of a batch's rows; rows in neither count existed before. */
export interface Delivery {
  stored: number
  refused: number
}

/** Where the sink delivers to. */
export interface PostgresPlace {
  /** SERVICE_INGEST_POSTGRES_URL: of one host, or of several between commas. */
  url: string
  /** Identifies the data directory: each one that delivers to a database has cursors of its own. */
  store: string
}

/** A connection of the sink to PostgreSQL. */
export interface SinkConnection {
  /** False once it has broken. */
  readonly open: boolean
  /** How far each shard is delivered, by its number. */
  cursors(): Promise<Map<number, SinkCursor>>
  /** Stores the rows, each once, and the cursor, in one transaction. */
  deliver(batch: SinkBatch): Promise<Delivery>
  /** Closes an idle connection properly; aborts a busy one, and PostgreSQL rolls back. */
  close(): void
}

/**
 * Connects to the first of the hosts that takes writes, and makes missing tables.
 * @param signal aborts whatever is running; PostgreSQL then rolls it back
 * @throws Error when PostgreSQL cannot be reached, only reads or refuses
 */
export function connectPostgres({ url, store }: PostgresPlace, signal: AbortSignal): Promise<SinkConnection> {
  const urls = hostUrls(url)
  return firstToOpen(
    urls.length === 0 ? [url] : urls,
    (one) => connectOne({ url: one, store }, signal),
    failureText,
  )
}

async function connectOne({ url, store }: PostgresPlace, signal: AbortSignal): Promise<SinkConnection> {
  signal.throwIfAborted()
  const { client, socket } = makeClient({
    connectionString: url,
    fallback_application_name: 'strandfast',
    connectionTimeoutMillis: limits.sinkConnectMs,
    query_timeout: limits.sinkSilenceMs,
  })
  const breakOff = () => socket.destroy()
  signal.addEventListener('abort', breakOff)
  socket.once('close', () => signal.removeEventListener('abort', breakOff))
  const connection = new PostgresConnection({ client, socket }, store)
  try {
    await client.connect()
    await refuseReader(client)
    await makeTables(client)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

class PostgresConnection implements SinkConnection {
  readonly #client: Client
  readonly #socket: Socket
  readonly #store: string
  #open = true
  #busy = false

  constructor({ client, socket }: SocketClient, store: string) {
    this.#client = client
    this.#socket = socket
    this.#store = store
    // Emitted when an idle connection breaks; on a busy one the query fails as well.
    client.on('error', () => (this.#open = false))
    client.on('end', () => (this.#open = false))
  }

  get open(): boolean {
    return this.#open
  }

  async cursors(): Promise<Map<number, SinkCursor>> {
    const { rows }: { rows: unknown } = await this.#client.query(
      'SELECT shard, block_no, content_hash FROM strandfast_cursors WHERE store = $1',
      [this.#store],
    )
    assert(areCursors(rows), 'the table of cursors has the columns that the sink has made')
    return new Map(
      rows.map((row) => [row.shard, { blockNo: Number(row.block_no), contentHash: row.content_hash }]),
    )
  }

  async deliver({ shard, rows, erased, cursor, suspect }: SinkBatch): Promise<Delivery> {
    this.#busy = true
    const refused: RefusedRow[] = []
    await this.#client.query(`BEGIN; SET LOCAL statement_timeout = ${limits.sinkStatementMs}`)
    // A fault must be reported while its row can still be found.
    await this.#client.query('SET CONSTRAINTS ALL IMMEDIATE')
    const stored = rows.length === 0 ? 0 : await this.#storeRows(rows, { refused, suspect })
    for (const one of refused) await this.#storeDeadLetter(one)
    if (erased.length > 0) await this.#erase(erased)
    await this.#client.query(
      `INSERT INTO strandfast_cursors (store, shard, block_no, content_hash) VALUES ($1, $2, $3, $4)
       ON CONFLICT (store, shard) DO UPDATE
       SET block_no = excluded.block_no, content_hash = excluded.content_hash, updated_at = now()`,
      [this.#store, shard, cursor.blockNo, cursor.contentHash],
    )
    await this.#client.query('COMMIT')
    this.#busy = false
    return { stored, refused: refused.length }
  }

  close(): void {
    this.#open = false
    if (this.#busy) this.#socket.destroy()
    else {
      this.#client.end().catch(() => {})
      this.#socket.destroySoon()
    }
  }

  /** Stores the rows except those that PostgreSQL refuses, which it finds by halving. @returns how many are new */
  async #storeRows(
    rows: readonly SinkRow[],
    found: { refused: RefusedRow[]; suspect: boolean },
  ): Promise<number> {
    await this.#client.query('SAVEPOINT strandfast_rows')
    try {
      await copyRows(this.#client, rows)
      const { rowCount } = await this.#client.query(insertStatement)
      await this.#client.query('RELEASE SAVEPOINT strandfast_rows')
      return rowCount ?? 0
    } catch (error) {
      const code = refusalCode(error)
      const reason = code ?? (found.suspect ? suspectCode(error) : undefined)
      if (reason === undefined) throw error
      await this.#client.query(rollbackStatements)
      const [row] = rows
      if (row === undefined || rows.length === 1) {
        if (code === undefined && !(await this.#takesAnyRow())) throw error
        if (row !== undefined) found.refused.push({ row, reason })
        return 0
      }
      const middle = rows.length >> 1
      const first = await this.#storeRows(rows.slice(0, middle), found)
      return first + (await this.#storeRows(rows.slice(middle), found))
    }
  }

  /** Whether PostgreSQL accepts an ordinary row: if not, no row of the batch is the cause. */
  async #takesAnyRow(): Promise<boolean> {
    await this.#client.query('SAVEPOINT strandfast_probe')
    try {
      await this.#client.query(
        `INSERT INTO strandfast_records (${columns}) VALUES ('probe', 'probe', 1, '', 'record', '{}')`,
      )
      return true
    } catch (error) {
      if (suspectCode(error) === undefined) throw error
      return false
    } finally {
      if (this.#open) await this.#client.query(probeEndStatements)
    }
  }

  /** Removes the bodies; the rows too, if the database requires a body. */
  async #erase(hashes: readonly string[]): Promise<void> {
    const updates = [
      ['strandfast_records', 'body = NULL'],
      ['strandfast_dead_letters', `body = NULL, reason = left(reason, ${SQLSTATE_CHARS})`],
    ]
    for (const [table, update] of updates) {
      await this.#client.query('SAVEPOINT strandfast_erasure')
      try {
        await this.#client.query(`UPDATE ${table} SET ${update} WHERE content_hash = ANY($1)`, [hashes])
      } catch (error) {
        if (suspectCode(error) === undefined) throw error
        await this.#client.query('ROLLBACK TO SAVEPOINT strandfast_erasure')
        await this.#client.query(`DELETE FROM ${table} WHERE content_hash = ANY($1)`, [hashes])
      }
      await this.#client.query('RELEASE SAVEPOINT strandfast_erasure')
    }
  }

  async #storeDeadLetter({ row, reason }: RefusedRow): Promise<void> {
    await this.#client.query(
      `INSERT INTO strandfast_dead_letters (${columns}, reason) VALUES ($1, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (content_hash) DO NOTHING`,
      [row.contentHash, row.agent, row.seq, row.timestampHlc, row.type, row.body ?? null, reason],
    )
  }
}

/** Copies the rows into the staging table. @throws Error when one of them is refused, or the connection breaks */
function copyRows(client: Client, rows: readonly SinkRow[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const copy = client.query(copyFrom(copyStatement))
    copy.once('finish', resolve)
    copy.on('error', (error) => {
      // Otherwise it would continue to write once the socket has drained, on a connection that it does not own any
      // more.
      copy.destroy()
      reject(error)
    })
    copy.end(copyText(rows))
  })
}

const probeEndStatements = 'ROLLBACK TO SAVEPOINT strandfast_probe; RELEASE SAVEPOINT strandfast_probe'

const copyStatement = `COPY strandfast_staging (${columns}) FROM STDIN`

const insertStatement = `INSERT INTO strandfast_records (${columns})
  SELECT ${columns} FROM strandfast_staging ON CONFLICT (content_hash) DO NOTHING`

/** Rows of halves that succeeded before are still in the staging table. */
const rollbackStatements =
  'ROLLBACK TO SAVEPOINT strandfast_rows; RELEASE SAVEPOINT strandfast_rows; DELETE FROM strandfast_staging'
