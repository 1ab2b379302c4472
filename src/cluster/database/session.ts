import type { Socket } from 'node:net'
import { type Client, DatabaseError, type QueryResult, type QueryResultRow } from 'pg'
import {
  firstToOpen,
  makeClient,
  refuseReader,
  settingOf,
  type SocketClient,
} from '../../outbound/postgres-client.js'
import { limits } from '../../base/limits/limits.js'
import type { Check } from '../../base/shape.js'
import { failureOf, describeTrouble } from './trouble.js'

/** What a statement that writes has done. */
export interface Written {
  rows: number
  /**
   * The server said something beside: most often that it stopped waiting for its standby, so that the commit is there and
   * may still be lost.
   */
  warned: boolean
}

/** A value of a statement. */
export type Parameter = number | string | Buffer | null

/** Whether a value that was read is bytes. */
export const isBuffer: Check<Buffer> = (value) => Buffer.isBuffer(value)

/** A value of a row as a statement takes it. */
export function parameterOf(value: string | number | boolean): Parameter {
  return typeof value === 'boolean' ? String(value) : value
}

/** Values of synchronous_commit with which a commit is answered before a standby has it. */
const answersEarly = ['off', 'local', 'remote_write']

/** A connection to the server that takes writes. */
export class Session {
  readonly #client: Client
  readonly #socket: Socket
  #notices = 0
  /** Of statements that the connection has prepared. */
  readonly #names = new Map<string, string>()
  #open = true

  private constructor({ client, socket }: SocketClient) {
    this.#client = client
    this.#socket = socket
    client.on('notice', () => (this.#notices += 1))
    // Emitted when an idle connection breaks; on a busy one the statement fails as well.
    client.on('error', () => (this.#open = false))
    client.on('end', () => (this.#open = false))
  }

  /**
   * Connects to the first of the hosts that takes writes.
   * @throws the error of the only one, or AggregateError with that of each
   */
  static open(urls: readonly string[]): Promise<Session> {
    return firstToOpen(urls, (url) => Session.#openOne(url), describeTrouble)
  }

  static async #openOne(url: string): Promise<Session> {
    const session = Session.#to(url)
    // One that was stopped may accept a connection and say nothing more.
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      session.drop()
    }, limits.clusterConnectMs)
    try {
      await session.#begin()
      return session
    } catch (error) {
      session.drop()
      throw isLate ? new Error('it did not answer in time', { cause: error }) : error
    } finally {
      clearTimeout(timer)
    }
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

  /** False once it has broken. */
  get open(): boolean {
    return this.#open
  }

  async write(statement: string, parameters: readonly Parameter[]): Promise<Written> {
    const before = this.#notices
    const { rowCount } = await this.#client.query(this.#prepared(statement, parameters))
    return { rows: rowCount ?? 0, warned: this.#notices > before }
  }

  /** Several statements at once, all or none of them. */
  async transaction(body: () => Promise<Written>): Promise<Written> {
    const before = this.#notices
    await this.#client.query('BEGIN')
    try {
      const { rows } = await body()
      await this.#client.query('COMMIT')
      return { rows, warned: this.#notices > before }
    } catch (error) {
      // Where the outcome is unknown, so is the state of the connection.
      if (failureOf(error) === 'unknown') this.drop()
      else await this.#client.query('ROLLBACK')
      throw error
    }
  }

  async rows(statement: string, parameters: readonly Parameter[] = []): Promise<QueryResultRow[]> {
    const { rows }: QueryResult = await this.#client.query(this.#prepared(statement, parameters))
    return rows
  }

  /** A statement with values is prepared once for the connection: PostgreSQL plans it once, and is asked it often. */
  #prepared(text: string, parameters: readonly Parameter[]) {
    const values = [...parameters]
    if (values.length === 0) return { text, values }
    const name = this.#names.get(text) ?? `strandfast_${this.#names.size + 1}`
    this.#names.set(text, name)
    return { name, text, values }
  }

  /** Ends it at once, whatever it does: nothing is known of that then. */
  drop(): void {
    this.#open = false
    this.#socket.destroy()
  }

  /** Ends it in order. */
  async close(): Promise<void> {
    this.#open = false
    await this.#client.end()
  }

  async #begin(): Promise<void> {
    await this.#client.connect()
    await refuseReader(this.#client)
    // A role or database may have been given others, with which a commit would be answered too early, or in silence.
    await this.#client.query('SET client_min_messages = warning')
    await this.#client.query('SET statement_timeout = 0')
    // A node that was stopped or cut off between two of them would keep everybody from the place of its segment.
    await this.#client.query(`SET idle_in_transaction_session_timeout = ${limits.clusterIdleMs}`)
    await this.#client.query("SET default_transaction_isolation = 'read committed'")
    if (answersEarly.includes(await settingOf(this.#client, 'synchronous_commit')))
      await this.#client.query('SET synchronous_commit = on')
    try {
      await this.#client.query(`SET client_connection_check_interval = ${limits.clusterLookMs}`)
    } catch (error) {
      // Some engines, and PostgreSQL on some systems, cannot look.
      if (!(error instanceof DatabaseError)) throw error
    }
  }
}
