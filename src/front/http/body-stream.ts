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
  exchange.body.read((part, last) => {
    if (!exchange.open) return
    if (part.length > 0) {
      if (!last) exchange.body.pause()
      sink.push(Buffer.from(part), () => exchange.body.resume())
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

/** As `readBody`, for a compressed body. */
function readGzip(exchange: Exchange, memory: BodyMemory, sink: BodySink): () => void {
  if (!memory.reserve(limits.gunzipBytes)) return () => {}
  const gunzip = inflate(exchange, sink)
  gunzip.on('data', (bytes: Buffer) => {
    gunzip.pause()
    sink.push(bytes, () => gunzip.resume())
  })
  gunzip.on('end', () => sink.end())
  exchange.body.read((part, last) => {
    if (!exchange.open) return
    if (part.length > 0) {
      if (!last) exchange.body.pause()
      // Written when its output has been read, but for some kilobytes.
      gunzip.write(Buffer.from(part), () => exchange.body.resume())
    }
    if (last) gunzip.end()
  })
  return () => gunzip.destroy()
}

function inflate(exchange: Exchange, sink: BodySink): Gunzip {
  const gunzip = createGunzip({ chunkSize: limits.gunzipPieceBytes })
  gunzip.on('error', () => sink.fail(refuse('validation_failed', 'Expected a complete gzip stream')))
  exchange.onDisconnect(() => gunzip.destroy())
  return gunzip
}
