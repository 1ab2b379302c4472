import { setTimeout as pause } from 'node:timers/promises'
import { Control } from './data/backup/control.js'
import { systemClock } from './base/clock.js'
import { limits } from './base/limits/limits.js'
import { isLackOfSpace } from './base/durable-file.js'
import { createLogger, type Logger } from './base/log.js'
import { version } from './base/version.js'
import { dropAddress, noteAddress } from './data/address.js'
import type { DataDirectory } from './data/directory.js'
import { ProposalClock } from './dispatch/duties/proposal-clock.js'
import { ApiKeyUpkeep } from './front/http/auth/api-key-upkeep.js'
import { connectionsMax } from './front/limits/connections.js'
import { principalOfSettings } from './front/http/credentials.js'
import type { Handling } from './front/http/handling.js'
import { listen, type HttpServer } from './front/http/server.js'
import { allRoutes, type Route } from './front/routes/routes.js'
import { tellStart } from './server/audit.js'
import { makeAuth } from './server/auth.js'
import { makeAuthServices } from './server/auth-services.js'
import { makeClusterNode } from './cluster/node/make.js'
import { clusterServices, clusterWays } from './cluster/node/services.js'
import { boundsOf, frontsOf, learnAll, withFronts } from './server/fronts/make-fronts.js'
import { readPages } from './server/pages.js'
import { makeServerLog } from './server/log.js'
import { Opened } from './server/opened.js'
import { makeParts, poolTold, type Parts } from './server/parts.js'
import { handlingOf } from './server/requests.js'
import { endProcess } from './server/process-end.js'
import { frontListener, makeDefaultAgent, makeShards, shardsListener, storeFlushOf } from './server/shards.js'
import { mainServices, type Services } from './server/services.js'
import { makeSink } from './server/sink.js'
import { standingsBy } from './server/standings.js'
import { ServerState } from './server/state.js'
import { Stopped, Waiting } from './cluster/node/waiting.js'
import type { Config } from './settings/config.js'

/** A server that answers requests. */
export interface RunningServer {
  /** Where it listens, with the port in force: `http://127.0.0.1:8787`. */
  readonly url: string
  /** Stops accepting, finishes what is in flight and closes the stores, within `config.shutdownTimeoutSecs`. */
  stop(): Promise<void>
  /** Ends the process with exit code 1 at once, whatever its threads are doing. */
  end(): Promise<void>
}

/** How a start can be ended. */
interface Starting {
  /** Called with a function that ends the process at once, as soon as there are threads that its exit could wait for. */
  canEnd?(end: RunningServer['end']): void
  /** Resolves when the server is to stop, which it may be before it has started. */
  signalled?: Promise<void>
}

/**
 * Starts the server on a data directory that this process has the lock of; the caller closes that after `stop`. A start
 * that fails, or is stopped, ends what it has started first.
 * @returns undefined when it was stopped before it had started
 * @throws Error when a store cannot be opened, or the server cannot listen on the address
 */
export async function serve(
  config: Config,
  directory: DataDirectory,
  { canEnd = () => {}, signalled = new Promise<void>(() => {}) }: Starting = {},
): Promise<RunningServer | undefined> {
  const log = createLogger(config.logLevel, 'server')
  const server = await construct(await withFronts(config, log), directory, log)
  const { end } = server
  canEnd(end)
  const opened = new Opened()
  const waiting = new Waiting(server.state.standing)
  const started = start(server, opened, waiting)
  const stopped = signalled.then((): never => {
    waiting.stop()
    throw new Stopped('The server was stopped before it had started')
  })
  try {
    const url = await Promise.race([waiting.url, started.then((http) => http.url), stopped])
    await server.state.writeAtStart(async () => noteWhere(directory, url, log))
    if (waiting.isOver) tellListening(server, await started)
    else void goOn(server, started, waiting)
    return { url, stop: () => stopAll(server, { opened, started, waiting }), end }
  } catch (error) {
    if (error instanceof Stopped) {
      await endStart(server, opened, started)
      return undefined
    }
    if (!(await opened.close(limits.startEndMs))) {
      log.fatal({ err: error }, 'the start failed and its threads do not end: ending the process')
      await end()
    }
    throw error
  }
}

/** Ends a start that was stopped: in order, or where it waits for too long, as for a database that is away, with its threads. */
async function endStart(server: Server, opened: Opened, started: Promise<unknown>): Promise<void> {
  server.log.info('stopping, before it has started')
  const close = () => opened.close()
  const timeMs = Math.min(limits.startEndMs, server.config.shutdownTimeoutSecs * 500)
  const isClosed = await Promise.race([started.then(close, close), pause(timeMs, false)])
  if (!isClosed) await server.end(0)
}

/** How far a server is that stands by, serves, or ends one of both. */
interface Progress {
  opened: Opened
  started: Promise<HttpServer>
  waiting: Waiting
}

/** Follows a node that stands by until it serves. */
async function goOn(server: Server, started: Promise<HttpServer>, waiting: Waiting): Promise<void> {
  const { log, parts } = server
  try {
    tellListening(server, await started)
  } catch (error) {
    // Who ends the process meanwhile has said why.
    if (waiting.stopped || parts.threads.isClosing) return
    log.fatal({ err: error }, 'the node could not take its turn: the process ends itself')
    await server.end()
  }
}

function tellListening({ config, parts, log }: Server, http: HttpServer): void {
  const { fronts } = config
  log.info({ url: http.url, http: http.engine, shards: parts.shards.count, fronts, version }, 'listening')
}

/** Stops a server that may stand by, or be taking its turn just now. */
async function stopAll(server: Server, { opened, started, waiting }: Progress): Promise<void> {
  const { log, directory, state } = server
  if (!waiting.isOver) {
    log.info('stopping, before it has served')
    dropAddress(directory.path)
    state.stop()
    waiting.stop()
  }
  const http = await started.catch((error: unknown) => {
    if (!(error instanceof Stopped)) log.error({ err: error }, 'the node could not take its turn')
  })
  if (http !== undefined) return stop(server, http)
  await opened.close()
  log.info('stopped')
}

/** Everything that makes up a server; none of it runs yet. */
async function construct(config: Config, directory: DataDirectory, log: Logger) {
  const state = new ServerState(config, log)
  const lost = (reason: string) => {
    log.fatal({ reason }, 'this node of the cluster cannot go on: the process ends itself')
    void end()
  }
  const cluster = await makeClusterNode(config, { directory, log, lost })
  const threads = makeShards(config, directory, cluster)
  const { shards } = threads
  const sink = makeSink(config, directory, log)
  const serverLog = makeServerLog(config, { threads, state, log })
  const told = poolTold(log)
  const { freeBytesMin } = config
  const control = new Control({
    ...directory,
    freeBytesMin,
    serving: () => shards.serving,
    flush: storeFlushOf(shards),
    nowMs: systemClock,
    log,
  })
  const max = connectionsMax(config.connectionsMax, shards.count)
  const { bounds, memory } = boundsOf(config, max)
  const lease = cluster?.lease
  const parts = makeParts(config, { directory, threads, bounds, sink, serverLog, told, lease, log })
  const ways = cluster && clusterWays({ cluster, parts, serverLog, log })
  const asked = { ...parts, ...ways?.parts }
  const readOnly = () => state.readOnly
  const isOwn = (shard: number) => threads.has(shard)
  const keys = new ApiKeyUpkeep({ shards, keys: parts.apiKeys, readOnly, nowMs: systemClock })
  const proposals = new ProposalClock({ shards, isOwn, readOnly, standings: standingsBy(config, parts) })
  const authServices = await makeAuthServices(config, { directory, shards, isOwn, log, told })
  if (authServices !== undefined) parts.pools.push(authServices.passwords)
  const askedAuth = authServices && (ways?.auth(authServices) ?? authServices)
  const auth =
    askedAuth && (await makeAuth(config, { ...parts, directory, shards, log, services: askedAuth }))
  const askedFor = {
    directory,
    parts,
    standing: state.standing,
    lease,
    auth: authServices,
    connectionsMax: max,
    log,
  }
  const fronts = memory && frontsOf(config, { ...askedFor, memory, end: () => void end() })
  const end = (code = 1) => endProcess({ ...parts, control, fronts }, code)
  return {
    config,
    directory,
    log,
    end,
    state,
    sink,
    serverLog,
    parts,
    keys,
    proposals,
    control,
    auth,
    authServices,
    /** What requests ask, wherever it is; the node's own where it is no node of a cluster. */
    asked: { parts: asked, auth: askedAuth },
    license: authServices?.told,
    fronts,
    cluster,
    ways,
    max,
  }
}

type Server = Awaited<ReturnType<typeof construct>>

/** What a server shows of itself; nothing of it runs yet. */
async function faceOf(server: Server): Promise<Face> {
  const { config, directory, log, state, parts, control, fronts, auth, license, cluster, ways } = server
  const pages = await readPages(config, log)
  const { standing } = state
  const hasConsole = pages.console !== undefined
  const own = mainServices(config, { parts, standing, fronts, license, hasConsole, control, cluster })
  const services = ways === undefined ? own : clusterServices(own, { ways, parts })
  const routes = allRoutes(config.agentId, hasConsole)
  const around = { directory, routes, parts: server.asked.parts, standing, services, auth, pages, log }
  return { routes, services, own, handling: handlingOf(config, around) }
}

type Face = { services: Services; own: Services; routes: readonly Route[]; handling: Handling }

async function listenWith(server: Server, { routes, handling }: Face, opened: Opened): Promise<HttpServer> {
  const { config, log, parts, fronts, max } = server
  const onFull = () => log.warn({ max }, 'too many connections: further ones were closed')
  const connections = { max, open: parts.bounds.connections, onFull }
  const http = await listen({ ...config, connections }, { routes, shared: fronts !== undefined }, handling)
  opened.add(() => http.close())
  return http
}

/**
 * Opens all shards; a node of a cluster waits until each is its own, or reached by a link.
 * @returns where it listens already
 */
async function openShards(
  server: Server,
  face: Face,
  { opened, waiting }: { opened: Opened; waiting: Waiting },
): Promise<HttpServer | undefined> {
  const { auth, authServices, keys, control, fronts, cluster, ways, parts, log, state } = server
  const { threads, shards } = parts
  const listener = shardsListener({
    ...parts,
    keys,
    auth,
    control,
    fronts,
    cluster,
    log,
    end: () => void server.end(),
  })
  if (cluster === undefined || ways === undefined) {
    await threads.start(listener)
    return undefined
  }
  threads.begin(listener)
  ways.begin(frontListener({ ...parts, keys, auth, log }), fronts)
  state.standing.othersReadOnly = () => ways.peers.readOnly
  const main = { parts, services: face.own, auth: authServices }
  cluster.begin({ main, standing: state.standing, peers: ways.peers, shards: ways.shards })
  return waiting.untilServed(cluster, { shards, listen: () => listenWith(server, face, opened) })
}

/** Starts each part after those that it needs; `opened` closes them again if a later one fails. */
async function start(server: Server, opened: Opened, waiting: Waiting): Promise<HttpServer> {
  const { config, directory, log, state, sink, serverLog, parts, keys, proposals, control, fronts } = server
  const { auth, authServices, license, cluster, asked } = server
  const { threads, shards, readers } = parts
  const face = await faceOf(server)
  opened.add(() => cluster?.leave())
  await cluster?.join()
  opened.add(() => readers.close())
  opened.add(() => threads.close())
  const early = await openShards(server, face, { opened, waiting })
  opened.add(() => state.stop())
  state.start()
  const isPatient = () => cluster !== undefined && !waiting.stopped
  await state.writeAtStart(() => makeDefaultAgent(config, shards, isPatient))
  opened.add(() => sink?.stop())
  sink?.start()
  opened.add(() => keys.stop())
  // A node of a cluster has learnt what it must know of each shard with its thread, here or elsewhere.
  if (cluster === undefined) await keys.start()
  else keys.keepUp()
  opened.add(() => parts.tickets.leave())
  parts.tickets.takeUp((id) => principalOfSettings(id, config.dataOpen) ?? parts.apiKeys.ofId(id))
  opened.add(() => authServices?.stop())
  if (cluster === undefined) await learnAll(shards, auth)
  authServices?.start()
  opened.add(() => control.close())
  await control.open()
  opened.add(() => proposals.stop())
  await proposals.start()
  if (!state.readOnly) await tellStart(shards, { dataDir: directory.path, license }, log)
  opened.add(() => serverLog?.stop())
  serverLog?.start()
  opened.add(() => fronts?.close())
  await fronts?.start({ parts: asked.parts, services: face.services, auth: asked.auth })
  if (fronts !== undefined) await cluster?.tellFronts(fronts)
  const http = early ?? (await listenWith(server, face, opened))
  await fronts?.listen(http)
  waiting.over()
  return http
}

/**
 * Notes for commands on this machine where the server listens; it serves without, too.
 * @returns false when the disk has no space for that
 */
function noteWhere({ path }: DataDirectory, url: string, log: Logger): boolean {
  try {
    noteAddress(path, url)
    return true
  } catch (error) {
    if (isLackOfSpace(error)) return false
    log.warn({ err: error }, 'the address could not be noted: commands on this machine need --url')
    return true
  }
}

/** Finishes what is in flight, then stops each part before those that it needs. */
async function stop(server: Server, http: HttpServer): Promise<void> {
  const { config, directory, log, state, sink, serverLog, parts, keys, proposals, control } = server
  const { fronts, authServices } = server
  log.info('stopping')
  dropAddress(directory.path)
  proposals.stop()
  state.stop()
  parts.tickets.leave()
  await Promise.all([drain(config, http, parts), fronts?.drain(config.shutdownTimeoutSecs * 500)])
  await keys.stop()
  await fronts?.close()
  await authServices?.stop()
  await sink?.stop()
  await serverLog?.finish(config.shutdownTimeoutSecs * 250)
  await serverLog?.stop()
  await control.close()
  await server.cluster?.giveUp(config.shutdownTimeoutSecs * 250)
  await parts.threads.close()
  await parts.readers.close()
  await server.cluster?.leave()
  http.close()
  log.info('stopped')
}

/** Accepts nothing new, ends the streams, and waits until the last answer was sent or half the time is over. */
async function drain(
  { shutdownTimeoutSecs }: Config,
  http: HttpServer,
  { streams, uploads, counts }: Parts,
): Promise<void> {
  http.stopListening()
  streams.close()
  uploads.close()
  const untilMs = performance.now() + shutdownTimeoutSecs * 500
  while (counts.inFlight > 0 && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, limits.drainPollMs))
  }
}
