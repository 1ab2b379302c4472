import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { isAbsolute, join } from 'node:path'
import { createInterface } from 'node:readline'
import { copyWithinSpace, type Flush } from './space.js'
import type { Clock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import { shardDirectory } from '../directory.js'
import { StorePool } from '../../dispatch/pools/store-pool.js'
import { isFileSystemError } from '../../base/durable-file.js'
import { type ControlAnswer, parseControlRequest } from '../../wire/control.js'

/*
 * The control socket of a running server. A user who can read the data directory can use it. The server
 * copies the stores for `strandfast backup`, because LMDB may lose a commit if another process opens a store
 * that is being written (docs/adr/0020-backup.md).
 */

interface ControlParts {
  path: string
  shards: number
  /** The free space below which the server is read-only, bytes. */
  freeBytesMin: number
  serving(): boolean
  flush: Flush
  nowMs: Clock
  log: Logger
}

/** The name of the socket in the data directory. */
export const controlFile = 'control.sock'

/** The path of a data directory's control socket; on Windows, the name of a pipe. */
export function controlPath(dataDir: string): string {
  if (process.platform !== 'win32') return join(dataDir, controlFile)
  return `\\\\.\\pipe\\strandfast-${createHash('sha256').update(dataDir).digest('hex').slice(0, 32)}`
}

/** The control socket of this process, which holds the lock of the data directory. */
export class Control {
  readonly #parts: ControlParts
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #pool: StorePool | undefined
  #copying: Promise<void> = Promise.resolve()
  #copiedAtMs: number | undefined

  constructor(parts: ControlParts) {
    this.#parts = parts
    // Half open: a client that ends its side learns from the end of this side that its copy was stopped.
    this.#server = createServer({ allowHalfOpen: true }, (socket) => void this.#serve(socket))
  }

  /** When stores were last copied for a backup, complete or not, Unix milliseconds. */
  get copiedAtMs(): number | undefined {
    return this.#copiedAtMs
  }

  /** Listens. If the file system has no sockets or the path is too long, logs this and continues. */
  async open(): Promise<void> {
    const path = controlPath(this.#parts.path)
    try {
      // The socket of a killed server.
      if (process.platform !== 'win32') rmSync(path, { force: true })
      this.#server.listen(path)
      await once(this.#server, 'listening')
      this.#server.on('error', (error) => this.#parts.log.error({ err: error }, 'the control socket failed'))
      if (process.platform !== 'win32') chmodSync(path, 0o600)
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'no control socket: backups are possible only while stopped')
    }
  }

  /** Stops a running copy, for example when the thread of a shard dies, whose store must be closed. */
  abort(): void {
    this.#pool?.stop()
  }

  async close(): Promise<void> {
    this.abort()
    for (const socket of this.#sockets) socket.destroy()
    // Then the copy has closed the stores.
    await this.#copying
    if (!this.#server.listening) return
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => {})
    socket.on('data', () => {
      if (socket.bytesRead > limits.requestBytesMax) socket.destroy()
    })
    const line = await firstLine(socket)
    if (line !== undefined) await this.#execute(socket, line)
    socket.end()
  }

  async #execute(socket: Socket, line: string): Promise<void> {
    const reply = (answer: ControlAnswer) => void socket.write(`${JSON.stringify(answer)}\n`)
    const to = parseControlRequest(line)?.copy_to
    if (to?.length !== this.#parts.shards)
      return reply({ failed: 'The server does not know this request: use a command of the same version' })
    if (this.#pool !== undefined) return reply({ failed: 'Another backup is being made' })
    if (!this.#parts.serving()) return reply({ failed: 'A shard is not serving, try again' })
    const fault = targetFault(to)
    if (fault !== undefined) return reply({ failed: fault })
    const pool = new StorePool(true)
    this.#pool = pool
    // The client has ended or was interrupted, so the copy is not needed.
    socket.once('end', () => pool.stop())
    socket.once('close', () => pool.stop())
    this.#copying = this.#copy(pool, to, reply)
    await this.#copying
  }

  async #copy(pool: StorePool, to: string[], reply: (answer: ControlAnswer) => void): Promise<void> {
    const timer = setInterval(() => reply({ copied_bytes: pool.done }), limits.backupProgressMs)
    try {
      const { path, freeBytesMin, flush, nowMs } = this.#parts
      const from = to.map((_path, shard) => join(path, shardDirectory(shard)))
      const copied = await copyWithinSpace(pool, { from, to, source: { dataDir: path, freeBytesMin }, flush })
      this.#copiedAtMs = nowMs()
      reply({ copied })
    } catch (error) {
      reply({ failed: error instanceof Error ? error.message : String(error) })
    } finally {
      clearInterval(timer)
      await pool.close()
      this.#pool = undefined
    }
  }
}

/** Returns the first line, and drops later data; undefined without a line. */
async function firstLine(socket: Socket): Promise<string | undefined> {
  try {
    for await (const line of createInterface({ input: socket })) return line
    return undefined
  } finally {
    // The end of the reader pauses the socket, which would then not notice its own end.
    socket.resume()
  }
}

/**
 * Why stores cannot be copied to these directories. LMDB would create missing directories and add to existing
 * data.
 */
function targetFault(to: readonly string[]): string | undefined {
  try {
    const taken = to.find((path) => !isAbsolute(path) || readdirSync(path).length > 0)
    return taken === undefined ? undefined : `Expected ${taken} to be absolute and empty`
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return `The server cannot use the directory of the copy: ${error.message}`
  }
}
