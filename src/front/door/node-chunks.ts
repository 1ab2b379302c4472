import type { IncomingMessage } from 'node:http'
import { limits } from '../../base/limits/limits.js'

/** What follows from the chunks of a body. */
export interface ChunkWatch {
  /** Called once when too many of them arrive together: the connection is to be closed. */
  tooMany(): void
}

/**
 * Joins the chunks of a chunked body that arrive together, before Node's stream has each of them go its way: that costs
 * ten times what it costs to copy a chunk of one byte. Node's parser hands on all of a read of 64 KiB at once, so one that
 * consists of many chunks is the last of its turn of the event loop, and others are served before the next one.
 */
export function joinChunks(request: IncomingMessage, watch: ChunkWatch): void {
  const { socket } = request
  const pass = request.push.bind(request)
  let joined: Uint8Array | undefined
  let bytes = 0
  let count = 0
  let over = false

  const flush = () => {
    if (joined === undefined || bytes === 0) return true
    // Of its own size: the stream may keep it for long.
    const part = joined.slice(0, bytes)
    bytes = 0
    return pass(part)
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
    if (bytes + part.length > limits.chunksGatheredBytes) flush()
    if (part.length > limits.chunksGatheredBytes) return pass(part)
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
