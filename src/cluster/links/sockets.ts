import { randomBytes } from 'node:crypto'
import { type TLSSocket, connect, createServer, type TlsOptions } from 'node:tls'
import { limits } from '../../base/limits/limits.js'

/*
 * Links between the nodes of a cluster: TLS with a key that both have from the master seed, so each knows that the other
 * has it, and there are no certificates (RFC 5489). A link has two connections, so that what has to come in time does not wait behind
 * answers. Each begins with what it is, one byte, and 16 bytes that both have alike.
 */

const cipher: TlsOptions = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
}

/** The connections of a link. */
export interface LinkSockets {
  /** For what has to come in time. */
  urgent: TLSSocket
  /** For all else. */
  main: TLSSocket
}

const kinds = ['urgent', 'main'] as const
const ID_BYTES = 16

/** What a node listens with for links. */
interface LinkListening {
  host: string
  port: number
  /** 32 bytes that all nodes of the cluster have. */
  key: Buffer
  /** The system could not take a connection; it listens on. */
  failed(error: Error): void
}

/** Where a node takes links. */
export interface LinkServer {
  port: number
  /** Takes no more of them; those that are through go on. */
  close(): void
}

/**
 * Takes links of other nodes.
 * @throws Error when the address cannot be listened on
 */
export async function listenForLinks(
  { host, port, key, failed }: LinkListening,
  linked: (sockets: LinkSockets) => void,
): Promise<LinkServer> {
  const pairs = new Pairs(linked)
  const server = createServer(
    { ...cipher, pskCallback: () => key, handshakeTimeout: limits.linkHandshakeMs },
    (socket) => pairs.take(socket),
  )
  server.maxConnections = kinds.length * limits.linksMax
  // Somebody without the key, or with another program: nothing of it is read.
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      server.on('error', failed)
      resolve()
    })
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected links to be taken on a port')
  return { port: address.port, close: () => void server.close() }
}

/** Connections that were taken, until both of a link are there. */
class Pairs {
  readonly #linked: (sockets: LinkSockets) => void
  readonly #waiting = new Map<string, Partial<LinkSockets>>()

  constructor(linked: (sockets: LinkSockets) => void) {
    this.#linked = linked
  }

  take(socket: TLSSocket): void {
    socket.on('error', () => {})
    const late = setTimeout(() => socket.destroy(), limits.linkHandshakeMs)
    const read = () => {
      const head: unknown = socket.read(1 + ID_BYTES)
      if (head instanceof Buffer && head.length > ID_BYTES) this.#add(socket, head, late)
      else socket.once('readable', read)
    }
    socket.once('readable', read)
    socket.once('close', () => clearTimeout(late))
  }

  #add(socket: TLSSocket, head: Buffer, late: NodeJS.Timeout): void {
    const [kind, id] = [kinds[head[0] ?? kinds.length], head.toString('hex', 1)]
    const pair = this.#waiting.get(id) ?? {}
    if (kind === undefined || pair[kind] !== undefined) return void socket.destroy()
    pair[kind] = socket
    this.#waiting.set(id, pair)
    // Also where the other one has not come in time.
    socket.once('close', () => this.#waiting.delete(id))
    const { urgent, main } = pair
    socket.once('paired', () => clearTimeout(late))
    if (urgent === undefined || main === undefined) return undefined
    this.#waiting.delete(id)
    for (const one of [urgent, main]) one.emit('paired')
    return this.#linked({ urgent, main })
  }
}

/** Reaches another node. @throws Error when it does not answer in time, or has another key */
export async function connectLink(place: { host: string; port: number; key: Buffer }): Promise<LinkSockets> {
  const id = randomBytes(ID_BYTES)
  const both = await Promise.allSettled(
    kinds.map(async (_name, kind) => connectOne(place, Buffer.of(kind, ...id))),
  )
  const [urgent, main] = both.map((one) => (one.status === 'fulfilled' ? one.value : undefined))
  if (urgent !== undefined && main !== undefined) return { urgent, main }
  for (const socket of [urgent, main]) socket?.destroy()
  const reason: unknown = both.find((one) => one.status === 'rejected')?.reason
  throw reason instanceof Error ? reason : new Error(String(reason))
}

async function connectOne(
  { host, port, key }: { host: string; port: number; key: Buffer },
  head: Buffer,
): Promise<TLSSocket> {
  const socket = connect({
    ...cipher,
    host,
    port,
    pskCallback: () => ({ psk: key, identity: 'node' }),
    // It has shown that it has the key.
    checkServerIdentity: () => undefined,
  })
  try {
    await new Promise<void>((resolve, reject) => {
      const late = () => reject(new Error(`${host}:${port} does not answer`))
      const timer = setTimeout(late, limits.linkHandshakeMs)
      socket.once('secureConnect', () => {
        clearTimeout(timer)
        resolve()
      })
      socket.once('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
    })
    socket.on('error', () => {})
    socket.write(head)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}
