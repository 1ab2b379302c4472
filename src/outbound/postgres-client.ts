import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Client, type ClientConfig, type QueryResult } from 'pg'
import { limits } from '../base/limits/limits.js'

/** A client of PostgreSQL, and its socket: when that is destroyed, whatever the client does is broken off. */
export interface SocketClient {
  client: Client
  socket: Socket
}

/**
 * Makes a client; it is not connected yet. What a server sends that the driver cannot read, and an answer that is too large,
 * breaks the connection: the driver throws where it reads, in an event of the stream, and the process would end.
 */
export function makeClient(config: ClientConfig): SocketClient {
  const socket = new Socket()
  const client = new Client({ ...config, keepAlive: true, stream: () => socket })
  const { connection } = client
  let [bytes, rows] = [0, 0]
  const takeBytes = (chunk: Uint8Array) => {
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
  breakAtThrow(socket, takeBytes)
  connection.once('sslconnect', () => breakAtThrow(connection.stream, takeBytes))
  return { client, socket }
}

/**
 * Opens the first of several addresses of a database that can be opened.
 * @throws the error of the only one, or AggregateError with that of each
 */
export async function firstToOpen<Opened>(
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
  if (first === undefined) throw new Error('Expected the address of a PostgreSQL server')
  if (failures.length === 1) throw first.error
  throw new AggregateError(
    failures.map(({ error }) => error),
    failures.map(({ host, error }) => `${host}: ${describe(error)}`).join('; '),
  )
}

/** @throws Error where the server takes no writes, with the reason */
export async function refuseReader(client: Client): Promise<void> {
  if ((await settingOf(client, 'transaction_read_only')) !== 'on') return
  const isSet = (await settingOf(client, 'default_transaction_read_only')) === 'on'
  const reason = isSet ? 'default_transaction_read_only is on' : 'it is a standby'
  throw new Error(`The PostgreSQL server only reads: ${reason}`)
}

/** A setting of the server, as the connection has it. */
export async function settingOf(client: Client, name: string): Promise<string> {
  const { rows }: QueryResult<Record<string, unknown>> = await client.query(`SHOW ${name}`)
  const value = rows[0]?.[name]
  if (typeof value !== 'string') throw new Error(`Expected the server to tell ${name}`)
  return value
}

/** Has a stream break when something throws that takes its events. @param read called with all that arrives, first */
function breakAtThrow(stream: Duplex, read: (chunk: Uint8Array) => void): void {
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
