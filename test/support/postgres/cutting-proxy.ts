import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A TCP proxy that can be told to cut what the server answers. */
export interface CuttingProxy {
  port: number
  /**
   * Lets so many bytes of the next answers through, counted from now, and then cuts the connection, once.
   * @returns what resolves when it was cut
   */
  cutAfter(bytes: number): Promise<void>
  /** Passes nothing on any more, in either direction, without closing anything; `heal` ends it. */
  silence(): void
  heal(): void
  /** Bytes that the server has answered since the start. */
  readonly answered: number
  stop(): Promise<void>
}

/** Starts one in front of a port of this machine. */
export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  let answered = 0
  let left = Infinity
  let isSilent = false
  let onCut = () => {}
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => sockets.delete(socket))
    }
    client.on('data', (bytes) => isSilent || upstream.write(bytes))
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())
    upstream.on('data', (bytes: Buffer) => {
      if (isSilent) return
      answered += bytes.length
      if (bytes.length <= left) {
        left -= bytes.length
        client.write(bytes)
        return
      }
      client.end(bytes.subarray(0, left))
      // The database goes on with what it was asked: it learns later that nobody listens.
      left = Infinity
      onCut()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  return {
    port: address.port,
    cutAfter(bytes) {
      left = bytes
      return new Promise((resolve) => {
        onCut = resolve
      })
    },
    silence: () => void (isSilent = true),
    heal: () => void (isSilent = false),
    get answered() {
      return answered
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
