import { createGunzip, type Gunzip } from 'node:zlib'
import { asBuffer, byteOrderMark, withoutByteOrderMark } from '../../base/bytes.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Exchange } from './exchange.js'
import type { BodyMemory } from '../../base/gathered-bytes.js'

/** Receives the bytes of a body, after decompression. */
export interface BodySink {
  /** Receives bytes, which it may keep; calls `more` when it is ready for more. */
  push(bytes: Buffer, more: () => void): void
  end(): void
  /** Called if the rest of the body cannot be read. */
  fail(refusal: Refusal): void
}

/** How a body is read. */
export interface BodyReading {
  gzip: boolean
  /** Counts the memory that decompression takes. */
  memory: BodyMemory
  /** The body is not text: a byte order mark is part of it. */
  isBinary?: boolean | undefined
}

/**
 * Passes a body to a sink at the sink's pace: the connection is paused until the sink is ready for more.
 * @returns a function to call when no more of the body is needed
 */
export function readBody(exchange: Exchange, reading: BodyReading, body: BodySink): () => void {
  const { gzip, memory, isBinary = false } = reading
  const sink = isBinary ? body : skipByteOrderMark(body)
  if (gzip) return readGzip(exchange, memory, sink)
  let whole = false
  exchange.onData((part, last) => {
    if (!exchange.open) return
    whole = last
    if (part.byteLength > 0) {
      if (!last) exchange.pause()
      sink.push(Buffer.from(new Uint8Array(part)), () => resumeUnless(whole, exchange))
    }
    if (last) sink.end()
  })
  return () => {}
}

/** Removes a byte order mark at the beginning of a body, however small its parts are. */
export function skipByteOrderMark(sink: BodySink): BodySink {
  /** Possible first bytes of the mark; undefined once it is past. */
  let begun: Buffer | undefined = Buffer.alloc(0)
  return {
    push(bytes, more) {
      if (begun === undefined) {
        sink.push(bytes, more)
        return
      }
      const all: Buffer = begun.length === 0 ? bytes : Buffer.concat([begun, bytes])
      const isPart = all.length < byteOrderMark.length && all.every((byte, at) => byte === byteOrderMark[at])
      begun = isPart ? all : undefined
      const rest = isPart ? noBytes : asBuffer(withoutByteOrderMark(all))
      if (rest.length === 0) more()
      else sink.push(rest, more)
    },
    end() {
      if (begun !== undefined && begun.length > 0) sink.push(begun, () => {})
      sink.end()
    },
    fail: (refusal) => sink.fail(refusal),
  }
}

const noBytes = Buffer.alloc(0)

/**
 * Lets more of a body arrive, unless it is complete: uWebSockets.js would then expect more from the client,
 * and close the connection if the answer takes longer than ten seconds. Answering resumes the connection.
 */
function resumeUnless(whole: boolean, exchange: Exchange): void {
  if (!whole) exchange.resume()
}

/**
 * As `readBody`, for a compressed body. Reads some compressed bytes ahead: uWebSockets.js closes a connection
 * that sends less than 16 KiB per second, and storing what well-compressed bytes expand to can take longer
 * than that.
 */
function readGzip(exchange: Exchange, memory: BodyMemory, sink: BodySink): () => void {
  if (!memory.add(limits.gunzipBytes)) return () => {}
  const gunzip = inflate(exchange, sink)
  let paused = false
  let whole = false
  gunzip.on('data', (bytes: Buffer) => {
    gunzip.pause()
    sink.push(bytes, () => gunzip.resume())
    if (paused && gunzip.writableLength < limits.ingestReadAheadBytes / 2) {
      paused = false
      resumeUnless(whole, exchange)
    }
  })
  gunzip.on('end', () => sink.end())
  exchange.onData((part, last) => {
    if (!exchange.open) return
    whole = last
    const { byteLength } = part
    if (byteLength > 0 && memory.add(byteLength))
      gunzip.write(Buffer.from(new Uint8Array(part)), () => memory.release(byteLength))
    if (last) gunzip.end()
    else if (gunzip.writableLength > limits.ingestReadAheadBytes) {
      paused = true
      exchange.pause()
    }
  })
  return () => gunzip.destroy()
}

function inflate(exchange: Exchange, sink: BodySink): Gunzip {
  const gunzip = createGunzip({ chunkSize: limits.gunzipPieceBytes })
  gunzip.on('error', () => sink.fail(refuse('validation_failed', 'Expected a complete gzip stream')))
  exchange.onDisconnect(() => gunzip.destroy())
  return gunzip
}

/**
 * Refuses a request whose body may still be arriving. Resumes a paused connection so that the rest is
 * skipped.
 */
export function refuseAndSkipBody(exchange: Exchange, refusal: Refusal): void {
  exchange.resume()
  exchange.refuse(refusal)
}
