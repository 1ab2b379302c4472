import { Socket } from 'node:net'
import { Client } from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { assert } from '../base/assert.js'
import { limits } from '../base/limits.js'
import { isNumber, isText, listOf, members } from '../base/shape.js'
import {
  columns,
  copyText,
  refusalCode,
  suspectCode,
  type RefusedRow,
  type SinkRow,
} from './postgres-rows.js'
import { makeTables, SQLSTATE_CHARS } from './postgres-tables.js'

/** Rows of the table of cursors; numbers of 64 bits come as texts. */
const areCursors = listOf(
  members<{ shard: number; block_no: string; content_hash: string }>({
    shard: isNumber,
    block_no: isText,
    content_hash: isText,
  }),
)

/** A place in one shard's log: the last block that was delivered, and the hash of its last record, by which it is known. */
export interface SinkCursor {
  blockNo: number
  contentHash: string
}

/** What one transaction takes to PostgreSQL. */
export interface SinkBatch {
  shard: number
  rows: readonly SinkRow[]
  /** Hashes of records whose bodies are to go, delivered now or before, or never. */
  erased: readonly string[]
  /** Where the log is delivered up to, once this is. */
  cursor: SinkCursor
  /** It has failed some times, though the connection lived: a row of it may be what fails. */
  suspect: boolean
}

/** What became of the rows of a batch; those that are in neither count were there before. */
export interface Delivery {
  stored: number
  refused: number
}

/** Where the sink delivers to. */
export interface PostgresPlace {
  /** SERVICE_INGEST_POSTGRES_URL. */
  url: string
  /** Names the data directory: two of them in one database have cursors of their own. */
  store: string
}

/** A connection to PostgreSQL that the sink delivers by. */
export interface SinkConnection {
  /** False once it has broken: nothing works on it any more. */
  readonly open: boolean
  /** Where each shard is delivered up to, by its number. */
  cursors(): Promise<Map<number, SinkCursor>>
  /** Stores the rows, each once, and the cursor, in one transaction. */
  deliver(batch: SinkBatch): Promise<Delivery>
  /** Says good-bye where nothing is under way; else breaks off, and PostgreSQL rolls back. */
  close(): void
}

/**
 * Connects and makes the tables that are not there.
 * @param signal breaks off whatever is under way; PostgreSQL then rolls it back
 * @throws Error when PostgreSQL cannot be reached or does not let us
 */
export async function connectPostgres(
  { url, store }: PostgresPlace,
  signal: AbortSignal,
): Promise<SinkConnection> {
  const socket = new Socket()
  const breakOff = () => socket.destroy()
  signal.addEventListener('abort', breakOff)
  socket.once('close', () => signal.removeEventListener('abort', breakOff))
  const client = new Client({
    connectionString: url,
    fallback_application_name: 'strandfast',
    connectionTimeoutMillis: limits.sinkConnectMs,
    query_timeout: limits.sinkSilenceMs,
    keepAlive: true,
    stream: () => socket,
  })
  const connection = new PostgresConnection(client, socket, store)
  try {
    await client.connect()
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

  constructor(client: Client, socket: Socket, store: string) {
    this.#client = client
    this.#socket = socket
    this.#store = store
    // An idle connection that breaks tells of it here; a busy one fails its query besides.
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
    // A fault must show while the row that it belongs to can still be found.
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

  /** Stores the rows but those that PostgreSQL refuses, which it finds by halving. @returns how many are new */
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

  /** Whether a row about which nothing is special would be taken: where not, no row is to blame. */
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

  /** Takes the bodies away; the rows too, where the database does not let them be without one. */
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

/** Copies the rows into the staging table. @throws Error when one of them is not taken, or the connection breaks */
function copyRows(client: Client, rows: readonly SinkRow[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const copy = client.query(copyFrom(copyStatement))
    copy.once('finish', resolve)
    copy.on('error', (error) => {
      // Else it goes on writing once the socket has drained, on a connection that it no longer has.
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

/** Rows of halves that went well before are in the staging table still. */
const rollbackStatements =
  'ROLLBACK TO SAVEPOINT strandfast_rows; RELEASE SAVEPOINT strandfast_rows; DELETE FROM strandfast_staging'
