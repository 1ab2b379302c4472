import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Config } from '../settings/config.js'

/** A server that is measured: one that the bench has started, or one that runs already. */
export interface BenchServer {
  url: string
  rootKey: string
  /** Calls it with the root key and returns the answer's text. Throws for any other status than 2xx and `alsoFine`. */
  call(path: string, body?: string, alsoFine?: number): Promise<Buffer>
  /** Stops it and waits for its end, if the bench has started it. */
  stop(): Promise<void>
}

/** Milliseconds that starting may take, and stopping. */
const PATIENCE_MS = 30_000

/**
 * Starts this build on an empty directory, with the shards and the signing of the settings and without rate limits.
 * @throws Error with the server's output when it ends before it serves
 */
export async function startBenchServer(
  dataDir: string,
  rootKey: string,
  { shards, signing }: Pick<Config, 'shards' | 'signing'>,
): Promise<BenchServer> {
  const env = {
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PORT: '0',
    SERVICE_ROOT_API_KEY: rootKey,
    SERVICE_RATE_LIMIT_RPS: '0',
    SERVICE_LOG_LEVEL: 'warn',
    SERVICE_SIGNING: signing,
    ...(shards !== undefined && { SERVICE_SHARDS: String(shards) }),
  }
  const [, program = ''] = process.argv
  const child = spawn(process.execPath, [program, 'serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const kill = () => void child.kill('SIGKILL')
  process.once('exit', kill)
  const exited = once(child, 'exit').then(() => void process.off('exit', kill))
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-2000)))
  const timer = setTimeout(kill, PATIENCE_MS)
  let url: string | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    url = /^listening on (\S+)$/.exec(line)?.[1]
    if (url !== undefined) break
  }
  clearTimeout(timer)
  if (url === undefined) throw new Error(`The server ended before it served: ${said.trim()}`)
  const base = url
  return {
    url: base,
    rootKey,
    call: (path, body, alsoFine) => callServer(base + path, { rootKey, body, alsoFine }),
    async stop() {
      const timer = setTimeout(kill, PATIENCE_MS)
      child.kill('SIGTERM')
      await exited
      clearTimeout(timer)
    },
  }
}

/** How a server is called: a POST where there is a body. */
interface BenchCall {
  rootKey: string
  body: string | undefined
  /** A status that is no failure beside 2xx. */
  alsoFine: number | undefined
}

/** Calls a server and reads its answer. @throws Error for a status that is a failure */
export async function callServer(url: string, { rootKey, body, alsoFine }: BenchCall): Promise<Buffer> {
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body }),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  if (!response.ok && response.status !== alsoFine)
    throw new Error(`The server answered ${response.status}: ${bytes.toString()}`)
  return bytes
}
