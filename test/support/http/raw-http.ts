import { connect, type Socket } from 'node:net'
import type { TestServer } from '../server/server.js'

/** The data received on a raw connection, and how it ended. */
export interface RawAnswer {
  text: string
  /** Status codes of the answers, in order. */
  statuses: number[]
  /** How the server ended the connection; undefined if it is open. */
  ended: 'end' | 'reset' | undefined
}

/** A TCP connection to a server, on which a test sends any bytes. */
export class RawConnection {
  readonly socket: Socket
  /** The local port, also known after the end. */
  readonly port: number
  #text = ''
  #ended: RawAnswer['ended']
  #wake: (() => void) | undefined

  private constructor(socket: Socket) {
    this.socket = socket
    this.port = socket.localPort ?? 0
    socket.on('data', (bytes: Buffer) => {
      this.#text += bytes.toString('latin1')
      this.#wake?.()
    })
    socket.on('end', () => this.#end('end'))
    socket.on('error', () => this.#end('reset'))
    socket.on('close', () => this.#end('end'))
  }

  /** Connects. `allowHalfOpen` is off: when the server ends the connection, so does this side. */
  static open(server: TestServer): Promise<RawConnection> {
    const { hostname, port } = new URL(server.url)
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new RawConnection(socket))
      })
    })
  }

  get answer(): RawAnswer {
    const statuses = [...this.#text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]))
    return { text: this.#text, statuses, ended: this.#ended }
  }

  /** Writes; buffers bytes that the kernel does not accept yet. Does nothing if the connection has ended. */
  write(data: string | Uint8Array): void {
    if (this.#ended === undefined)
      this.socket.write(typeof data === 'string' ? Buffer.from(data, 'latin1') : data)
  }

  /** Resolves when `holds` returns true; checks after every event of the connection. */
  async until(holds: (answer: RawAnswer) => boolean): Promise<RawAnswer> {
    while (!holds(this.answer)) {
      if (this.#ended !== undefined)
        throw new Error(`The connection ended first: ${JSON.stringify(this.answer)}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    return this.answer
  }

  /** Resolves with all received data when the server has ended the connection. */
  ended(): Promise<RawAnswer> {
    return this.until(({ ended }) => ended !== undefined)
  }

  destroy(): void {
    this.socket.destroy()
  }

  #end(how: 'end' | 'reset'): void {
    this.#ended ??= how
    this.#wake?.()
  }
}
