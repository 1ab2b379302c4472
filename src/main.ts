import { isDiskFull } from './base/durable-file.js'
import { limits } from './base/limits/limits.js'
import { createLogger } from './base/log.js'
import { version } from './base/version.js'
import { dropAddress, noteAddress } from './data/address.js'
import type { DataDirectory } from './data/directory.js'
import { builtInPrincipal } from './front/http/credentials.js'
import { recordStart } from './server/audit.js'
import { withFronts } from './server/fronts/fronts.js'
import { endsWithin, Lifecycle, type Part } from './server/lifecycle.js'
import { drain } from './server/parts.js'
import { makeServer, type Server } from './server/server.js'
import { makeDefaultAgent, openShards } from './server/shards.js'
import type { Config } from './settings/config.js'

export interface RunningServer {
  /** Where it listens, with the actual port: `http://127.0.0.1:8787`. */
  readonly url: string
  /**
   * Stops accepting, finishes pending requests and closes the stores, within `config.shutdownTimeoutSecs`.
   */
  stop(): Promise<void>
  /** Ends the process with exit code 1 immediately, whatever its threads are doing. */
  end(): Promise<void>
}

/** Options for ending a start early. */
interface Starting {
  /**
   * Called with a function that ends the process immediately, as soon as there are threads for which an exit
   * might wait.
   */
  canEnd?(end: RunningServer['end']): void
  /** Resolves when the server is to stop, possibly before it has started. */
  signalled?: Promise<void>
}

/** The parts, each after those that it needs: they start in this order and stop in the reverse order. */
function partsOf(server: Server, signal: AbortSignal): Part[] {
  const { config, state, parts, keys, proposals, control, authServices, cluster, reach, fronts, http } =
    server
  const { threads, readers, serverLog, sink, tickets, apiKeys } = parts
  const { status } = state
  const [halfMs, quarterMs] = [config.shutdownTimeoutSecs * 500, config.shutdownTimeoutSecs * 250]
  const openStandby = () => http.openStandby()
  const node = reach && { reach, calls: server.calls, status, signal, openStandby }
  const isPatient = () => cluster !== undefined && !signal.aborted
  return [
    { name: 'connections', stop: () => http.server?.close() },
    { name: 'membership', start: () => cluster?.join(), stop: () => cluster?.leave() },
    { name: 'readers', stop: () => readers.close() },
    { name: 'shards', start: () => openShards(server, node), stop: () => threads.close() },
    { name: 'transfer of shards', stop: () => cluster?.stepDown(quarterMs) },
    { name: 'disk watch', start: () => state.start(), stop: () => state.stop() },
    {
      name: 'default agent',
      start: () => state.writeAtStart(() => makeDefaultAgent(config, parts.shards, isPatient)),
    },
    { name: 'audit strand', start: () => (state.readOnly ? undefined : recordStart(server)) },
    { name: 'control socket', start: () => control.open(), stop: () => control.close() },
    { name: 'server log', start: () => serverLog?.start(), stop: () => serverLog?.stop() },
    { name: 'last heads', stop: () => serverLog?.finish(quarterMs) },
    { name: 'sink', start: () => sink?.start(), stop: () => sink?.stop() },
    { name: 'auth add-on', start: () => authServices?.start(), stop: () => authServices?.stop() },
    { name: 'API keys', start: () => keys.start(), stop: () => keys.stop() },
    { name: 'proposals', start: () => proposals.start(), stop: () => proposals.stop() },
    {
      name: 'fronts',
      async start() {
        await fronts?.start()
        if (cluster !== undefined) await fronts?.followPeers(cluster)
      },
      stop: () => fronts?.close(),
    },
    {
      name: 'requests',
      async start() {
        tickets.restore((id) => builtInPrincipal(id) ?? apiKeys.byId(id))
        const listening = await http.open()
        await fronts?.listen(listening)
        status.standbyRefusal = undefined
      },
      async stop() {
        // A ticket for a stream that ends now is valid for a minute after the restart.
        tickets.close()
        await Promise.all([drain(parts, http.server, halfMs), fronts?.drain(halfMs)])
      },
    },
  ]
}

/**
 * Starts the server on a data directory that this process has locked; the caller closes the directory after
 * `stop`. If the start fails or is stopped, whatever was started is stopped again.
 * @returns undefined if the server was stopped before it had started
 * @throws Error if a store cannot be opened, or the server cannot listen on the address
 */
export async function serve(
  config: Config,
  directory: DataDirectory,
  { canEnd, signalled }: Starting = {},
): Promise<RunningServer | undefined> {
  const log = createLogger(config.logLevel, 'server')
  const server = await makeServer(await withFronts(config, log), directory, log)
  canEnd?.(server.end)
  const stopping = new AbortController()
  const lifecycle = new Lifecycle(partsOf(server, stopping.signal))
  const started = lifecycle.start(stopping.signal)
  const stopped = new Promise<never>((_resolve, reject) => {
    stopping.signal.addEventListener('abort', () => reject(stopping.signal.reason))
  })
  void signalled?.then(() => stopping.abort())
  try {
    // A node of a cluster may remain a standby for a long time.
    await Promise.race([started, server.http.standby, stopped])
  } catch (error) {
    const isStopped = stopping.signal.aborted
    const timeMs = isStopped
      ? Math.min(limits.startCleanupMs, config.shutdownTimeoutSecs * 500)
      : limits.startCleanupMs
    if (isStopped) log.info('stopping before the start is complete')
    const undone = started.catch(() => {}).then(() => lifecycle.stop())
    if (!(await endsWithin(timeMs, undone))) {
      if (!isStopped)
        log.fatal({ err: error }, 'the start failed and its threads do not stop: the process exits')
      await server.end(isStopped ? 0 : 1)
    }
    if (isStopped) return undefined
    throw error
  }
  const { url } = await server.http.open()
  await server.state.writeAtStart(async () => recordAddress(server, url))
  void logListening(server, started, stopping.signal)
  return {
    url,
    async stop() {
      log.info('stopping')
      dropAddress(directory.path)
      server.state.stop()
      stopping.abort()
      await started.catch((error: unknown) => {
        if (error !== stopping.signal.reason) log.error({ err: error }, 'the standby could not become active')
      })
      await lifecycle.stop()
      log.info('stopped')
    },
    end: server.end,
  }
}

/** Logs that the server listens once it serves, much later for a standby; ends the process if that fails. */
async function logListening(server: Server, started: Promise<void>, signal: AbortSignal): Promise<void> {
  const { config, parts, log } = server
  try {
    await started
    const { url, engine } = await server.http.open()
    const { fronts, rateLimitRps } = config
    const shards = parts.shards.count
    log.info({ url, http: engine, shards, fronts, rateLimitRps, version }, 'listening')
  } catch (error) {
    // The caller that ended the process has already logged the reason.
    if (signal.aborted || parts.threads.isClosing) return
    log.fatal({ err: error }, 'the standby could not become active: the process exits')
    await server.end()
  }
}

/**
 * Records the address of the server for commands on this machine; the server works without it, too.
 * @returns false if the disk has no space
 */
function recordAddress({ directory, log }: Server, url: string): boolean {
  try {
    noteAddress(directory.path, url)
    return true
  } catch (error) {
    if (isDiskFull(error)) return false
    log.warn({ err: error }, 'could not record the address: commands on this machine need --url')
    return true
  }
}
