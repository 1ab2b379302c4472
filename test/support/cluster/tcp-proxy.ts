import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** What a client sends, or what its server answers. */
export type Direction = 'requests' | 'answers'

/** A TCP proxy that does to connections what networks do. */
export interface TcpProxy {
  readonly port: number
  /** Bytes that the server has answered since the start. */
  readonly answered: number
  /**
   * Lets so many bytes of the next answers through, counted from now, and then cuts the connection, once.
   * @returns what resolves when it was cut
   */
  cutAfter(bytes: number): Promise<void>
  /** Passes nothing on any more, both ways or one, and closes nothing: it comes after `heal`, as when packets are sent again. */
  hold(...directions: Direction[]): void
  /** Has everything take so much longer, each way. */
  delay(ms: number): void
  /** Passes so many bytes a second on, each way, of all connections together: each has its turn, and none may send far ahead. */
  limit(bytesPerSec: number): void
  /** Passes on at once again, and what was held first. */
  heal(): void
  /** Breaks all connections; what is held of them is lost. */
  break(): void
  stop(): Promise<void>
}

/** Changes the answers of one connection. */
export type AnswerFilter = () => (bytes: Buffer) => Buffer

const both: readonly Direction[] = ['requests', 'answers']

/** What holds for all connections of a proxy. */
interface Weather {
  held: Set<Direction>
  delayMs: number
  /** By their directions, where there is a limit. */
  wires: Map<Direction, Wire>
  answered: number
  /** Bytes until a cut. */
  left: number
  onCut(): void
}

/**
 * Starts a proxy in front of a port of this machine.
 * @param target the port, or what says it whenever somebody connects
 */
export async function startTcpProxy(
  target: number | (() => number),
  filter: AnswerFilter = () => asIs,
): Promise<TcpProxy> {
  const weather: Weather = {
    held: new Set(),
    delayMs: 0,
    wires: new Map(),
    answered: 0,
    left: Infinity,
    onCut: () => {},
  }
  const pipes = new Set<Pipe>()
  const sockets = new Set<Socket>()
  // An end that came through is not answered before the other side has read everything, as on a network.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const port = typeof target === 'number' ? target : target()
    const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const change = filter()
    const requests = new Pipe(weather, 'requests', (bytes) =>
      bytes === null ? upstream.end() : upstream.write(bytes),
    )
    const answers = new Pipe(weather, 'answers', (bytes) => answer(weather, client, bytes && change(bytes)))
    for (const [socket, pipe] of [
      [client, requests],
      [upstream, answers],
    ] as const) {
      pipe.source = socket
      pipes.add(pipe)
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('data', (bytes) => pipe.take(bytes))
      socket.once('end', () => pipe.take(null))
      socket.once('close', () => {
        pipe.take(null)
        sockets.delete(socket)
        if (!client.destroyed || !upstream.destroyed) return
        pipes.delete(requests)
        pipes.delete(answers)
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  const pump = () => {
    for (const pipe of pipes) pipe.pump()
  }
  const breakAll = () => {
    for (const pipe of pipes) pipe.lose()
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: address.port,
    get answered() {
      return weather.answered
    },
    cutAfter(bytes) {
      weather.left = bytes
      return new Promise((resolve) => {
        weather.onCut = resolve
      })
    },
    hold(...directions) {
      for (const direction of directions.length === 0 ? both : directions) weather.held.add(direction)
    },
    delay: (ms) => void (weather.delayMs = ms),
    limit(bytesPerSec) {
      for (const direction of both) weather.wires.set(direction, new Wire(bytesPerSec))
    },
    heal() {
      weather.held.clear()
      weather.delayMs = 0
      weather.wires.clear()
      pump()
    },
    break: breakAll,
    async stop() {
      breakAll()
      server.close()
      await once(server, 'close')
    },
  }
}

const asIs = (bytes: Buffer) => bytes

/** Bytes that one connection sends before another has its turn, and that it may be ahead. */
const [TURN_BYTES, AHEAD_BYTES] = [4_096, 65_536]

/** A line that takes so many bytes a second, in one direction. */
class Wire {
  readonly #bytesPerSec: number
  readonly #waiting = new Set<Pipe>()
  #freeAtMs = 0
  #isDue = false

  constructor(bytesPerSec: number) {
    this.#bytesPerSec = bytesPerSec
  }

  send(pipe: Pipe): void {
    this.#waiting.add(pipe)
    if (this.#isDue) return
    this.#isDue = true
    setTimeout(() => this.#goOn(), this.#freeAtMs - performance.now())
  }

  #goOn(): void {
    this.#isDue = false
    this.#freeAtMs = Math.max(this.#freeAtMs, performance.now() - 10)
    for (const pipe of this.#waiting) {
      if (this.#freeAtMs > performance.now()) break
      const bytes = pipe.giveSome(TURN_BYTES)
      this.#freeAtMs += (bytes / this.#bytesPerSec) * 1_000
      // One that is held waits until it is healed.
      this.#waiting.delete(pipe)
      if (bytes > 0 && !pipe.isEmpty) this.#waiting.add(pipe)
    }
    const [next] = this.#waiting
    if (next !== undefined) this.send(next)
  }
}

/** One direction of one connection: bytes in their order, and null where it ends. */
class Pipe {
  readonly #weather: Weather
  readonly #direction: Direction
  readonly #give: (bytes: Buffer | null) => void
  #queue: { bytes: Buffer | null; dueMs: number }[] = []
  #timer: NodeJS.Timeout | undefined
  #bytes = 0
  /** Is not read where too much waits. */
  source: Socket | undefined

  constructor(weather: Weather, direction: Direction, give: (bytes: Buffer | null) => void) {
    this.#weather = weather
    this.#direction = direction
    this.#give = give
  }

  take(bytes: Buffer | null): void {
    this.#queue.push({ bytes, dueMs: performance.now() + this.#weather.delayMs })
    this.#bytes += bytes?.length ?? 0
    if (this.#weather.wires.size > 0 && this.#bytes > AHEAD_BYTES) this.source?.pause()
    this.pump()
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0
  }

  /** Passes some bytes on. @returns how many */
  giveSome(bytesMax: number): number {
    const [next] = this.#queue
    if (next === undefined || this.#weather.held.has(this.#direction)) return 0
    const some = next.bytes?.subarray(0, bytesMax) ?? null
    if (some === null || some.length === next.bytes?.length) this.#queue.shift()
    else next.bytes = next.bytes?.subarray(bytesMax) ?? null
    this.#gives(some)
    return some?.length ?? 0
  }

  #gives(bytes: Buffer | null): void {
    this.#bytes -= bytes?.length ?? 0
    if (this.#bytes <= AHEAD_BYTES) this.source?.resume()
    this.#give(bytes)
  }

  pump(): void {
    clearTimeout(this.#timer)
    const wire = this.#weather.wires.get(this.#direction)
    if (wire !== undefined) {
      if (!this.isEmpty) wire.send(this)
      return
    }
    while (!this.#weather.held.has(this.#direction)) {
      const [next] = this.#queue
      if (next === undefined) return
      // What a connection is destroyed with does not wait for a delay that is over.
      const leftMs = this.#weather.delayMs === 0 ? 0 : next.dueMs - performance.now()
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.pump(), leftMs)
        return
      }
      this.#queue.shift()
      this.#gives(next.bytes)
    }
  }

  lose(): void {
    clearTimeout(this.#timer)
    this.#bytes = 0
    this.#queue = []
  }
}

/** Passes an answer on, up to where it is to be cut. */
function answer(weather: Weather, client: Socket, bytes: Buffer | null): void {
  if (client.destroyed || client.writableEnded) return
  if (bytes === null) {
    client.end()
    return
  }
  weather.answered += bytes.length
  if (bytes.length <= weather.left) {
    weather.left -= bytes.length
    client.write(bytes)
    return
  }
  client.end(bytes.subarray(0, weather.left))
  // The database goes on with what it was asked: it learns later that nobody listens.
  weather.left = Infinity
  weather.onCut()
}
