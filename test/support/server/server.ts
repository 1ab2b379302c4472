import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { startStandby, throughStandby } from './through-standby.js'
import { fetchAfterClose } from '../http/fetch-seen.js'
import { inherited } from '../../../scripts/crash-loop/inherited.mjs'

/** The warning at the start of most test servers, which send no mail (src/settings/open-modes.ts). */
const openLinks = /^warning: SERVICE_MAIL_ENABLED is not true: answers contain .*\n/gm

/** A real server in another process, with its own data directory. */
export interface TestServer {
  url: string
  rootKey: string
  dataDir: string
  process: ChildProcess
  /** Its standard error so far. */
  stderr(): string
  /** Stops it with `signal` and returns the exit code. The data directory stays. */
  halt(signal?: NodeJS.Signals): Promise<number | null>
  /** Stops it and removes its data directory. */
  stop(): Promise<void>
}

/** The address and root key of a server. */
export type ServerAddress = Pick<TestServer, 'url' | 'rootKey'>

/** Options of a test server. */
export interface TestServerOptions {
  env?: Record<string, string>
  /** A data directory to restart on; new when absent. */
  dataDir?: string
  /** The Node executable; by default that of this process. */
  node?: string
  /** Options of Node before the program. */
  nodeOptions?: readonly string[]
  /** The program to run; by default the built one. */
  program?: string
  /** The maximum of open files (`ulimit -n`). */
  openFilesMax?: number
  /** Called with the process before it listens, which it may never do. */
  spawned?(process: ChildProcess): void
}

const entry = join(import.meta.dirname, '../../../dist/program/strandfast.js')

/** The HTTP library, the fronts and the shards of this test run (vitest.config.ts, .ci/run). */
const runSettings = Object.fromEntries(
  ['SERVICE_HTTP_ENGINE', 'SERVICE_FRONTS', 'SERVICE_SHARDS'].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  }),
)

/** The root key of test servers, unless `env` names another. */
export const testRootKey = 'test-root-key-0123456789abcdefghij'

/**
 * The servers that this process has started, by address. The error of an unanswered call reports the state of
 * its server.
 */
const started = new Map<string, TestServer>()

/** Starts the built server and resolves when it listens. Rate limits are off unless `env` sets them. */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'strandfast-'))
  if (throughStandby && options.env?.['SERVICE_CLUSTER_URL'] === undefined) {
    const start = (otherDir: string, env: Record<string, string>) =>
      startServer({ ...options, dataDir: otherDir, env })
    return startStandby(dataDir, options.env ?? {}, start)
  }
  const env = {
    ...inherited,
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PORT: '0',
    SERVICE_ROOT_API_KEY: testRootKey,
    SERVICE_RATE_LIMIT_RPS: '0',
    SERVICE_LOG_LEVEL: 'warn',
    SERVICE_MIN_FREE_BYTES: '0',
    ...runSettings,
    ...options.env,
  }
  const command = [
    options.node ?? process.execPath,
    '--v8-pool-size=0',
    ...(options.nodeOptions ?? []),
    options.program ?? entry,
    'serve',
  ]
  const limited = `ulimit -n ${options.openFilesMax ?? ''} && exec "$@"`
  const [program = '', ...args] =
    options.openFilesMax === undefined ? command : ['sh', '-c', limited, 'sh', ...command]
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
  options.spawned?.(child)
  const exited = once(child, 'exit')
  const url = await Promise.race([listeningUrl(child), exited.then(() => undefined)])
  if (url === undefined) throw new Error(`The server ended before it listened:\n${stderr}`)
  const halt = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    await exited
    return child.exitCode
  }
  const server: TestServer = {
    url,
    rootKey: env.SERVICE_ROOT_API_KEY,
    dataDir,
    process: child,
    stderr: () => stderr.replace(openLinks, ''),
    halt,
    async stop() {
      await halt()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
  started.set(url, server)
  return server
}

/** The reason for a missing answer: the socket's error, and whether the server still runs. */
async function whyUnanswered(url: string, { message, cause }: TypeError): Promise<string> {
  const reason = cause instanceof Error ? `${message} (${cause.message})` : message
  const server = started.get(url)
  if (server === undefined) return reason
  // Its sockets close shortly before its end is reported.
  const { process } = server
  const ended = process.exitCode ?? process.signalCode ?? once(process, 'exit')
  const state = await Promise.race([ended, delay(200, 'runs')])
  return state === 'runs'
    ? `${reason}, the server runs`
    : `${reason}, the server has ended: ${server.stderr()}`
}

async function listeningUrl(child: ChildProcess): Promise<string | undefined> {
  if (child.stdout === null) return undefined
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^listening on (\S+)$/.exec(line)?.[1]
    if (url !== undefined) return url
  }
  return undefined
}

/** An answer. */
export interface TestAnswer {
  status: number
  headers: Headers
  // Tests look into answers of every shape.
  // oxlint-disable-next-line no-explicit-any
  body: any
  text: string
}

/** The contents of a call. */
export interface TestCall {
  body?: unknown
  /** Sent unchanged instead of `body`. */
  raw?: string | Uint8Array
  key?: string | null
  headers?: Record<string, string>
}

/** Calls the server with its root key (or another; null for none) and reads the answer. */
export async function call(
  server: ServerAddress,
  route: string,
  options: TestCall = {},
): Promise<TestAnswer> {
  const [method = 'GET', path = '/'] = route.split(' ')
  const key = options.key === undefined ? server.rootKey : options.key
  const headers: Record<string, string> = { ...options.headers }
  if (key !== null) headers['authorization'] = `Bearer ${key}`
  if (options.body !== undefined || options.raw !== undefined) headers['content-type'] ??= 'application/json'
  const json = options.body === undefined ? undefined : JSON.stringify(options.body)
  // A copy, because fetch refuses bytes that may be shared between threads.
  const body = options.raw instanceof Uint8Array ? new Uint8Array(options.raw) : (options.raw ?? json)
  const init = { method, headers, ...(body === undefined ? {} : { body }) }
  const response = await fetchAfterClose(server.url + path, init).catch(async (error: unknown) => {
    if (!(error instanceof TypeError)) throw error
    throw new TypeError(`${route}: ${await whyUnanswered(server.url, error)}`, { cause: error.cause })
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true
  return {
    status: response.status,
    headers: response.headers,
    body:
      isJson && text !== '' && !response.headers.get('content-type')?.includes('ndjson')
        ? JSON.parse(text)
        : undefined,
    text,
  }
}
