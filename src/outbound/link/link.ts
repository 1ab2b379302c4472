import { type TLSSocket, connect, createServer, type TlsOptions } from 'node:tls'
import { limits } from '../../base/limits.js'
import { type LinkMessage, MessageReader, encodeFrame, encodeValue } from './framing.js'

/*
 * Links between the nodes of a cluster: TLS with a key that both have from the master seed, so each knows that the other
 * has it, and there are no certificates (RFC 5489).
 */

const cipher: TlsOptions = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
}

/** What the other end does. */
export interface LinkListener {
  message(message: LinkMessage): void
  /** It has gone, or sent what is no message; called once. */
  closed(reason: string): void
}

/** One end of a link. */
export class Link {
  readonly #socket: TLSSocket
  #closed: ((reason: string) => void) | undefined
  #reason = 'the other node closed it'
  /** What is said in this turn of the event loop. */
  #unsent: Buffer[] = []
  #unsentBytes = 0
  /** Nothing more is sent. */
  #isFinishing = false

  constructor(socket: TLSSocket, listener: LinkListener) {
    this.#socket = socket
    this.#closed = (reason) => listener.closed(reason)
    const reader = new MessageReader((message) => listener.message(message))
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => {
      try {
        if (this.#closed !== undefined) reader.push(chunk)
      } catch (error) {
        this.close(error instanceof Error ? error.message : String(error))
      }
    })
    socket.on('error', (error) => (this.#reason = error.message))
    socket.once('close', () => this.#end(this.#reason))
  }

  send(value: unknown): void {
    this.#write(encodeValue(value))
  }

  sendFrame(shard: number, frame: ArrayBuffer): void {
    this.#write(encodeFrame(shard, frame))
  }

  /** Ends it once everything is sent; what is to be sent later is dropped. */
  finish(): void {
    this.#flush()
    this.#isFinishing = true
    this.#reason = 'this node ended it'
    this.#socket.end()
  }

  /** Ends it at once: `closed` is called with the reason. */
  close(reason: string): void {
    this.#socket.destroy()
    this.#end(reason)
  }

  /** The messages of one turn of the event loop go out as one: each write costs as much, whatever it contains. */
  #write(parts: readonly Buffer[]): void {
    if (this.#closed === undefined || this.#isFinishing) return
    if (this.#unsent.length === 0) setImmediate(() => this.#flush())
    for (const part of parts) {
      this.#unsent.push(part)
      this.#unsentBytes += part.length
    }
    if (this.#unsentBytes + this.#socket.writableLength > limits.linkUnsentBytesMax)
      this.close('the other node does not read')
  }

  #flush(): void {
    if (this.#unsent.length === 0) return
    const bytes = Buffer.concat(this.#unsent, this.#unsentBytes)
    this.#unsent = []
    this.#unsentBytes = 0
    if (this.#closed !== undefined) this.#socket.write(bytes)
  }

  #end(reason: string): void {
    const closed = this.#closed
    this.#closed = undefined
    closed?.(reason)
  }
}

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
  linked: (socket: TLSSocket) => void,
): Promise<LinkServer> {
  const server = createServer(
    { ...cipher, pskCallback: () => key, handshakeTimeout: limits.linkHandshakeMs },
    linked,
  )
  server.maxConnections = limits.linksMax
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

/** Reaches another node. @throws Error when it does not answer in time, or has another key */
export async function connectLink({
  host,
  port,
  key,
}: {
  host: string
  port: number
  key: Buffer
}): Promise<TLSSocket> {
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
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}
