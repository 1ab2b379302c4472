import { relative, resolve } from 'node:path'
import { inspect } from 'node:util'
import { assertFree } from '../front/engine/free-port.js'
import { pooledRandom } from '../base/random.js'
import { type Config, describeFaults } from '../settings/config.js'
import { describeFlags, readSettings, warningsOf } from './read-settings.js'
import { type DataDirectory, openDataDirectory } from '../data/directory.js'
import { loadEngine } from '../front/engine/engine.js'
import { readClusterOrigin } from './cluster-settings.js'
import { exitCodes, showUsage } from './command.js'
import { loopbackUrl } from './server-url.js'
import { stopSignals } from './stop-signals.js'

const USAGE = `Usage: strandfast serve [--port N] [--data-dir DIR] [--SETTING VALUE…]
Serves requests until SIGTERM, SIGINT or SIGHUP. Settings are environment variables (docs/config.md), or flags, which take
precedence. strandfast check checks them.
`

/**
 * A second signal within this time, in milliseconds, is ignored: npm forwards a Ctrl-C that the terminal has
 * sent to this process already.
 */
const SAME_SIGNAL_MS = 500

/**
 * Runs the server (docs/OPERATIONS.md, The process). The only line on standard output is the address on which
 * it listens.
 * @returns the exit code: 0 stopped, 1 failed, 78 unusable settings, Node version or data directory
 */
export async function serveCommand(args: string[]): Promise<number> {
  const options = await readSettings(args)
  if (!options.ok) return showUsage(USAGE + describeFlags(), options)
  const { reading } = options
  for (const warning of await warningsOf(reading)) logLine(`warning: ${warning}`)
  if (!reading.ok) {
    process.stderr.write(describeFaults(reading.faults))
    return exitCodes.configuration
  }
  hideEd25519Warning()
  const loading = await loadEngine(reading.config.httpEngine)
  if (!loading.ok) return refuse(loading.detail)
  const { fallbackReason: slowerBecause } = loading.loaded
  if (slowerBecause !== undefined) logLine(`serving with node:http: ${slowerBecause}`)
  const portFault = await checkPort(reading.config)
  if (portFault !== undefined) {
    logLine(portFault)
    return end(exitCodes.foundWrong)
  }
  const { signalled, canEnd } = waitForSignal()
  const cluster = await Promise.race([readClusterOrigin(reading.config), signalled])
  // A signal arrived; nothing is open yet.
  if (cluster === undefined) return end(exitCodes.fine)
  if (!cluster.ok) {
    logLine(cluster.detail)
    return end(cluster.exitCode)
  }
  for (const warning of cluster.warnings) logLine(`warning: ${warning}`)
  const opening = openDataDirectory({ ...reading.config, origin: cluster.origin }, pooledRandom())
  if (!opening.ok) return refuse(opening.detail)
  // Printed before a later step can fail, because no later start prints it again.
  const { rootKeyCreated } = opening.directory
  if (rootKeyCreated !== undefined) logLine(`root key, shown this once: ${rootKeyCreated}`)
  try {
    return await runUntil({ signalled, canEnd }, reading.config, opening.directory)
  } catch (error) {
    logLine(`The server failed: ${error instanceof Error ? error.message : String(error)}`)
    return end(exitCodes.foundWrong)
  } finally {
    opening.directory.close()
  }
}

/**
 * Checks that the port is free before the data directory is created: the first start prints the root key, and
 * no later start does.
 * @returns why the server cannot listen, or undefined
 */
async function checkPort({ host, port }: Config): Promise<string | undefined> {
  if (port === 0) return undefined
  try {
    await assertFree({ host, port })
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

async function runUntil(signals: Signals, config: Config, directory: DataDirectory): Promise<number> {
  // Importing the server takes a while, so it happens only after the checks.
  const { serve } = await import('../main.js')
  const server = await serve(config, directory, signals)
  if (server === undefined) return end(exitCodes.fine)
  process.stdout.write(`listening on ${server.url}\n`)
  if (directory.rootKeyCreated !== undefined || process.stderr.isTTY) {
    logLine(nextSteps(server.url, config))
    if (config.rateLimitRps > 0 && config.rateLimitBurst > 0) logLine(rateLimitHint(config))
  }
  await signals.signalled
  const timer = setTimeout(() => {
    logLine(`The server did not stop within ${config.shutdownTimeoutSecs} s`)
    void server.end()
  }, config.shutdownTimeoutSecs * 1000)
  await server.stop()
  clearTimeout(timer)
  return end(exitCodes.fine)
}

/** A hint for a first start, and for starts from a terminal. */
function nextSteps(url: string, { dataDir, console: withConsole }: Config): string {
  const [, program = ''] = process.argv
  // The command as it was called: without an installed package, there is no command named strandfast.
  const command = program.endsWith('.js') ? `node ${relative('.', program)}` : 'strandfast'
  const dataDirFlag = dataDir === resolve('data') ? '' : ` --data-dir ${relative('.', dataDir)}`
  const pages = withConsole
    ? `${loopbackUrl(url)}/ in a browser shows the records, /docs every operation`
    : `${loopbackUrl(url)}/docs shows every operation`
  return `next: ${pages}; a first record: ${command} write hello --data '{"text":"world"}'${dataDirFlag}`
}

function rateLimitHint({ rateLimitRps: rate, rateLimitExempt }: Config): string {
  const exempt = rateLimitExempt.length === 0 ? '' : `, except ${rateLimitExempt.join(', ')}`
  return (
    `limit: ${rate} requests per second from one client address${exempt}; a request can write many records ` +
    '(SERVICE_RATE_LIMIT_RPS, SERVICE_RATE_LIMIT_EXEMPT)'
  )
}

interface Signals {
  /** Resolves at the first stop signal. */
  signalled: Promise<void>
  /** Sets the function that ends the process at the second signal and at an uncaught error. */
  canEnd(end: () => Promise<void>): void
}

/**
 * Ends the process immediately at a second signal or an uncaught error. A normal exit waits for the threads,
 * which can be in long native calls.
 */
function waitForSignal(): Signals {
  let end: () => Promise<void> = async () => process.exit(exitCodes.foundWrong)
  const signalled = new Promise<void>((resolve) => {
    let firstAtMs: number | undefined
    const onSignal = () => {
      const nowMs = performance.now()
      if (firstAtMs === undefined) {
        firstAtMs = nowMs
        resolve()
      } else if (nowMs - firstAtMs > SAME_SIGNAL_MS) void end()
    }
    for (const signal of stopSignals) process.on(signal, onSignal)
  })
  process.on('uncaughtException', (error: unknown) => {
    // Node would wait for all threads, without end for one in the middle of a write to LMDB.
    logLine(`The server failed: ${inspect(error)}`)
    void end()
  })
  return { signalled, canEnd: (threadsEnd) => (end = threadsEnd) }
}

/**
 * Hides one warning: Node 20.19 warns at the first signature that Ed25519 in WebCrypto is experimental; later
 * versions call the same implementation stable.
 */
function hideEd25519Warning(): void {
  const listeners = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name === 'ExperimentalWarning' && warning.message.includes('Ed25519')) return
    for (const listener of listeners) listener.call(process, warning)
  })
}

/** Ends the process after `code` was returned, even if a thread or a socket is still open. */
function end(code: number): number {
  setImmediate(() => process.exit(code))
  return code
}

function refuse(detail: string): number {
  logLine(detail)
  return end(exitCodes.configuration)
}

function logLine(line: string): void {
  process.stderr.write(`${line}\n`)
}
