import type { IncomingMessage, ServerResponse } from 'node:http'
import ipaddr from 'ipaddr.js'
import { limits } from '../../base/limits/limits.js'
import type { HttpResponse } from './door.js'

/** Written in one go: more than the socket's buffer would be copied, and not known to be taken. */
const PIECE_BYTES = 64 * 1024

const noBytes = new Uint8Array()

/** Where a response stands with its connection. */
export interface ConnectionWatch {
  /** The answer is out, or in the connection's buffer: the next request may come. */
  finished(): void
}

/** The answer to a request of node:http. */
export class NodeResponse implements HttpResponse {
  readonly #request: IncomingMessage
  readonly #reply: ServerResponse
  readonly #watch: ConnectionWatch
  readonly #headers: string[] = []
  #status = '200 OK'
  #hasHead = false
  #corked = false
  #offset = 0
  #ended = false
  #gone = false
  /** Something is held back, and `onWritable` is to be called once it is not. */
  #isWaiting = false
  #onWritable: ((offset: number) => boolean) | undefined
  #onAborted: (() => void) | undefined
  #patience: NodeJS.Timeout | undefined
  /** Bytes of the body since the client's time began to run. */
  #bodyBytes = 0
  #wholeBody = false

  constructor(request: IncomingMessage, reply: ServerResponse, watch: ConnectionWatch) {
    this.#request = request
    this.#reply = reply
    this.#watch = watch
    reply.sendDate = false
    // Says so itself where it is asked to: then and only then it stands in the answer.
    reply.removeHeader('connection')
    reply.on('close', () => this.#close())
    // Without a listener, a connection that is reset would be an error that nobody takes.
    reply.on('error', () => {})
    request.on('error', () => {})
    if (request.headers['transfer-encoding'] !== undefined)
      joinChunks(request, { tooMany: () => request.socket.destroy() })
  }

  /** Some of the answer is out, or on its way. */
  get begun(): boolean {
    return this.#hasHead
  }

  /** The request has arrived, its body too. */
  get wholeBody(): boolean {
    return this.#request.complete
  }

  cork(write: () => void): void {
    this.#corked = true
    write()
    this.#corked = false
    if (this.#hasHead && !this.#gone && this.#offset === 0) this.#flushHead()
  }

  writeStatus(status: string): void {
    this.#status = status
  }

  writeHeader(name: string, value: string): void {
    this.#headers.push(name, value)
  }

  write(part: string | Uint8Array): boolean {
    if (this.#gone) return false
    this.#head(undefined)
    this.#pass(part)
    return this.#isDrained()
  }

  end(body?: string | Uint8Array): void {
    if (this.#gone) return
    this.#head(Buffer.byteLength(body ?? ''))
    this.#finish(body)
  }

  endWithoutBody(): void {
    if (this.#gone) return
    this.#head(undefined)
    this.#finish(undefined)
  }

  tryEnd(part: string | Uint8Array, totalBytes: number): [taken: boolean, finished: boolean] {
    if (this.#gone) return [false, false]
    this.#head(totalBytes)
    const bytes = typeof part === 'string' ? Buffer.from(part) : part
    let at = 0
    while (at < bytes.length && this.#isDrained()) {
      const piece = bytes.subarray(at, at + PIECE_BYTES)
      // Of its own: the caller may reuse its bytes, and the connection may hold these. A Buffer's `slice` is no copy.
      this.#pass(new Uint8Array(piece))
      at += piece.length
    }
    if (this.#offset === totalBytes) this.#finish(undefined)
    return [at === bytes.length && this.#isDrained(), this.#ended]
  }

  getWriteOffset(): number {
    return this.#offset
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#onWritable = handler
  }

  onAborted(handler: () => void): void {
    this.#onAborted = handler
  }

  onData(handler: (part: ArrayBuffer, isLast: boolean) => void): void {
    const length = Number(this.#request.headers['content-length'] ?? Number.NaN)
    let received = 0
    const deliver = (part: Uint8Array, isLast: boolean) => {
      this.#wholeBody = isLast
      if (isLast) this.#calm()
      if (!this.#gone) handler(ownBytes(part), isLast)
    }
    this.#hurry()
    this.#request.on('data', (part: Buffer) => {
      received += part.length
      this.#bodyBytes += part.length
      if (this.#bodyBytes >= limits.bodyBytesPerPatience) this.#hurry()
      deliver(part, received === length)
    })
    this.#request.on('end', () => {
      if (!this.#wholeBody) deliver(noBytes, true)
    })
  }

  pause(): void {
    this.#calm()
    this.#request.pause()
  }

  resume(): void {
    if (!this.#wholeBody) this.#hurry()
    this.#request.resume()
  }

  close(): void {
    if (this.#gone) return
    this.#close()
    this.#request.socket.destroy()
  }

  getRemoteAddress(): ArrayBuffer {
    const { remoteAddress } = this.#request.socket
    return new Uint8Array(remoteAddress === undefined ? [] : ipaddr.parse(remoteAddress).toByteArray()).buffer
  }

  #isDrained(): boolean {
    if (this.#request.socket.writableLength === 0) return true
    this.#isWaiting = true
    this.#request.socket.setTimeout(limits.connectionPatienceMs)
    return false
  }

  #head(length: number | undefined): void {
    if (this.#hasHead) return
    this.#hasHead = true
    this.#headers.push('Date', httpDate())
    if (length !== undefined) this.#headers.push('Content-Length', String(length))
    const [code = '', ...text] = this.#status.split(' ')
    this.#reply.writeHead(Number(code), text.join(' '), this.#headers)
    if (!this.#corked) this.#flushHead()
  }

  #flushHead(): void {
    this.#reply.flushHeaders()
    this.#request.socket.uncork()
  }

  /** Hands a part to the socket at once: what the kernel does not take shows in its length. */
  #pass(part: string | Uint8Array): void {
    this.#offset += Buffer.byteLength(part)
    this.#reply.write(part, this.#passed)
    this.#request.socket.uncork()
  }

  readonly #passed = () => {
    if (!this.#isWaiting || this.#gone || this.#request.socket.writableLength > 0) return
    this.#isWaiting = false
    this.#request.socket.setTimeout(0)
    this.#onWritable?.(this.#offset)
  }

  #finish(body: string | Uint8Array | undefined): void {
    this.#ended = true
    this.#gone = true
    this.#calm()
    this.#request.resume()
    this.#watch.finished()
    // A client that does not read the rest is hung up on; once it has it, Node waits for its next request as long.
    this.#request.socket.setTimeout(limits.connectionPatienceMs)
    this.#reply.end(body)
  }

  #close(): void {
    this.#calm()
    if (this.#gone) return
    this.#gone = true
    this.#onAborted?.()
  }

  /** Gives the client its time to send more of the body. */
  #hurry(): void {
    this.#calm()
    if (this.#gone) return
    this.#patience = setTimeout(() => this.close(), limits.connectionPatienceMs)
  }

  #calm(): void {
    this.#bodyBytes = 0
    clearTimeout(this.#patience)
  }
}

/**
 * The bytes of a part in a buffer that has no others: most parts have one of their own, which is not copied. Parts that
 * the stream has joined may lie in Node's pool.
 */
function ownBytes(part: Uint8Array): ArrayBuffer {
  const { buffer } = part
  return buffer instanceof ArrayBuffer && buffer.byteLength === part.byteLength
    ? buffer
    : new Uint8Array(part).buffer
}

let dateText = ''
let dateSecond = 0

/** The time as HTTP writes it; made once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1_000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1_000).toUTCString()
  }
  return dateText
}

/** What follows from the chunks of a body. */
interface ChunkWatch {
  /** Called once when too many of them arrive together: the connection is to be closed. */
  tooMany(): void
}

/**
 * Joins the chunks of a chunked body that arrive together, before Node's stream has each of them go its way: that costs
 * ten times what it costs to copy a chunk of one byte. Node's parser hands on all of a read of 64 KiB at once, so one that
 * consists of many chunks is the last of its turn of the event loop, and others are served before the next one. From then on
 * nothing is passed on in that turn: a stream that takes a part resumes its socket.
 */
function joinChunks(request: IncomingMessage, watch: ChunkWatch): void {
  const { socket } = request
  const pass = request.push.bind(request)
  let joined: Uint8Array | undefined
  let bytes = 0
  let count = 0
  let over = false
  /** Parts that wait for the next turn. */
  const held: Uint8Array[] = []

  const hold = () => {
    if (joined === undefined || bytes === 0) return
    // A copy of its size: the stream may store it for long.
    held.push(joined.slice(0, bytes))
    bytes = 0
  }
  const flush = () => {
    hold()
    let takesMore = true
    for (const part of held.splice(0)) takesMore = pass(part)
    return takesMore
  }
  const turned = () => {
    if (over || socket.destroyed) return
    const isMany = count > limits.chunksPerTurn
    count = 0
    // The stream resumes the socket when it has room again.
    if (!flush()) socket.pause()
    else if (isMany) socket.resume()
    joined = undefined
  }
  const add = (part: Uint8Array) => {
    if (over) return true
    count++
    if (count === 1) setImmediate(turned)
    else if (count === limits.chunksPerTurn + 1) socket.pause()
    else if (count > limits.chunksPerTurnMax) {
      over = true
      watch.tooMany()
      return true
    }
    const waits = count > limits.chunksPerTurn
    if (bytes + part.length > limits.chunksGatheredBytes) {
      if (waits) hold()
      else flush()
    }
    if (part.length > limits.chunksGatheredBytes) {
      if (!waits) return pass(part)
      held.push(part)
      return true
    }
    joined ??= new Uint8Array(limits.chunksGatheredBytes)
    joined.set(part, bytes)
    bytes += part.length
    return true
  }
  request.push = (part: Uint8Array | null) => {
    if (part !== null) return add(part)
    if (!over) flush()
    return pass(null)
  }
}
