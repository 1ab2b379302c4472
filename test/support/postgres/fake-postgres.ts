import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

/** A server that speaks the protocol of PostgreSQL and answers statements as a test defines. */
export interface FakePostgres {
  readonly url: string
  stop(): Promise<void>
}

/** One message of a server: its letter, length and body. @param length a wrong length to send */
export function message(letter: string, body: Buffer | string = '', length?: number): Buffer {
  const bytes = Buffer.from(body)
  const head = Buffer.alloc(5)
  head.write(letter)
  head.writeUInt32BE(length ?? bytes.length + 4, 1)
  return Buffer.concat([head, bytes])
}

/** The server is idle and accepts the next statement. */
export const ready = message('Z', 'I')

/** The answer to a statement with one column of texts, without the final `ready`. */
export function rowsOf(column: string, ...texts: readonly string[]): Buffer {
  const about = Buffer.alloc(18)
  about.writeInt32BE(25, 6)
  const described = message('T', Buffer.concat([Buffer.of(0, 1), Buffer.from(`${column}\0`), about]))
  const rows = texts.map((text) => {
    const length = Buffer.alloc(4)
    length.writeInt32BE(text.length)
    return message('D', Buffer.concat([Buffer.of(0, 1), length, Buffer.from(text)]))
  })
  return Buffer.concat([described, ...rows, message('C', `SELECT ${texts.length}\0`)])
}

/**
 * Starts a fake server.
 * @param answer returns the answer to a statement, whose text is empty if it is prepared; undefined for the
 *   default answer of a server that accepts writes
 */
export async function startFakePostgres(
  answer: (statement: string, socket: Socket) => Buffer | undefined,
): Promise<FakePostgres> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    let isGreeted = false
    socket.on('data', (bytes) => {
      if (!isGreeted) {
        isGreeted = true
        socket.write(Buffer.concat([message('R', Buffer.alloc(4)), message('K', Buffer.alloc(8)), ready]))
        return
      }
      const isSimple = bytes[0] === 'Q'.charCodeAt(0)
      const statement = isSimple ? bytes.toString('utf8', 5, bytes.length - 1) : ''
      socket.write(answer(statement, socket) ?? Buffer.concat([defaultAnswer(statement), ready]))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  return {
    url: `postgres://strandfast@127.0.0.1:${address.port}/postgres`,
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function defaultAnswer(statement: string): Buffer {
  const [, setting] = /^SHOW (\w+)/.exec(statement) ?? []
  if (setting !== undefined) return rowsOf(setting, setting === 'server_encoding' ? 'UTF8' : 'off')
  return Buffer.concat(statement.split(';\n').map(answerOf))
}

/** The answer to one of the statements of a message. */
function answerOf(statement: string): Buffer {
  if (statement.startsWith('SELECT set_config')) return rowsOf('set_config', '')
  if (!statement.startsWith('SELECT name ||')) return message('C', 'SET\0')
  return rowsOf('found', 'server_encoding=UTF8', 'transaction_read_only=off')
}
