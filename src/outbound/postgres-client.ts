import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Client, type ClientConfig, type QueryResult } from 'pg'
import { steadyClock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import { withoutMark } from '../base/pem.js'

/** A client of PostgreSQL, and its socket; destroying the socket aborts the client. */
export interface SocketClient {
  client: Client
  socket: Socket
  /**
   * Checks a connection that has received nothing for some seconds, before a write depends on it: firewalls
   * and NAT forget idle connections, and then drop packets without an error. Closes it if it does not answer.
   * @throws Error if it does not answer
   */
  verifyIdle(): Promise<void>
}

/**
 * Creates a client, which is not connected yet. Malformed or too large messages of the server close the
 * connection: the driver throws in an event of the stream, which would otherwise end the process. Keep-alive
 * detects a dead connection only while no request waits for an answer; for that, TCP_USER_TIMEOUT would be
 * necessary, which Node cannot set.
 */
export function makeClient(config: ClientConfig): SocketClient {
  const socket = new Socket()
  const client = new Client({
    ...config,
    keepAlive: true,
    keepAliveInitialDelayMillis: limits.postgresKeepAliveMs,
    stream: () => socket,
  })
  const { connection } = client
  // The driver has read the files that the URL names (src/settings/tls-files.ts).
  const { ssl }: { ssl: unknown } = client
  if (isPemFiles(ssl))
    for (const name of pemNames) if (ssl[name] !== undefined) ssl[name] = withoutMark(ssl[name])
  let [bytes, rows, receivedAtMs] = [0, 0, steadyClock()]
  const countBytes = (chunk: Uint8Array) => {
    receivedAtMs = steadyClock()
    bytes += chunk.length
    if (bytes > limits.postgresAnswerBytesMax)
      throw new Error(`it answered with more than ${limits.postgresAnswerBytesMax} bytes`)
  }
  connection.on('readyForQuery', () => ([bytes, rows] = [0, 0]))
  connection.on('dataRow', () => {
    rows += 1
    if (rows > limits.postgresAnswerRowsMax)
      throw new Error(`it answered with more than ${limits.postgresAnswerRowsMax} rows`)
  })
  destroyOnThrow(socket, countBytes)
  connection.once('sslconnect', () => destroyOnThrow(connection.stream, countBytes))
  const verifyIdle = async () => {
    if (steadyClock() - receivedAtMs < limits.postgresIdleMs) return
    const timer = setTimeout(() => socket.destroy(new Error(FORGOTTEN)), limits.postgresLookMs)
    try {
      await client.query('SELECT 1')
    } finally {
      clearTimeout(timer)
    }
  }
  return { client, socket, verifyIdle }
}

const FORGOTTEN = 'the idle connection no longer answers; a firewall may have forgotten it'

/** SQL that changes settings of a session, except those that the server does not have. */
export function setAll(settings: Readonly<Record<string, string | number>>): string {
  const values = Object.entries(settings).map(([name, value]) => `('${name}', '${value}')`)
  return `SELECT set_config(name, value, false) FROM (VALUES ${values.join(', ')}) AS wanted (name, value)
    WHERE name IN (SELECT name FROM pg_settings)`
}

/** Settings with which the server closes a connection whose client has disappeared. */
export const serverKeepAlive = {
  tcp_keepalives_idle: limits.postgresKeepAliveMs / 1_000,
  tcp_keepalives_interval: limits.postgresKeepAliveMs / 1_000,
  tcp_user_timeout: 2 * limits.postgresKeepAliveMs,
}

const pemNames = ['ca', 'cert', 'key'] as const

function isPemFiles(ssl: unknown): ssl is Partial<Record<(typeof pemNames)[number], string>> {
  return typeof ssl === 'object' && ssl !== null
}

/**
 * Tries the addresses of a database one after another.
 * @throws the error of the only address, or AggregateError with the error of each
 */
export async function openFirst<Opened>(
  urls: readonly string[],
  open: (url: string) => Promise<Opened>,
  describe: (error: unknown) => string,
): Promise<Opened> {
  const failures: { host: string; error: unknown }[] = []
  for (const url of urls) {
    try {
      return await open(url)
    } catch (error) {
      failures.push({ host: new URL(url).host, error })
    }
  }
  const [first] = failures
  if (first === undefined) throw new Error('No address of a PostgreSQL server is given')
  if (failures.length === 1) throw first.error
  throw new AggregateError(
    failures.map(({ error }) => error),
    failures.map(({ host, error }) => `${host}: ${describe(error)}`).join('; '),
  )
}

/** @throws Error with the reason if the server is read-only */
export async function requireWritable(client: Client): Promise<void> {
  if ((await settingOf(client, 'transaction_read_only')) === 'on')
    throw readOnlyError(await settingOf(client, 'default_transaction_read_only'))
}

/** @param byDefault the value of `default_transaction_read_only` */
export function readOnlyError(byDefault: string | undefined): Error {
  const reason = byDefault === 'on' ? 'default_transaction_read_only is on' : 'it is a standby'
  return new Error(`The PostgreSQL server is read-only: ${reason}`)
}

/**
 * SQL_ASCII stores the bytes of any text; PostgreSQL converts to all other encodings, and refuses each text
 * with a character that they lack.
 * @throws Error if the database cannot store every text
 */
export async function requireUnicode(client: Client): Promise<void> {
  const encoding = await settingOf(client, 'server_encoding')
  if (encoding === 'UTF8' || encoding === 'SQL_ASCII') return
  throw new Error(
    `The encoding of the database is ${encoding}, which cannot store every text: create one with ENCODING 'UTF8'`,
  )
}

/** The value of a server setting on this connection. */
async function settingOf(client: Client, name: string): Promise<string> {
  const { rows }: QueryResult<Record<string, unknown>> = await client.query(`SHOW ${name}`)
  const value = rows[0]?.[name]
  if (typeof value !== 'string') throw new Error(`The server did not return the setting ${name}`)
  return value
}

/** Destroys a stream if one of its listeners throws. @param read is called first with each chunk */
function destroyOnThrow(stream: Duplex, read: (chunk: Uint8Array) => void): void {
  const emit = stream.emit.bind(stream)
  stream.emit = (event: string | symbol, ...values: unknown[]): boolean => {
    try {
      const [first] = values
      if (event === 'data' && first instanceof Uint8Array) read(first)
      return emit(event, ...values)
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error(String(error)))
      return true
    }
  }
}
