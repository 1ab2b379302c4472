import type { IncomingMessage, ServerResponse } from 'node:http'
import ipaddr from 'ipaddr.js'
import { limits } from '../../base/limits/limits.js'
import type { HttpResponse } from './http-listener.js'

/** Bytes per write: more than the socket's buffer would be copied, and not known to be sent. */
const PIECE_BYTES = 64 * 1024

const noBytes = new Uint8Array()

/** Notifies the owner of a response's connection. */
export interface ConnectionWatch {
  /** The answer was sent, or is in the connection's buffer: the next request may come. */
  finished(): void
}

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
  #closed = false
  /** Bytes are buffered; `onWritable` will be called when they are sent. */
  #isWaiting = false
  #onWritable: ((offset: number) => boolean) | undefined
  #onAborted: (() => void) | undefined
  #bodyTimer: NodeJS.Timeout | undefined
  /** Bytes of the body since the timer was started. */
  #bodyBytes = 0
  #wholeBody = false

  constructor(request: IncomingMessage, reply: ServerResponse, watch: ConnectionWatch) {
    this.#request = request
    this.#reply = reply
    this.#watch = watch
    reply.sendDate = false
    // Removed here: the header is sent only if the server sets it.
    reply.removeHeader('connection')
    reply.on('close', () => this.#close())
    // Without a listener, a reset connection would be an unhandled error.
    reply.on('error', () => {})
    request.on('error', () => {})
    if (request.headers['transfer-encoding'] !== undefined)
      joinChunks(request, { tooMany: () => request.socket.destroy() })
  }

  get begun(): boolean {
    return this.#hasHead
  }

  /** Whether the whole request has arrived, including its body. */
  get wholeBody(): boolean {
    return this.#request.complete
  }

  cork(write: () => void): void {
    this.#corked = true
    write()
    this.#corked = false
    if (this.#hasHead && !this.#closed && this.#offset === 0) this.#flushHead()
  }

  writeStatus(status: string): void {
    this.#status = status
  }

  writeHeader(name: string, value: string): void {
    this.#headers.push(name, value)
  }

  write(part: string | Uint8Array): boolean {
    if (this.#closed) return false
    this.#head(undefined)
    this.#writePart(part)
    return this.#isDrained()
  }

  end(body?: string | Uint8Array): void {
    if (this.#closed) return
    this.#head(Buffer.byteLength(body ?? ''))
    this.#finish(body)
  }

  endWithoutBody(length?: number, closes = false): void {
    if (this.#closed) return
    if (closes) this.writeHeader('Connection', 'close')
    this.#head(length)
    this.#finish(undefined)
  }

  tryEnd(part: string | Uint8Array, totalBytes: number): [taken: boolean, finished: boolean] {
    if (this.#closed) return [false, false]
    this.#head(totalBytes)
    const bytes = typeof part === 'string' ? Buffer.from(part) : part
    let at = 0
    while (at < bytes.length && this.#isDrained()) {
      const piece = bytes.subarray(at, at + PIECE_BYTES)
      // A copy: the caller may reuse its bytes while the connection buffers these. A Buffer's `slice` does
      // not copy.
      this.#writePart(new Uint8Array(piece))
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
      if (isLast) this.#stopBodyTimer()
      if (!this.#closed) handler(ownBytes(part), isLast)
    }
    this.#startBodyTimer()
    this.#request.on('data', (part: Buffer) => {
      received += part.length
      this.#bodyBytes += part.length
      if (this.#bodyBytes >= limits.bodyBytesPerIdleTime) this.#startBodyTimer()
      deliver(part, received === length)
    })
    this.#request.on('end', () => {
      if (!this.#wholeBody) deliver(noBytes, true)
    })
  }

  pause(): void {
    this.#stopBodyTimer()
    this.#request.pause()
  }

  resume(): void {
    if (!this.#wholeBody) this.#startBodyTimer()
    this.#request.resume()
  }

  close(): void {
    if (this.#closed) return
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
    this.#request.socket.setTimeout(limits.connectionIdleMs)
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

  /**
   * Passes a part to the socket immediately, so that `writableLength` shows what the kernel did not accept.
   */
  #writePart(part: string | Uint8Array): void {
    this.#offset += Buffer.byteLength(part)
    this.#reply.write(part, this.#onPartWritten)
    this.#request.socket.uncork()
  }

  readonly #onPartWritten = () => {
    if (!this.#isWaiting || this.#closed || this.#request.socket.writableLength > 0) return
    this.#isWaiting = false
    this.#request.socket.setTimeout(0)
    this.#onWritable?.(this.#offset)
  }

  #finish(body: string | Uint8Array | undefined): void {
    this.#ended = true
    this.#closed = true
    this.#stopBodyTimer()
    this.#request.resume()
    this.#watch.finished()
    // The connection is closed if the client does not read the rest; after that, Node waits as long for its
    // next request.
    this.#request.socket.setTimeout(limits.connectionIdleMs)
    this.#reply.end(body)
  }

  #close(): void {
    this.#stopBodyTimer()
    if (this.#closed) return
    this.#closed = true
    this.#onAborted?.()
  }

  /** Closes the connection unless more of the body arrives in time. */
  #startBodyTimer(): void {
    this.#stopBodyTimer()
    if (this.#closed) return
    this.#bodyTimer = setTimeout(() => this.close(), limits.connectionIdleMs)
  }

  #stopBodyTimer(): void {
    this.#bodyBytes = 0
    clearTimeout(this.#bodyTimer)
  }
}

/**
 * The bytes of a part in an `ArrayBuffer` that has no other bytes. Most parts have their own buffer, which is
 * not copied; parts that the stream has joined may be in Node's pool.
 */
function ownBytes(part: Uint8Array): ArrayBuffer {
  const { buffer } = part
  return buffer instanceof ArrayBuffer && buffer.byteLength === part.byteLength
    ? buffer
    : new Uint8Array(part).buffer
}

let dateText = ''
let dateSecond = 0

/** The time in HTTP's format; formatted once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1_000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1_000).toUTCString()
  }
  return dateText
}

interface ChunkWatch {
  /** Called once if too many chunks arrive together: the connection must be closed. */
  tooMany(): void
}

/**
 * Joins the chunks of a chunked body that arrive together before they pass through Node's stream, which costs
 * ten times as much as copying a chunk of one byte. Node's parser emits all chunks of a read of 64 KiB
 * synchronously. A read with many chunks is therefore the last one in its turn of the event loop, and other
 * connections are served before the next one. From then on nothing is passed on in that turn, because a
 * stream that takes a part resumes its socket.
 */
function joinChunks(request: IncomingMessage, watch: ChunkWatch): void {
  const { socket } = request
  const pass = request.push.bind(request)
  let joined: Uint8Array | undefined
  let bytes = 0
  let count = 0
  let tooMany = false
  /** Parts that wait for the next turn. */
  const held: Uint8Array[] = []

  const hold = () => {
    if (joined === undefined || bytes === 0) return
    // Copied to its exact size, because the stream may keep it for long.
    held.push(joined.slice(0, bytes))
    bytes = 0
  }
  const flush = () => {
    hold()
    let takesMore = true
    for (const part of held.splice(0)) takesMore = pass(part)
    return takesMore
  }
  const onTurnEnd = () => {
    if (tooMany || socket.destroyed) return
    const isMany = count > limits.chunksPerTurn
    count = 0
    // The stream resumes the socket when its buffer has capacity again.
    if (!flush()) socket.pause()
    else if (isMany) socket.resume()
    joined = undefined
  }
  const add = (part: Uint8Array) => {
    if (tooMany) return true
    count++
    if (count === 1) setImmediate(onTurnEnd)
    else if (count === limits.chunksPerTurn + 1) socket.pause()
    else if (count > limits.chunksPerTurnMax) {
      tooMany = true
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
  const push = (part: Uint8Array | null) => {
    if (part !== null) return add(part)
    if (!tooMany) flush()
    return pass(null)
  }
  request.push = push
}
