import { relative, resolve } from 'node:path'
import { inspect } from 'node:util'
import { assertFree } from '../front/door/free-port.js'
import { pooledRandom } from '../base/random.js'
import { type Config, describeFaults } from '../settings/config.js'
import { describeFlags, readSettings, warningsOf } from './read-settings.js'
import { type DataDirectory, openDataDirectory } from '../data/directory.js'
import { loadEngine } from '../front/door/engine.js'
import { openCluster } from './cluster-settings.js'
import { exitCodes, showUsage } from './command.js'
import { reachedAt } from './server-url.js'
import { stopSignals } from './stop-signals.js'

const USAGE = `Usage: strandfast serve [--port N] [--data-dir DIR] [--SETTING VALUE…]
Serves requests until SIGTERM, SIGINT or SIGHUP. Settings are environment variables, described in docs/config.md, or flags, which
take precedence; strandfast check checks them.
`

/**
 * Milliseconds within which a second signal counts as the first: npm passes on a Ctrl-C that this process has received
 * already.
 */
const SAME_SIGNAL_MS = 500

/**
 * Runs the server (docs/OPERATIONS.md, The process). Prints where it listens as the only line on standard output.
 * @returns the exit code: 0 stopped, 1 failed, 78 settings, Node or data directory with which it cannot run
 */
export async function serveCommand(args: string[]): Promise<number> {
  const options = readSettings(args)
  if (!options.ok) return showUsage(USAGE + describeFlags(), options)
  const { reading } = options
  for (const warning of await warningsOf(reading)) tell(`warning: ${warning}`)
  if (!reading.ok) {
    process.stderr.write(describeFaults(reading.faults))
    return exitCodes.configuration
  }
  hideEd25519Warning()
  const loading = await loadEngine(reading.config.httpEngine)
  if (!loading.ok) return refuse(loading.detail)
  const { slowerBecause } = loading.loaded
  if (slowerBecause !== undefined) tell(`serving by node:http: ${slowerBecause}`)
  const taken = await takenPort(reading.config)
  if (taken !== undefined) {
    tell(taken)
    return end(exitCodes.foundWrong)
  }
  const { signalled, canEnd } = waitForSignal()
  const cluster = await Promise.race([openCluster(reading.config), signalled])
  // Nothing is open yet.
  if (cluster === undefined) return end(exitCodes.fine)
  if (!cluster.ok) {
    tell(cluster.detail)
    return end(cluster.exitCode)
  }
  for (const warning of cluster.warnings) tell(`warning: ${warning}`)
  const opening = openDataDirectory({ ...reading.config, origin: cluster.origin }, pooledRandom())
  if (!opening.ok) return refuse(opening.detail)
  // Shown before anything can fail, because no later start shows it again.
  const { rootKeyCreated } = opening.directory
  if (rootKeyCreated !== undefined) tell(`root key, shown this once: ${rootKeyCreated}`)
  try {
    return await runUntil({ signalled, canEnd }, reading.config, opening.directory)
  } catch (error) {
    tell(`The server failed: ${error instanceof Error ? error.message : String(error)}`)
    return end(exitCodes.foundWrong)
  } finally {
    opening.directory.close()
  }
}

/**
 * Why the server could not listen. Looked at before the data directory is made and its root key shown, which no later
 * start shows again.
 */
async function takenPort({ host, port }: Config): Promise<string | undefined> {
  if (port === 0) return undefined
  try {
    await assertFree({ host, port })
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

async function runUntil(signals: Signals, config: Config, directory: DataDirectory): Promise<number> {
  // Loaded once it is known that it can serve, since it takes a while.
  const { serve } = await import('../main.js')
  const server = await serve(config, directory, signals)
  if (server === undefined) return end(exitCodes.fine)
  process.stdout.write(`listening on ${server.url}\n`)
  if (directory.rootKeyCreated !== undefined || process.stderr.isTTY) tell(nextSteps(server.url, config))
  await signals.signalled
  const timer = setTimeout(() => {
    tell(`The server did not stop within ${config.shutdownTimeoutSecs} s`)
    void server.end()
  }, config.shutdownTimeoutSecs * 1000)
  await server.stop()
  clearTimeout(timer)
  return end(exitCodes.fine)
}

/** Where to look next, for whoever starts the server by hand or for the first time. */
function nextSteps(url: string, { dataDir, console: withConsole }: Config): string {
  const [, program = ''] = process.argv
  // As it was started: where the package is not installed, there is no command of this name.
  const command = program.endsWith('.js') ? `node ${relative('.', program)}` : 'strandfast'
  const where = dataDir === resolve('data') ? '' : ` --data-dir ${relative('.', dataDir)}`
  const pages = withConsole
    ? `${reachedAt(url)}/ in a browser shows the records, /docs every operation`
    : `${reachedAt(url)}/docs shows every operation`
  return `next: ${pages}; a first record: ${command} write hello --data '{"text":"world"}'${where}`
}

interface Signals {
  /** Resolves at the first signal that asks it to stop. */
  signalled: Promise<void>
  /** Makes the second signal, and an error that nobody catches, call `end`. */
  canEnd(end: () => Promise<void>): void
}

/**
 * A second signal ends the process at once, as does an error that nobody catches. An exit waits for threads, which can take
 * long in native calls.
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
    // Node would wait for all threads: for ever for one in the middle of a write to LMDB.
    tell(`The server failed: ${inspect(error)}`)
    void end()
  })
  return { signalled, canEnd: (threadsEnd) => (end = threadsEnd) }
}

/**
 * Node 20.19 calls Ed25519 in WebCrypto experimental and says so at the first token that is signed; later versions have
 * it unchanged and call it stable. Other warnings are shown as usual.
 */
function hideEd25519Warning(): void {
  const nodes = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name === 'ExperimentalWarning' && warning.message.includes('Ed25519')) return
    for (const tell of nodes) tell.call(process, warning)
  })
}

/** Ends the process even if a thread or a socket is still open, once the code has reached the caller. */
function end(code: number): number {
  setImmediate(() => process.exit(code))
  return code
}

function refuse(detail: string): number {
  tell(detail)
  return end(exitCodes.configuration)
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
