import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A connection pooler for PostgreSQL in transaction mode, as in PgBouncer. */
export interface TransactionPooler {
  readonly port: number
  stop(): Promise<void>
}

interface PooledConnection {
  server: Socket
  /** The first messages of the server, which are sent to each client. */
  greeting: Buffer
  /** The client of the current transaction. */
  client: Socket | undefined
}

const READY = 'Z'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)
const TERMINATE = 'X'.charCodeAt(0)

/** Starts a pooler. @param port the port of a server that requires no password */
export async function startTransactionPooler(port: number, size = 2): Promise<TransactionPooler> {
  const all: PooledConnection[] = []
  const idle: PooledConnection[] = []
  const waiting: (() => void)[] = []
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    sockets.add(client)
    client.on('error', () => {})
    let connection: PooledConnection | undefined
    let isGreeted = false
    let queries: Buffer[] = []
    const serve = () => {
      connection ??= idle.pop()
      if (connection === undefined) return void waiting.push(serve)
      connection.client = client
      for (const bytes of queries.splice(0)) connection.server.write(bytes)
      return undefined
    }
    client.on('data', (bytes) => {
      if (!isGreeted) {
        isGreeted = true
        void greetedBy(bytes).then(({ greeting }) => client.write(greeting))
        return
      }
      if (bytes[0] === TERMINATE) return void client.end()
      queries.push(bytes)
      if (queries.length === 1) serve()
      return undefined
    })
    client.once('close', () => {
      queries = []
      if (connection?.client === client) release(connection)
    })
    client.on('released', () => (connection = undefined))
  })
  const release = (connection: PooledConnection) => {
    connection.client?.emit('released')
    connection.client = undefined
    idle.push(connection)
    waiting.shift()?.()
  }
  const greetedBy = async (startup: Buffer): Promise<PooledConnection> => {
    while (all.length < size) {
      const connection: PooledConnection = {
        server: connect(port, '127.0.0.1'),
        greeting: Buffer.alloc(0),
        client: undefined,
      }
      all.push(connection)
      sockets.add(connection.server)
      connection.server.write(startup)
      while (!isReady(connection.greeting)) {
        const [bytes]: Buffer[] = await once(connection.server, 'data')
        connection.greeting = Buffer.concat([connection.greeting, bytes ?? Buffer.alloc(0)])
      }
      connection.server.on('error', () => {})
      connection.server.on('data', (bytes) => {
        connection.client?.write(bytes)
        if (isReady(bytes)) release(connection)
      })
      idle.push(connection)
    }
    const [first] = all
    if (first === undefined) throw new Error('Expected a pool of at least one connection')
    return first
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  return {
    port: address.port,
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Whether an answer ends with an idle server outside of a transaction. */
function isReady(bytes: Buffer): boolean {
  return bytes.length >= 6 && bytes.at(-6) === READY && bytes.at(-1) === IDLE
}
