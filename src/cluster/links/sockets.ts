import { randomBytes } from 'node:crypto'
import { type TLSSocket, connect, createServer, type TlsOptions } from 'node:tls'
import { limits } from '../../base/limits/limits.js'

/*
 * Links between the nodes of a cluster: TLS with a pre-shared key derived from the master seed, so that both
 * ends are authenticated without certificates (RFC 5489). A link has two connections, so that urgent messages
 * do not wait behind answers. Each connection begins with its kind, 1 byte, and an id of 16 bytes that both
 * share.
 */

const cipher: TlsOptions = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
}

/** The two connections of a link. */
export interface LinkSockets {
  /** For messages that must not wait. */
  urgent: TLSSocket
  /** For everything else. */
  main: TLSSocket
}

const kinds = ['urgent', 'main'] as const
const ID_BYTES = 16

/** Where and how a node accepts links. */
interface LinkListening {
  host: string
  port: number
  /** The key of the cluster, 32 bytes. */
  key: Buffer
  /** A connection could not be accepted; the server keeps listening. */
  failed(error: Error): void
}

/** A listening node. */
export interface LinkServer {
  port: number
  /** Stops accepting links; established ones stay open. */
  close(): void
}

/**
 * Accepts links of other nodes.
 * @throws Error if the address cannot be listened on
 */
export async function listenForLinks(
  { host, port, key, failed }: LinkListening,
  linked: (sockets: LinkSockets) => void,
): Promise<LinkServer> {
  const pairs = new SocketPairs(linked)
  const server = createServer(
    { ...cipher, pskCallback: () => key, handshakeTimeout: limits.linkHandshakeMs },
    (socket) => pairs.take(socket),
  )
  server.maxConnections = kinds.length * limits.linksMax
  // A client without the key, or another program: nothing is read from it.
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
  if (address === null || typeof address === 'string') throw new Error('Links need a TCP port')
  return { port: address.port, close: () => void server.close() }
}

/** Accepted connections whose other half is still missing. */
class SocketPairs {
  readonly #linked: (sockets: LinkSockets) => void
  readonly #unpaired = new Map<string, Partial<LinkSockets>>()

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
    const pair = this.#unpaired.get(id) ?? {}
    if (kind === undefined || pair[kind] !== undefined) return void socket.destroy()
    pair[kind] = socket
    this.#unpaired.set(id, pair)
    // Also if the other connection did not arrive in time.
    socket.once('close', () => this.#unpaired.delete(id))
    const { urgent, main } = pair
    socket.once('paired', () => clearTimeout(late))
    if (urgent === undefined || main === undefined) return undefined
    this.#unpaired.delete(id)
    for (const one of [urgent, main]) one.emit('paired')
    return this.#linked({ urgent, main })
  }
}

/** Connects to another node. @throws Error if it does not answer in time, or has another key */
export async function connectLink(peer: { host: string; port: number; key: Buffer }): Promise<LinkSockets> {
  const id = randomBytes(ID_BYTES)
  const both = await Promise.allSettled(
    kinds.map(async (_name, kind) => connectOne(peer, Buffer.of(kind, ...id))),
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
    // The pre-shared key has authenticated the server.
    checkServerIdentity: () => undefined,
  })
  try {
    await new Promise<void>((resolve, reject) => {
      const late = () => reject(new Error(`${host}:${port} did not answer in time`))
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
