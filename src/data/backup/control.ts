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
 * The control socket of a running server, in its data directory: whoever can read the data can use it. The server
 * copies the stores for `strandfast backup`, since LMDB may lose a commit if another process opens a store that is
 * being written (docs/adr/0020-backup.md).
 */

/** What the control socket needs. */
interface Controlled {
  path: string
  shards: number
  /** Free space of its disk below which the server only reads, bytes. */
  freeBytesMin: number
  /** Whether every shard serves. */
  serving(): boolean
  flush: Flush
  nowMs: Clock
  log: Logger
}

/** Name of the socket in the data directory. */
export const controlFile = 'control.sock'

/** Where the server of a data directory listens; Windows uses names for this instead of files. */
export function controlPath(dataDir: string): string {
  if (process.platform !== 'win32') return join(dataDir, controlFile)
  return `\\\\.\\pipe\\strandfast-${createHash('sha256').update(dataDir).digest('hex').slice(0, 32)}`
}

/** The control socket of this process, which has the lock of the data directory. */
export class Control {
  readonly #controlled: Controlled
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #pool: StorePool | undefined
  #copying: Promise<void> = Promise.resolve()
  #copiedAtMs: number | undefined

  constructor(controlled: Controlled) {
    this.#controlled = controlled
    // Half open: a client that ends its side learns by the end of ours that what it asked for has been given up.
    this.#server = createServer({ allowHalfOpen: true }, (socket) => void this.#serve(socket))
  }

  /** When the stores were last copied for a backup, Unix milliseconds; whether it was finished, its command knows. */
  get copiedAtMs(): number | undefined {
    return this.#copiedAtMs
  }

  /**
   * Listens; if the file system has no sockets, or the path is too long for one, it logs that and continues without.
   */
  async open(): Promise<void> {
    const path = controlPath(this.#controlled.path)
    try {
      // Left by a server that was killed.
      if (process.platform !== 'win32') rmSync(path, { force: true })
      this.#server.listen(path)
      await once(this.#server, 'listening')
      this.#server.on('error', (error) =>
        this.#controlled.log.error({ err: error }, 'a command of this machine could not be taken'),
      )
      if (process.platform !== 'win32') chmodSync(path, 0o600)
    } catch (error) {
      this.#controlled.log.warn({ err: error }, 'no control socket: backups are possible only while stopped')
    }
  }

  /** Ends a running copy, for example when a shard's thread dies: its store must be closed. */
  abort(): void {
    this.#pool?.stop()
  }

  async close(): Promise<void> {
    this.abort()
    for (const socket of this.#sockets) socket.destroy()
    // After that its view of the stores is closed.
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
    if (line !== undefined) await this.#carryOut(socket, line)
    socket.end()
  }

  async #carryOut(socket: Socket, line: string): Promise<void> {
    const tell = (answer: ControlAnswer) => void socket.write(`${JSON.stringify(answer)}\n`)
    const to = parseControlRequest(line)?.copy_to
    if (to?.length !== this.#controlled.shards)
      return tell({ failed: 'The request makes no sense to this version of the server' })
    if (this.#pool !== undefined) return tell({ failed: 'Another backup is being made' })
    if (!this.#controlled.serving()) return tell({ failed: 'A shard does not serve' })
    const fault = targetFault(to)
    if (fault !== undefined) return tell({ failed: fault })
    const pool = new StorePool(true)
    this.#pool = pool
    // The client is gone, or has been interrupted, so nobody will use the copy.
    socket.once('end', () => pool.stop())
    socket.once('close', () => pool.stop())
    this.#copying = this.#copy(pool, to, tell)
    await this.#copying
  }

  async #copy(pool: StorePool, to: string[], tell: (answer: ControlAnswer) => void): Promise<void> {
    const timer = setInterval(() => tell({ copied_bytes: pool.done }), limits.backupProgressMs)
    try {
      const { path, freeBytesMin, flush, nowMs } = this.#controlled
      const from = to.map((_path, shard) => join(path, shardDirectory(shard)))
      const copied = await copyWithinSpace(pool, { from, to, source: { dataDir: path, freeBytesMin }, flush })
      this.#copiedAtMs = nowMs()
      tell({ copied })
    } catch (error) {
      tell({ failed: error instanceof Error ? error.message : String(error) })
    } finally {
      clearInterval(timer)
      await pool.close()
      this.#pool = undefined
    }
  }
}

/** The first line that comes, after which the rest is read and dropped; undefined where none comes. */
async function firstLine(socket: Socket): Promise<string | undefined> {
  try {
    for await (const line of createInterface({ input: socket })) return line
    return undefined
  } finally {
    // The end of a reader stops the socket, which then would not see its own end either.
    socket.resume()
  }
}

/** Why stores cannot be copied to these directories: LMDB would make missing directories, and add to existing data. */
function targetFault(to: readonly string[]): string | undefined {
  try {
    const taken = to.find((path) => !isAbsolute(path) || readdirSync(path).length > 0)
    return taken === undefined ? undefined : `Expected ${taken} to be absolute and empty`
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return `The server, which makes the copy, cannot use the directory: ${error.message}`
  }
}
