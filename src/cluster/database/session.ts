import type { Socket } from 'node:net'
import { type Client, DatabaseError, type QueryConfig, type QueryResult, type QueryResultRow } from 'pg'
import {
  openFirst,
  makeClient,
  readOnlyError,
  serverKeepAlive,
  setAll,
  type SocketClient,
} from '../../outbound/postgres-client.js'
import { limits } from '../../base/limits/limits.js'
import { type Check, fields, isText, listOf } from '../../base/shape.js'
import { failureOf, describeDatabaseError } from './database-errors.js'
import { withinTime } from '../../base/time-limit.js'

/** The result of a statement that writes. */
export interface Written {
  rows: number
  /** The first row of RETURNING. */
  first?: QueryResultRow | undefined
  /**
   * The server sent a notice with the result. Usually it has stopped waiting for its standby, so the commit
   * exists but may still be lost.
   */
  warned: boolean
}

export type Parameter = number | string | Buffer | null

/** Whether a value that was read is binary. */
export const isBuffer: Check<Buffer> = (value) => Buffer.isBuffer(value)

/** Converts a value of a row to a parameter. */
export function parameterOf(value: string | number | boolean): Parameter {
  return typeof value === 'boolean' ? String(value) : value
}

/** Values of synchronous_commit with which the server confirms a commit after a standby has it. */
export const lateCommitModes = ['on', 'remote_apply']

/**
 * Settings of a session, whatever the defaults of the role or database are: commits could be confirmed too
 * early, or without a warning, statements could end before their time, and values could be written otherwise.
 */
const sessionSettings = {
  client_min_messages: 'warning',
  statement_timeout: 0,
  lock_timeout: 0,
  transaction_timeout: 0,
  idle_session_timeout: 0,
  // A node stopped or cut off in the middle of a transaction would block the number of its segment for all
  // others.
  idle_in_transaction_session_timeout: limits.clusterIdleMs,
  default_transaction_isolation: 'read committed',
  extra_float_digits: 1,
  quote_all_identifiers: 'off',
  bytea_output: 'hex',
  ...serverKeepAlive,
}

const raiseCommitMode = `SELECT set_config('synchronous_commit', 'on', false)
  WHERE current_setting('synchronous_commit') NOT IN (${lateCommitModes.map((mode) => `'${mode}'`).join(', ')})`

/**
 * A schema that is created later and comes first in the path, such as that of the role, would replace the
 * tables under a session that is in use.
 */
const keepSchema = `SELECT set_config('search_path', quote_ident(nspname), false)
  FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = to_regclass('strandfast_cluster')`

const readSettings = `SELECT name || '=' || setting AS found FROM pg_settings WHERE name IN (
  'server_version', 'server_version_num', 'server_encoding', 'fsync', 'full_page_writes', 'synchronous_commit',
  'synchronous_standby_names', 'transaction_read_only', 'default_transaction_read_only')`

const ENDED = 'the connection has ended'

/** A connection to the server that accepts writes. */
export class Session {
  readonly #client: Client
  readonly #socket: Socket
  readonly #verifyIdle: SocketClient['verifyIdle']
  #settings: ReadonlyMap<string, string> = new Map()
  #notices = 0
  /** Names of the statements prepared on this connection. */
  readonly #names = new Map<string, string>()
  /** The last statement, whose result is ignored. */
  #last: Promise<unknown> = Promise.resolve()
  /** Why the connection has broken. */
  #failure: Error | undefined

  private constructor({ client, socket, verifyIdle }: SocketClient) {
    this.#client = client
    this.#socket = socket
    this.#verifyIdle = verifyIdle
    client.on('notice', () => (this.#notices += 1))
    // Emitted when an idle connection breaks; on a busy one the statement fails as well.
    client.on('error', (error) => (this.#failure ??= error))
    client.on('end', () => (this.#failure ??= new Error(ENDED)))
  }

  /**
   * Connects to the first of the hosts that accepts writes.
   * @throws the error of the only host, or AggregateError with one error for each host
   */
  static open(urls: readonly string[]): Promise<Session> {
    return openFirst(urls, (url) => Session.#openOne(url), describeDatabaseError)
  }

  static async #openOne(url: string): Promise<Session> {
    const session = Session.#to(url)
    await withinConnectTime(
      () => session.drop(),
      () => session.#begin(),
    )
    return session
  }

  static #to(url: string): Session {
    return new Session(
      makeClient({
        connectionString: url,
        fallback_application_name: 'strandfast-cluster',
        connectionTimeoutMillis: limits.clusterConnectMs,
      }),
    )
  }

  /** False once the connection has broken. */
  get open(): boolean {
    return this.#failure === undefined
  }

  /** Settings of the server that matter to a cluster, as they were when the session was opened. */
  get settings(): ReadonlyMap<string, string> {
    return this.#settings
  }

  /** Checks that the connection still answers if it was idle. @throws Error; then it is closed */
  verifyIdle(): Promise<void> {
    return this.#verifyIdle()
  }

  async write(statement: string, parameters: readonly Parameter[]): Promise<Written> {
    const before = this.#notices
    const { rowCount, rows } = await this.#query(this.#prepared(statement, parameters))
    return { rows: rowCount ?? 0, first: rows[0], warned: this.#notices > before }
  }

  /** Runs several statements in one transaction. */
  async transaction(body: () => Promise<Written>): Promise<Written> {
    const before = this.#notices
    await this.#query('BEGIN')
    try {
      const { rows } = await body()
      await this.#query('COMMIT')
      return { rows, warned: this.#notices > before }
    } catch (error) {
      // If the outcome is unknown, so is the state of the connection.
      if (failureOf(error) === 'unknown') this.drop()
      else await this.#query('ROLLBACK')
      throw error
    }
  }

  /** Reads rows. @throws Error if that takes too long, as for a locked table; the connection is closed */
  async rows(statement: string, parameters: readonly Parameter[] = []): Promise<QueryResultRow[]> {
    const limit = { ms: limits.clusterReadMs, drop: () => this.drop() }
    const { rows } = await withinTime(limit, () => this.#query(this.#prepared(statement, parameters)))
    return rows
  }

  /** Runs one statement at a time: the driver is going to drop its own queue. */
  #query(statement: string | QueryConfig): Promise<QueryResult> {
    const result = this.#last.then(() => {
      if (this.#failure !== undefined) throw this.#failure
      return this.#client.query(statement)
    })
    this.#last = result.catch(() => {})
    return result
  }

  /** Prepares a statement with parameters once per connection, so that PostgreSQL plans it once. */
  #prepared(text: string, parameters: readonly Parameter[]) {
    const values = [...parameters]
    if (values.length === 0) return { text, values }
    const name = this.#names.get(text) ?? `strandfast_${this.#names.size + 1}`
    this.#names.set(text, name)
    return { name, text, values }
  }

  /** Closes the connection immediately; the outcome of a running statement is unknown. */
  drop(): void {
    this.#failure ??= new Error(ENDED)
    this.#socket.destroy()
  }

  /** Closes the connection gracefully, if the server answers. */
  async close(): Promise<void> {
    this.#failure ??= new Error(ENDED)
    const timer = setTimeout(() => this.drop(), limits.postgresLookMs)
    try {
      await this.#client.end()
    } finally {
      clearTimeout(timer)
    }
  }

  async #begin(): Promise<void> {
    await this.#client.connect()
    try {
      const clientCheck = { client_connection_check_interval: limits.clusterClientCheckMs }
      await this.#configure({ ...sessionSettings, ...clientCheck })
    } catch (error) {
      // PostgreSQL on some systems does not support it.
      if (!(error instanceof DatabaseError)) throw error
      await this.#configure(sessionSettings)
    }
    if (this.#settings.get('transaction_read_only') === 'on')
      throw readOnlyError(this.#settings.get('default_transaction_read_only'))
  }

  /** In one round trip, because each one counts if the database is far away. */
  async #configure(wanted: Parameters<typeof setAll>[0]): Promise<void> {
    const results: unknown = await this.#query(
      [setAll(wanted), raiseCommitMode, keepSchema, readSettings].join(';\n'),
    )
    const found: unknown = areResults(results) ? results.at(-1)?.rows : undefined
    if (!areSettings(found)) throw new Error('The server did not return its settings')
    this.#settings = new Map(
      found.map(({ found: text }) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]),
    )
  }
}

/**
 * Runs what makes connections usable, within a time limit: a stopped (SIGSTOP) server may accept a connection
 * and never answer.
 * @param drop closes them, also if the work fails
 */
export async function withinConnectTime<T>(drop: () => void, work: () => Promise<T>): Promise<T> {
  try {
    return await withinTime({ ms: limits.clusterConnectMs, drop, late: 'it did not answer in time' }, work)
  } catch (error) {
    drop()
    throw error
  }
}

const areSettings = listOf(fields({ found: isText }))
const areResults = listOf(fields({ rows: (value): value is unknown => value !== undefined }))
