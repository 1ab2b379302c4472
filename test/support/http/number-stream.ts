import { connect, type Socket } from 'node:net'
import type { ServerAddress } from '../server/server.js'

/** A stream that records the numbers of its records in order. It reconnects like other clients. */
export class NumberStream {
  readonly numbers: number[] = []
  caughtUp = false
  /** Number of connections so far. */
  connections = 0
  readonly #server: ServerAddress
  readonly #agent: string
  #socket: Socket
  #lastId = ''
  #rest = ''
  #closed = false

  constructor(server: ServerAddress, agent: string) {
    this.#server = server
    this.#agent = agent
    this.#socket = this.#connect()
  }

  /** Stops reading. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #connect(): Socket {
    const { hostname, port } = new URL(this.#server.url)
    const socket = connect({ host: hostname, port: Number(port) })
    const lastEventId = this.#lastId === '' ? '' : `Last-Event-ID: ${this.#lastId}\r\n`
    socket.write(
      `GET /v1/agents/${this.#agent}/stream HTTP/1.1\r\nHost: a\r\n` +
        `Authorization: Bearer ${this.#server.rootKey}\r\n${lastEventId}\r\n`,
    )
    this.#rest = ''
    this.connections++
    socket.on('data', (bytes: Buffer) => this.#read(bytes.toString('latin1')))
    socket.on('error', () => undefined)
    // The server closes the connection of a client that reads nothing for ten seconds.
    socket.on('close', () => {
      if (!this.#closed) this.#socket = this.#connect()
    })
    return socket
  }

  /**
   * Chunk boundaries of the transfer coding can be inside an event, so only parts of events are searched for.
   */
  #read(text: string): void {
    const all = this.#rest + text
    const end = all.lastIndexOf('\n\n')
    if (end === -1) {
      this.#rest = all
      return
    }
    const whole = all.slice(0, end)
    this.#rest = all.slice(end)
    if (whole.includes('event: caught_up')) this.caughtUp = true
    for (const [, number] of whole.matchAll(/"n":(\d+)[,}]/g)) this.numbers.push(Number(number))
    for (const [, id] of whole.matchAll(/id: (\d+)\n/g)) this.#lastId = id ?? ''
  }
}
