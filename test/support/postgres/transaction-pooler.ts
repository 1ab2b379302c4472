import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A pooler of connections to PostgreSQL that lends one for a transaction, as pgbouncer does in transaction mode. */
export interface TransactionPooler {
  readonly port: number
  stop(): Promise<void>
}

/** A connection to the server, and who has it. */
interface Lent {
  server: Socket
  /** What it said when it was made, which each client is told. */
  greeting: Buffer
  client: Socket | undefined
}

const READY = 'Z'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)
const TERMINATE = 'X'.charCodeAt(0)

/** Starts one. @param port of a server that lets everybody in without a password */
export async function startTransactionPooler(port: number, size = 2): Promise<TransactionPooler> {
  const all: Lent[] = []
  const idle: Lent[] = []
  const waiting: (() => void)[] = []
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    sockets.add(client)
    client.on('error', () => {})
    let lent: Lent | undefined
    let isGreeted = false
    let asked: Buffer[] = []
    const serve = () => {
      lent ??= idle.pop()
      if (lent === undefined) return void waiting.push(serve)
      lent.client = client
      for (const bytes of asked.splice(0)) lent.server.write(bytes)
      return undefined
    }
    client.on('data', (bytes) => {
      if (!isGreeted) {
        isGreeted = true
        void greetedBy(bytes).then(({ greeting }) => client.write(greeting))
        return
      }
      if (bytes[0] === TERMINATE) return void client.end()
      asked.push(bytes)
      if (asked.length === 1) serve()
      return undefined
    })
    client.once('close', () => {
      asked = []
      if (lent?.client === client) giveBack(lent)
    })
    client.on('returned', () => (lent = undefined))
  })
  const giveBack = (lent: Lent) => {
    lent.client?.emit('returned')
    lent.client = undefined
    idle.push(lent)
    waiting.shift()?.()
  }
  const greetedBy = async (startup: Buffer): Promise<Lent> => {
    while (all.length < size) {
      const lent: Lent = { server: connect(port, '127.0.0.1'), greeting: Buffer.alloc(0), client: undefined }
      all.push(lent)
      sockets.add(lent.server)
      lent.server.write(startup)
      while (!isReady(lent.greeting)) {
        const [bytes]: Buffer[] = await once(lent.server, 'data')
        lent.greeting = Buffer.concat([lent.greeting, bytes ?? Buffer.alloc(0)])
      }
      lent.server.on('error', () => {})
      lent.server.on('data', (bytes) => {
        lent.client?.write(bytes)
        if (isReady(bytes)) giveBack(lent)
      })
      idle.push(lent)
    }
    const [first] = all
    if (first === undefined) throw new Error('Expected a pool of one connection at least')
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

/** Whether an answer ends with the server being idle, outside of a transaction. */
function isReady(bytes: Buffer): boolean {
  return bytes.length >= 6 && bytes.at(-6) === READY && bytes.at(-1) === IDLE
}
