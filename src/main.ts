import { randomBytes } from 'node:crypto'
import { systemClock } from './base/clock.js'
import { refuse, type Refusal } from './base/errors.js'
import { limits } from './base/limits.js'
import { createLogger, type Logger } from './base/log.js'
import type { Config } from './settings/config.js'
import type { DataDirectory } from './data-directory/data-directory.js'
import { watchDisk, type ServerState } from './server/disk-watch.js'
import { ProposalClock } from './dispatch/proposal-clock.js'
import type { ReaderPool } from './dispatch/reader-pool.js'
import { ServerLog } from './dispatch/server-log.js'
import type { Shards } from './dispatch/shards.js'
import { Control } from './backup/control.js'
import { authOff, startAuth, type AuthParts } from './server/auth.js'
import { Admission } from './http/admit.js'
import { ApiKeyUpkeep } from './http/auth/api-key-upkeep.js'
import { parseAddressRanges } from './http/client-address.js'
import { ExportSender } from './http/export.js'
import type { AuthHandling, Handling } from './http/handle.js'
import { ImportReceiver } from './http/import/receiver.js'
import { IngestReceiver } from './http/ingest/receiver.js'
import { openApiSteps } from './http/openapi/document.js'
import { RateLimiter } from './http/rate-limit.js'
import { RateLimits } from './http/rate-limits.js'
import { connectionsMax } from './http/connections.js'
import { unsentAnswers } from './http/unsent.js'
import { listen, type HttpServer } from './http/server.js'
import type { Route, RouteContext } from './routes/route.js'
import { allRoutes } from './routes/routes.js'
import { endProcess, startShards, type StartedShards } from './server/shards.js'
import { Opened } from './server/opened.js'
import { startSink } from './server/sink.js'
import { tellAudit, tellStart } from './server/audit.js'
import { assemble, poolTold, type Parts } from './server/parts.js'
import { version } from './base/version.js'

/** A server that answers requests. */
export interface RunningServer {
  /** Where it listens, with the port in force: `http://127.0.0.1:8787`. */
  readonly url: string
  /** Stops accepting, finishes what is in flight and closes the stores, within `config.shutdownTimeoutSecs`. */
  stop(): Promise<void>
  /** Ends the process with exit code 1 at once, whatever its threads are at. */
  end(): Promise<void>
}

/**
 * Starts the server on a data directory that this process has the lock of; the caller closes that after `stop`. A start
 * that fails ends what it has started before it tells so.
 * @param canEnd given what ends the process at once as soon as there are threads that its exit could wait for
 * @throws Error when a store cannot be opened or the address not be listened on
 */
export async function serve(
  config: Config,
  directory: DataDirectory,
  canEnd: (end: RunningServer['end']) => void = () => {},
): Promise<RunningServer> {
  const log = createLogger(config.logLevel, 'server')
  const shards = startShards(config, directory, log)
  canEnd(() => endProcess(shards.shards))
  const opened = new Opened()
  opened.add(shards.shards, (one) => one.close())
  try {
    return await start(config, { directory, log, shards, opened })
  } catch (error) {
    if (!(await opened.close(limits.startEndMs))) {
      log.fatal({ err: error }, 'the start failed, and threads of it do not end: the process ends itself')
      await endProcess(shards.shards)
    }
    throw error
  }
}

/** What a start is made with. */
interface Starting {
  directory: DataDirectory
  log: Logger
  shards: StartedShards
  opened: Opened
}

async function start(config: Config, { directory, log, shards, opened }: Starting): Promise<RunningServer> {
  await shards.shards.start()
  await makeDefaultAgent(config, shards.shards)
  const sink = opened.add(startSink(config, directory, log), (one) => one?.stop())
  shards.sink = sink
  const state: ServerState = { stopping: false, readOnly: false }
  const serverLog = startServerLog(config, { shards: shards.shards, state, log })
  shards.serverLog = opened.add(serverLog, (one) => one?.stop())
  const parts = assemble(config, {
    directory,
    shards: shards.shards,
    sink,
    serverLog,
    told: poolTold(log),
  })
  shards.hub = parts.streams
  shards.readers = opened.add(parts.readers, (one) => one.close())
  const apiKeys = upkeepOf(parts, state)
  shards.apiKeys = opened.add(apiKeys, (one) => one.stop())
  await apiKeys.load()
  const auth = opened.add(await startedAuth(config, { directory, log, parts }), (one) => one?.stop())
  if (auth !== undefined) parts.pools.push(auth.passwords)
  const routes = allRoutes(config.agentId)
  const admission = admissionOf(config, { directory, parts, auth })
  const handling = handlingOf(config, {
    parts,
    state,
    routes,
    log,
    admission,
    auth: auth?.handling ?? authOff(config),
  })
  const watch = opened.add(watchDisk(config, state, log), clearInterval)
  const { freeBytesMin } = config
  const serving = () => shards.shards.serving
  const control = await Control.open({ ...directory, freeBytesMin, serving, log })
  shards.control = opened.add(control, (one) => one.close())
  const proposals = new ProposalClock({ shards: shards.shards, readOnly: () => state.readOnly })
  opened.add(proposals, (one) => one.stop())
  await proposals.catchUp()
  if (!state.readOnly) {
    await tellStart(shards.shards, { dataDir: directory.path, license: auth?.license }, log)
  }
  void serverLog?.look()
  const http = await listen({ ...config, connections: connectionsOf(config, parts, log) }, routes, handling)
  log.info({ url: http.url, shards: shards.shards.count, version }, 'listening')
  return {
    url: http.url,
    async stop() {
      log.info('stopping')
      clearInterval(watch)
      proposals.stop()
      state.stopping = true
      await drain(config, http, parts)
      await apiKeys.stop()
      await auth?.stop()
      await sink?.stop()
      await serverLog?.finish(config.shutdownTimeoutSecs * 250)
      await serverLog?.stop()
      await control.close()
      await shards.shards.close()
      await parts.readers.close()
      http.close()
      log.info('stopped')
    },
    end: () => endProcess(shards.shards),
  }
}

/** The log of strand heads, where it is kept (docs/adr/0023-server-log.md). */
function startServerLog(
  { logIntervalSecs }: Config,
  { shards, state, log }: { shards: Shards; state: ServerState; log: Logger },
): ServerLog | undefined {
  if (logIntervalSecs === 0) return undefined
  return new ServerLog({
    shards,
    intervalMs: logIntervalSecs * 1_000,
    readOnly: () => state.readOnly,
    nowMs: systemClock,
    failed: (reason) => log.warn({ reason }, 'the log of strand heads fell behind'),
    forked: (strands) =>
      log.error(
        { strands },
        'strands have not got the records that the log told of: the log tells no more of them',
      ),
  })
}

/** Keeps what is known of API keys and what the first shard has of them alike. */
function upkeepOf({ shards, apiKeys }: Parts, state: ServerState): ApiKeyUpkeep {
  return new ApiKeyUpkeep({ shards, keys: apiKeys, readOnly: () => state.readOnly, nowMs: systemClock })
}

/** How many connections there are at the most. */
function connectionsOf(config: Config, { shards }: Parts, log: Logger): { max: number; onFull(): void } {
  const max = connectionsMax(config.connectionsMax, shards.count)
  return { max, onFull: () => log.warn({ max }, 'connections were closed: there are too many') }
}

/** The default agent is there from the first start on (contract.md 1, Identity). */
async function makeDefaultAgent({ agentId }: Config, shards: Shards): Promise<void> {
  const outcome = await shards.ask(agentId, {
    kind: 'agentCreate',
    agent: agentId,
    zone: 'governed',
    options: {},
  })
  if (outcome.kind === 'reply') return
  if ('code' in outcome && outcome.code === 'agent_exists') return
  throw new Error(`The default agent "${agentId}" could not be made: ${JSON.stringify(outcome)}`)
}

/** The auth add-on, where it is on. */
function startedAuth(
  config: Config,
  { directory, log, parts }: { directory: DataDirectory; log: Logger; parts: Parts },
): Promise<AuthParts> | undefined {
  if (!config.auth.enabled) return undefined
  const { shards, streams, uploads } = parts
  return startAuth(config, { directory, shards, log, streams, uploads, told: poolTold(log) })
}

function admissionOf(
  config: Config,
  { directory, parts, auth }: { directory: DataDirectory; parts: Parts; auth: AuthParts | undefined },
): Admission {
  const named = (name: 'global' | 'auth', limit: { ratePerSec: number; burst: number }) => ({
    name,
    limit,
    limiter: new RateLimiter({ ...limit, addressesMax: limits.rateLimitAddressesMax }),
  })
  const { rateLimitRps, rateLimitBurst } = config.auth
  const rates = {
    global: named('global', { ratePerSec: config.rateLimitRps, burst: config.rateLimitBurst }),
    auth: named('auth', { ratePerSec: rateLimitRps, burst: rateLimitBurst }),
    exempt: parseAddressRanges(config.rateLimitExempt.join(',')).ranges,
  }
  return new Admission(
    {
      rates: new RateLimits(rates, systemClock),
      trusted: parseAddressRanges(config.trustedProxies.join(',')).ranges,
      rootKeyDigest: directory.rootKeyDigest,
      open: config.dataOpen,
    },
    {
      keys: parts.apiKeys,
      tickets: parts.tickets,
      clock: systemClock,
      ...(auth !== undefined && { tokens: auth.tokens }),
    },
  )
}

/** Long reads of strands, by the pool. */
function readsBy(readers: ReaderPool): RouteContext['read'] {
  return {
    treeRoot: (view) => readers.treeRoot(view),
    inclusion: (view, seq) => readers.inclusion({ ...view, seq }),
    consistency: (view, from) => readers.consistency({ ...view, from }),
    recordLine: (view, record) => readers.recordLine({ ...view, ...record }),
  }
}

/** What takes ingest streams in. */
function ingestBy(
  { recordBytesMax, ingestBadLinesMax: badLinesMax }: Config,
  { shards, uploads, slices, metrics }: Parts,
  onError: Handling['onError'],
): IngestReceiver {
  const onRefused = (code: string, count: number) => metrics.linesRefused(code, count)
  return new IngestReceiver({ shards, uploads, slices, recordBytesMax, badLinesMax, onRefused, onError })
}

function handlingOf(
  config: Config,
  {
    parts,
    state,
    routes,
    log,
    admission,
    auth,
  }: {
    parts: Parts
    state: ServerState
    routes: ReturnType<typeof allRoutes>
    log: Logger
    admission: Admission
    auth: AuthHandling
  },
): Handling {
  const { shards, readers, streams, uploads, metrics, serverLog } = parts
  const onError = (error: unknown, requestId: string) =>
    log.error({ err: error, request_id: requestId }, 'a request failed')
  const idPrefix = randomBytes(6).toString('base64url')
  let lastId = 0
  const stopping = () =>
    state.stopping ? refuse('unavailable', 'Expected a server that is not stopping') : undefined
  const full = () => (state.readOnly ? storageFull : undefined)
  const context: RouteContext = {
    ask: (agent, command) => shards.ask(agent, command),
    askAll: (command) => shards.askAll(command),
    askShard: (shard, command) => shards.askOne(shard, command),
    shardCount: shards.count,
    shardOf: (agent) => shards.shardOf(agent),
    askFirst: (command) => shards.askOne(0, command),
    read: readsBy(readers),
    apiKeys: parts.apiKeys,
    tickets: parts.tickets,
    readiness: () => stopping() ?? unready(parts, state),
    metrics: () => metrics.text(),
    openApi: madeOnce(() => openApiOf(routes, parts)),
    nowMs: systemClock,
    random: randomBytes,
  }
  return {
    admission,
    shards,
    context,
    ingest: ingestBy(config, parts, onError),
    exports: new ExportSender({ shards, readers, uploads, onError }),
    imports: new ImportReceiver({
      shards,
      readers,
      uploads,
      stageFolder: parts.stageFolder,
      onError,
      refusal: () => stopping() ?? full(),
      tellAudit: (entry) => tellAudit(shards, entry),
      ...(serverLog !== undefined && { tellHead: (head) => serverLog.tell(head) }),
    }),
    streams,
    uploads,
    metrics,
    auth,
    corsOrigins: new Set(config.corsOrigins),
    stopping,
    writeRefusal: full,
    unsent: unsentAnswers(),
    nextRequestId: () => `${idPrefix}-${(++lastId).toString(36)}`,
    onError,
  }
}

const storageFull = refuse('storage_full', 'Expected free space on the data disk; reads go on')

function unready({ shards, pools }: Parts, state: ServerState): Refusal | undefined {
  if (!shards.serving) return refuse('unavailable', 'Expected every shard to be serving')
  const idle = pools.find(({ figures }) => !figures.serving)
  if (idle !== undefined)
    return refuse('unavailable', `The pool of ${idle.figures.name} has no thread: none can be started`)
  return state.readOnly
    ? refuse('unavailable', 'Expected free space on the data disk: the server is read-only')
    : undefined
}

/** Takes nothing new, ends the streams, and waits until the last answer is out or half the time is over. */
async function drain(
  { shutdownTimeoutSecs }: Config,
  http: HttpServer,
  { streams, uploads, metrics }: Parts,
): Promise<void> {
  http.stopListening()
  streams.close()
  uploads.close()
  const untilMs = performance.now() + shutdownTimeoutSecs * 500
  while (metrics.inFlight > 0 && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, limits.drainPollMs))
  }
}

/** The OpenAPI document as it is sent. It is made for the first who asks, and nobody else waits for that. */
async function openApiOf(routes: readonly Route[], { slices }: Parts): Promise<Uint8Array> {
  const document = await slices.runSteps(openApiSteps(routes, version))
  return slices.run(() => Buffer.from(JSON.stringify(document)))
}

function madeOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}
