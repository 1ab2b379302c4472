import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** What a client sends, or its server answers. */
export type Direction = 'requests' | 'answers'

/** A TCP proxy that simulates network faults. */
export interface TcpProxy {
  readonly port: number
  /** Bytes answered by the server since the start. */
  readonly answered: number
  /**
   * Passes exactly `bytes` more bytes of answers, then cuts the connection, once.
   * @returns resolves when the connection was cut
   */
  cutAfter(bytes: number): Promise<void>
  /**
   * Holds everything, in both directions or one, without closing connections; it arrives after `heal`, like
   * retransmitted packets.
   */
  hold(...directions: Direction[]): void
  /** Adds a delay in each direction. */
  delay(ms: number): void
  /**
   * Limits the bytes per second in each direction, of all connections together; connections are served
   * round-robin, and none may buffer much.
   */
  limit(bytesPerSec: number): void
  /** Passes everything again without delay, beginning with what was held. */
  heal(): void
  /**
   * Drops everything on the present connections in both directions, without closing them, like a firewall
   * that has forgotten them; new connections pass.
   * @param idleMs only connections that have passed nothing for so long
   */
  forget(idleMs: number): void
  /** Breaks all connections; held bytes are lost. */
  break(): void
  stop(): Promise<void>
}

/** Changes the answers of one connection. */
export type AnswerFilter = () => (bytes: Buffer) => Buffer

const both: readonly Direction[] = ['requests', 'answers']

/** State shared by all connections of a proxy. */
interface ProxyState {
  held: Set<Direction>
  delayMs: number
  /** By direction, if there is a limit. */
  limiters: Map<Direction, RateLimiter>
  answered: number
  /** Bytes until the cut. */
  left: number
  onCut(): void
}

/**
 * Starts a proxy in front of a port of this machine.
 * @param target the port, or a function that returns it for each connection
 */
export async function startTcpProxy(
  target: number | (() => number),
  filter: AnswerFilter = () => asIs,
): Promise<TcpProxy> {
  const state: ProxyState = {
    held: new Set(),
    delayMs: 0,
    limiters: new Map(),
    answered: 0,
    left: Infinity,
    onCut: () => {},
  }
  const pipes = new Set<Pipe>()
  const sockets = new Set<Socket>()
  const connections = new Set<{ usedAtMs: number; isForgotten: boolean }>()
  // As on a network, the end of one direction is passed on only after the other side has read everything.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const port = typeof target === 'number' ? target : target()
    const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const connection = { usedAtMs: performance.now(), isForgotten: false }
    connections.add(connection)
    const change = filter()
    const requests = new Pipe(state, 'requests', (bytes) =>
      bytes === null ? upstream.end() : upstream.write(bytes),
    )
    const answers = new Pipe(state, 'answers', (bytes) => answer(state, client, bytes && change(bytes)))
    for (const [socket, pipe] of [
      [client, requests],
      [upstream, answers],
    ] as const) {
      pipe.source = socket
      pipes.add(pipe)
      sockets.add(socket)
      socket.on('error', () => {})
      const take = (bytes: Buffer | null) => {
        if (connection.isForgotten) return
        connection.usedAtMs = performance.now()
        pipe.take(bytes)
      }
      socket.on('data', take)
      socket.once('end', () => take(null))
      socket.once('close', () => {
        take(null)
        sockets.delete(socket)
        connections.delete(connection)
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
      return state.answered
    },
    cutAfter(bytes) {
      state.left = bytes
      return new Promise((resolve) => {
        state.onCut = resolve
      })
    },
    hold(...directions) {
      for (const direction of directions.length === 0 ? both : directions) state.held.add(direction)
    },
    delay: (ms) => void (state.delayMs = ms),
    limit(bytesPerSec) {
      for (const direction of both) state.limiters.set(direction, new RateLimiter(bytesPerSec))
    },
    heal() {
      state.held.clear()
      state.delayMs = 0
      state.limiters.clear()
      pump()
    },
    forget(idleMs) {
      for (const one of connections) if (performance.now() - one.usedAtMs >= idleMs) one.isForgotten = true
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

/** Bytes that a connection sends in its turn, and that it may buffer. */
const [TURN_BYTES, AHEAD_BYTES] = [4_096, 65_536]

/** Limits the bytes per second in one direction. */
class RateLimiter {
  readonly #bytesPerSec: number
  readonly #pipes = new Set<Pipe>()
  #freeAtMs = 0
  #isDue = false

  constructor(bytesPerSec: number) {
    this.#bytesPerSec = bytesPerSec
  }

  send(pipe: Pipe): void {
    this.#pipes.add(pipe)
    if (this.#isDue) return
    this.#isDue = true
    setTimeout(() => this.#sendDue(), this.#freeAtMs - performance.now())
  }

  #sendDue(): void {
    this.#isDue = false
    this.#freeAtMs = Math.max(this.#freeAtMs, performance.now() - 10)
    for (const pipe of this.#pipes) {
      if (this.#freeAtMs > performance.now()) break
      const bytes = pipe.passSome(TURN_BYTES)
      this.#freeAtMs += (bytes / this.#bytesPerSec) * 1_000
      // A held pipe waits until it is healed.
      this.#pipes.delete(pipe)
      if (bytes > 0 && !pipe.isEmpty) this.#pipes.add(pipe)
    }
    const [next] = this.#pipes
    if (next !== undefined) this.send(next)
  }
}

/** One direction of one connection: a queue of bytes in order, and null at its end. */
class Pipe {
  readonly #state: ProxyState
  readonly #direction: Direction
  readonly #write: (bytes: Buffer | null) => void
  #queue: { bytes: Buffer | null; dueMs: number }[] = []
  #timer: NodeJS.Timeout | undefined
  #bytes = 0
  /** Paused while too much is queued. */
  source: Socket | undefined

  constructor(state: ProxyState, direction: Direction, write: (bytes: Buffer | null) => void) {
    this.#state = state
    this.#direction = direction
    this.#write = write
  }

  take(bytes: Buffer | null): void {
    this.#queue.push({ bytes, dueMs: performance.now() + this.#state.delayMs })
    this.#bytes += bytes?.length ?? 0
    if (this.#state.limiters.size > 0 && this.#bytes > AHEAD_BYTES) this.source?.pause()
    this.pump()
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0
  }

  /** Passes some bytes. @returns how many */
  passSome(bytesMax: number): number {
    const [next] = this.#queue
    if (next === undefined || this.#state.held.has(this.#direction)) return 0
    const some = next.bytes?.subarray(0, bytesMax) ?? null
    if (some === null || some.length === next.bytes?.length) this.#queue.shift()
    else next.bytes = next.bytes?.subarray(bytesMax) ?? null
    this.#pass(some)
    return some?.length ?? 0
  }

  #pass(bytes: Buffer | null): void {
    this.#bytes -= bytes?.length ?? 0
    if (this.#bytes <= AHEAD_BYTES) this.source?.resume()
    this.#write(bytes)
  }

  pump(): void {
    clearTimeout(this.#timer)
    const limiter = this.#state.limiters.get(this.#direction)
    if (limiter !== undefined) {
      if (!this.isEmpty) limiter.send(this)
      return
    }
    while (!this.#state.held.has(this.#direction)) {
      const [next] = this.#queue
      if (next === undefined) return
      // The end of a connection does not wait for a delay that is over.
      const leftMs = this.#state.delayMs === 0 ? 0 : next.dueMs - performance.now()
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.pump(), leftMs)
        return
      }
      this.#queue.shift()
      this.#pass(next.bytes)
    }
  }

  lose(): void {
    clearTimeout(this.#timer)
    this.#bytes = 0
    this.#queue = []
  }
}

/** Passes an answer up to the position of a cut. */
function answer(state: ProxyState, client: Socket, bytes: Buffer | null): void {
  if (client.destroyed || client.writableEnded) return
  if (bytes === null) {
    client.end()
    return
  }
  state.answered += bytes.length
  if (bytes.length <= state.left) {
    state.left -= bytes.length
    client.write(bytes)
    return
  }
  client.end(bytes.subarray(0, state.left))
  // The database continues with the request: it learns later that the client is disconnected.
  state.left = Infinity
  state.onCut()
}
