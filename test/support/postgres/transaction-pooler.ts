import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../eventually.js'
import { leftOut } from '../faults/rounds.js'
import { freePort } from '../server/free-port.js'
import { serverUser } from './postgres.js'

/** PgBouncer in transaction mode. */
export interface TransactionPooler {
  /** The URL that leads through it to the database. */
  readonly url: string
  stop(): Promise<void>
}

/** Whether tests with PgBouncer are skipped because it is not installed. */
export const noPooler = leftOut(spawnSync('pgbouncer', ['--version']).error && 'no PgBouncer')

/** Starts PgBouncer. @param url the URL of a server that requires no password */
export async function startTransactionPooler(url: string, size = 2): Promise<TransactionPooler> {
  const [port, server] = [await freePort(), new URL(url)]
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-pooler-'))
  const settings = `[databases]
    * = host=${server.hostname} port=${server.port} user=${server.username}
    [pgbouncer]
    auth_type = any
    pool_mode = transaction
    default_pool_size = ${size}
    ignore_startup_parameters = options
    listen_addr = 127.0.0.1
    listen_port = ${port}
    unix_socket_dir =`
  writeFileSync(join(directory, 'settings'), settings.replaceAll(/^ +/gm, ''))
  // PgBouncer refuses to run as root, and reads this as another user.
  chmodSync(directory, 0o755)
  const pooler = spawn('pgbouncer', ['settings'], { ...serverUser(), cwd: directory, stdio: 'ignore' })
  await eventually(() => accepts(port))
  return {
    url: url.replace(`:${server.port}/`, `:${port}/`),
    async stop() {
      pooler.kill('SIGTERM')
      await once(pooler, 'exit')
      rmSync(directory, { recursive: true })
    },
  }
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
