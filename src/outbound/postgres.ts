import type { Socket } from 'node:net'
import type { Client } from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { assert } from '../base/assert.js'
import { hostUrls } from '../base/host-urls.js'
import { limits } from '../base/limits/limits.js'
import { isNumber, isText, listOf, members } from '../base/shape.js'
import {
  openFirst,
  makeClient,
  requireUnicode,
  requireWritable,
  serverKeepAlive,
  setAll,
  type SocketClient,
} from './postgres-client.js'
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

/** Rows of the table of cursors. The driver returns 64-bit numbers as texts. */
const areCursors = listOf(
  members<{ shard: number; block_no: string; content_hash: string }>({
    shard: isNumber,
    block_no: isText,
    content_hash: isText,
  }),
)

/**
 * A position in the log of a shard: the last delivered block, and the hash of its last record, which
 * identifies it.
 */
export interface SinkCursor {
  blockNo: number
  contentHash: string
}

/** The content of one transaction to PostgreSQL. */
export interface SinkBatch {
  shard: number
  rows: readonly SinkRow[]
  /** Hashes of erased records whose bodies must be removed, whether or not they were delivered. */
  erased: readonly string[]
  /** The position after this batch. */
  cursor: SinkCursor
  /**
   * How often the batch has failed on a working connection in a way that fewer rows in each statement may
   * help against.
   */
  failures: number
}

/** The counts of a batch; rows in neither count existed before. */
export interface Delivery {
  stored: number
  refused: number
}

export interface PostgresTarget {
  /** SERVICE_INGEST_POSTGRES_URL, with one host or several. */
  url: string
  /** Identifies the data directory; each one has separate cursors in the database. */
  store: string
}

/** A connection of the sink to PostgreSQL. */
export interface SinkConnection {
  /** False after the connection has failed. */
  readonly open: boolean
  /** The position of each shard, by its number. */
  cursors(): Promise<Map<number, SinkCursor>>
  /** Stores the rows, each once, and the cursor, in one transaction. */
  deliver(batch: SinkBatch): Promise<Delivery>
  /** Closes an idle connection properly; aborts a busy one, whose transaction PostgreSQL rolls back. */
  close(): void
}

/**
 * Connects to the first host that accepts writes, and creates missing tables.
 * @param signal aborts the connection; PostgreSQL rolls back its transaction
 * @throws Error if PostgreSQL is unreachable, is read-only or refuses
 */
export function connectPostgres(
  { url, store }: PostgresTarget,
  signal: AbortSignal,
): Promise<SinkConnection> {
  const urls = hostUrls(url)
  return openFirst(
    urls.length === 0 ? [url] : urls,
    (one) => connectOne({ url: one, store }, signal),
    failureText,
  )
}

async function connectOne({ url, store }: PostgresTarget, signal: AbortSignal): Promise<SinkConnection> {
  signal.throwIfAborted()
  const opened = makeClient({
    connectionString: url,
    fallback_application_name: 'strandfast',
    connectionTimeoutMillis: limits.sinkConnectMs,
    query_timeout: limits.sinkReplyMs,
  })
  const { client, socket } = opened
  const abort = () => socket.destroy()
  signal.addEventListener('abort', abort)
  socket.once('close', () => signal.removeEventListener('abort', abort))
  const connection = new PostgresConnection(opened, store)
  try {
    await client.connect()
    await requireWritable(client)
    await requireUnicode(client)
    await client.query(setAll(serverKeepAlive))
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
  readonly #verifyIdle: SocketClient['verifyIdle']
  readonly #store: string
  #open = true
  #busy = false

  constructor({ client, socket, verifyIdle }: SocketClient, store: string) {
    this.#client = client
    this.#socket = socket
    this.#verifyIdle = verifyIdle
    this.#store = store
    // Emitted when an idle connection fails; on a busy one, the query fails as well.
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
    assert(areCursors(rows), 'the table of cursors has the columns that the sink created')
    return new Map(
      rows.map((row) => [row.shard, { blockNo: Number(row.block_no), contentHash: row.content_hash }]),
    )
  }

  async deliver({ shard, rows, erased, cursor, failures }: SinkBatch): Promise<Delivery> {
    this.#busy = true
    await this.#verifyIdle()
    const found: FoundRows = { refused: [], suspect: failures >= limits.sinkBatchTriesMax }
    await this.#client.query(`BEGIN; SET LOCAL statement_timeout = ${limits.sinkStatementMs}`)
    // Deferred constraints would be reported at COMMIT, when the row can no longer be found.
    await this.#client.query('SET CONSTRAINTS ALL IMMEDIATE')
    let stored = 0
    for (const part of partsOf(rows, failures)) stored += await this.#storeRows(part, found)
    for (const one of found.refused) await this.#storeDeadLetter(one)
    if (erased.length > 0) await this.#erase(erased)
    await this.#client.query(
      `INSERT INTO strandfast_cursors (store, shard, block_no, content_hash) VALUES ($1, $2, $3, $4)
       ON CONFLICT (store, shard) DO UPDATE
       SET block_no = excluded.block_no, content_hash = excluded.content_hash, updated_at = now()`,
      [this.#store, shard, cursor.blockNo, cursor.contentHash],
    )
    await this.#client.query('COMMIT')
    this.#busy = false
    return { stored, refused: found.refused.length }
  }

  close(): void {
    this.#open = false
    if (this.#busy) this.#socket.destroy()
    else {
      this.#client.end().catch(() => {})
      this.#socket.destroySoon()
    }
  }

  /** Stores the rows except refused ones, which it finds by bisection. @returns the number of new rows */
  async #storeRows(rows: readonly SinkRow[], found: FoundRows): Promise<number> {
    const result = await this.#tryRows(rows)
    if (typeof result === 'number') return result
    const code = refusalCode(result)
    const reason = code ?? (found.suspect ? suspectCode(result) : undefined)
    if (reason === undefined) throw result
    const [row] = rows
    if (row === undefined || rows.length > 1) {
      const middle = rows.length >> 1
      const first = await this.#storeRows(rows.slice(0, middle), found)
      return first + (await this.#storeRows(rows.slice(middle), found))
    }
    if (code === undefined) {
      if (!(await this.#acceptsProbe())) throw result
      // The fault may have passed before the probe was accepted, which may have waited for a lock.
      const again = await this.#tryRows(rows)
      if (typeof again === 'number') return again
      if (suspectCode(again) !== reason) throw again
    }
    found.refused.push({ row, reason })
    return 0
  }

  /**
   * Stores the rows.
   * @returns the number of new rows, or the failure if rows may have caused it, which is rolled back
   * @throws any other failure
   */
  async #tryRows(rows: readonly SinkRow[]): Promise<number | Error> {
    await this.#client.query('SAVEPOINT strandfast_rows')
    try {
      await copyRows(this.#client, rows)
      const { rowCount } = await this.#client.query(insertStatement)
      await this.#client.query('RELEASE SAVEPOINT strandfast_rows')
      return rowCount ?? 0
    } catch (error) {
      if (!(error instanceof Error) || suspectCode(error) === undefined) throw error
      await this.#client.query(rollbackStatements)
      return error
    }
  }

  /** Whether PostgreSQL accepts an ordinary row; if not, the rows of the batch are not the cause. */
  async #acceptsProbe(): Promise<boolean> {
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

  /** Removes the bodies, or the whole rows if the database requires a body. */
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

/** Rows that were found to be at fault, and whether failures of any class may be the fault of a row. */
interface FoundRows {
  refused: RefusedRow[]
  suspect: boolean
}

/** Divides a batch into twice as many parts after each failure from `sinkBatchTriesMax` on. */
function partsOf(rows: readonly SinkRow[], failures: number): (readonly SinkRow[])[] {
  const parts = 2 ** Math.max(0, failures + 1 - limits.sinkBatchTriesMax)
  const size = Math.max(1, Math.ceil(rows.length / parts))
  return Array.from({ length: Math.ceil(rows.length / size) }, (_none, nth) =>
    rows.slice(nth * size, (nth + 1) * size),
  )
}

/** Copies the rows into the staging table. @throws Error if a row is refused, or the connection fails */
function copyRows(client: Client, rows: readonly SinkRow[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const copy = client.query(copyFrom(copyStatement))
    copy.once('finish', resolve)
    copy.on('error', (error) => {
      // Otherwise the copy would continue to write to the connection once the socket has drained.
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

/** The staging table still has the rows of earlier halves that succeeded. */
const rollbackStatements =
  'ROLLBACK TO SAVEPOINT strandfast_rows; RELEASE SAVEPOINT strandfast_rows; DELETE FROM strandfast_staging'
