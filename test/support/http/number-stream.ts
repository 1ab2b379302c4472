import { connect, type Socket } from 'node:net'
import type { ServerAddress } from '../server/server.js'

/** A stream that keeps the numbers of its records, in the order that they came. It connects again as clients do. */
export class NumberStream {
  readonly numbers: number[] = []
  caughtUp = false
  /** How often it has connected. */
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

  /** Reads nothing from now on. */
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
    const goOn = this.#lastId === '' ? '' : `Last-Event-ID: ${this.#lastId}\r\n`
    socket.write(
      `GET /v1/agents/${this.#agent}/stream HTTP/1.1\r\nHost: a\r\n` +
        `Authorization: Bearer ${this.#server.rootKey}\r\n${goOn}\r\n`,
    )
    this.#rest = ''
    this.connections++
    socket.on('data', (bytes: Buffer) => this.#read(bytes.toString('latin1')))
    socket.on('error', () => undefined)
    // A reader that stands still for ten seconds is hung up on, not told nothing.
    socket.on('close', () => {
      if (!this.#closed) this.#socket = this.#connect()
    })
    return socket
  }

  /** Chunks of the transfer coding may lie within an event, so only what tells of one is looked for. */
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
