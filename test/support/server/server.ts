import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { startStandby, throughStandby } from './through-standby.js'
import { fetchSeen } from '../http/fetch-seen.js'
import { inherited } from '../../../scripts/crash-loop/inherited.mjs'

/** What the start says of most servers of tests, which send no mail (src/settings/open-modes.ts). */
const openLinks = /^warning: SERVICE_MAIL_ENABLED is not true: answers contain .*\n/gm

/** A real server in a process of its own, on a data directory of its own. */
export interface TestServer {
  url: string
  rootKey: string
  dataDir: string
  process: ChildProcess
  /** What it has written to standard error so far. */
  stderr(): string
  /** Stops it with `signal` and waits; gives the exit code. The data directory stays. */
  halt(signal?: NodeJS.Signals): Promise<number | null>
  /** Stops it and removes its data directory. */
  stop(): Promise<void>
}

/** What a call needs to know of a server. */
export type ServerAddress = Pick<TestServer, 'url' | 'rootKey'>

/** What a test server is started with. */
export interface TestServerOptions {
  env?: Record<string, string>
  /** A directory to start on again; a new one is made when absent. */
  dataDir?: string
  /** The Node that runs it; this process's own when absent. */
  node?: string
  /** What node itself is given, before the program. */
  nodeOptions?: readonly string[]
  /** The program to run, in place of the built one. */
  program?: string
  /** The most files that the server may have open (`ulimit -n`). */
  openFilesMax?: number
  /** Given its process before it listens, as it may never do. */
  spawned?(process: ChildProcess): void
}

const entry = join(import.meta.dirname, '../../../dist/program/strandfast.js')

/** The HTTP library, the fronts and the shards that a run of the tests asks for (vitest.config.ts, .ci/run). */
const ofRun = Object.fromEntries(
  ['SERVICE_HTTP_ENGINE', 'SERVICE_FRONTS', 'SERVICE_SHARDS'].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  }),
)

/** The root key of test servers, unless `env` names another. */
export const testRootKey = 'test-root-key-0123456789abcdefghij'

/** The servers that this process has started, by their addresses: a call that is not answered says what became of its own. */
const started = new Map<string, TestServer>()

/** Starts the built server and resolves when it listens. Rate limits are off unless `env` sets them. */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'strandfast-'))
  if (throughStandby && options.env?.['SERVICE_CLUSTER_URL'] === undefined) {
    const start = (place: string, env: Record<string, string>) =>
      startServer({ ...options, dataDir: place, env })
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
    ...ofRun,
    ...options.env,
  }
  const command = [
    options.node ?? process.execPath,
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

/** Why a request has no answer: the socket's error, and whether the server still runs. */
async function whyUnanswered(url: string, { message, cause }: TypeError): Promise<string> {
  const reason = cause instanceof Error ? `${message} (${cause.message})` : message
  const server = started.get(url)
  if (server === undefined) return reason
  // Its sockets close a little before its end is known.
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

/** A JSON answer and what came with it. */
export interface TestAnswer {
  status: number
  headers: Headers
  // Tests look into answers of every shape.
  // oxlint-disable-next-line no-explicit-any
  body: any
  text: string
}

/** What a call carries. */
export interface TestCall {
  body?: unknown
  /** Sent as it is, in place of `body`. */
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
  // A copy: fetch takes no bytes that could be shared between threads.
  const body = options.raw instanceof Uint8Array ? new Uint8Array(options.raw) : (options.raw ?? json)
  const init = { method, headers, ...(body === undefined ? {} : { body }) }
  const response = await fetchSeen(server.url + path, init).catch(async (error: unknown) => {
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
