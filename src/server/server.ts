import { systemClock } from '../base/clock.js'
import type { Logger } from '../base/log.js'
import { makeClusterNode } from '../cluster/node/make.js'
import type { BeginParts } from '../cluster/node/node.js'
import { clusterReach, clusterServices } from './node-services.js'
import { Control } from '../data/backup/control.js'
import type { DataDirectory } from '../data/directory.js'
import { ProposalClock } from '../dispatch/duties/proposal-clock.js'
import { ApiKeySync } from '../front/http/auth/api-key-sync.js'
import { standingsBy } from '../front/http/auth/standings.js'
import { type HttpServer, listen } from '../front/http/server.js'
import { allRoutes } from '../front/routes/routes.js'
import type { Config } from '../settings/config.js'
import { makeAuth } from './auth.js'
import { makeAuthServices } from './auth-services.js'
import { mainCalls } from './calls/main-calls.js'
import { makeFronts } from './fronts/fronts.js'
import { endProcess } from './lifecycle.js'
import { readPages } from './pages.js'
import { connectionBound, makeParts, poolListener } from './parts.js'
import { handlingOf } from './requests.js'
import { mainServices } from './services.js'
import { makeShards, storeFlushOf } from './shards.js'
import { ServerState } from './state.js'

/** Everything that a server consists of. */
export type Server = Awaited<ReturnType<typeof makeServer>>

/** Creates the server without starting it. */
export async function makeServer(config: Config, directory: DataDirectory, log: Logger) {
  const state = new ServerState(config, log)
  const { status } = state
  const end = (code = 1): Promise<void> => endProcess({ parts, control, fronts }, code)
  const lost = (reason: string) => {
    log.fatal({ reason }, 'this node of the cluster cannot continue: the process exits')
    void end()
  }
  const cluster = await makeClusterNode(config, { directory, log, lost })
  const threads = makeShards(config, directory, cluster)
  const { shards } = threads
  const listener = poolListener(log)
  const readOnly = () => state.readOnly
  shards.isReadOnly = readOnly
  const isOwn = (shard: number) => threads.has(shard)
  const lease = cluster?.lease
  const clock = cluster?.clock.now ?? systemClock
  const parts = makeParts(config, { clock, directory, threads, lease, listener, readOnly, log })
  const control = new Control({
    ...directory,
    freeBytesMin: config.freeBytesMin,
    serving: () => shards.serving,
    flush: storeFlushOf(shards),
    nowMs: systemClock,
    log,
  })
  const keys = new ApiKeySync({ shards, keys: parts.apiKeys, readOnly, nowMs: clock })
  const standings = standingsBy(config.agentId, parts)
  const proposals = new ProposalClock({ shards, isOwn, readOnly, standings })
  const authServices = await makeAuthServices(config, { directory, shards, isOwn, log, listener })
  if (authServices !== undefined) parts.pools.push(authServices.passwords)
  const license = authServices?.licenseStatus

  const pages = await readPages(config, log)
  const hasConsole = pages.console !== undefined
  // The services that requests use: those of this node, or those of all nodes of a cluster.
  const reach = cluster && clusterReach({ cluster, parts, log })
  const servedParts = { ...parts, ...reach?.parts }
  const servedAuth = authServices && (reach?.auth(authServices) ?? authServices)
  const fronts = makeFronts(config, {
    directory,
    parts,
    status,
    lease,
    clock: cluster?.clock,
    auth: authServices,
    calls: (front) => mainCalls({ parts: servedParts, services, auth: servedAuth }, front),
    end: () => void end(),
    log,
  })
  const own = mainServices(config, { parts, status, fronts, license, hasConsole, control, cluster })
  const services = reach === undefined ? own : clusterServices(own, { peers: reach.peers, threads })
  const auth = servedAuth && (await makeAuth(config, { ...parts, directory, log, services: servedAuth }))
  const routes = allRoutes(config.agentId, hasConsole)
  const around = { directory, routes, parts: servedParts, status, services, auth, pages, log }
  const handling = handlingOf(config, around)
  const connections = connectionBound(parts.bounds, parts.connectionsMax, log)
  const shared = fronts !== undefined
  const http = new HttpPort(() => listen({ ...config, connections }, { routes, shared }, handling))
  // For the fronts of other nodes, which need the services of this node only.
  const calls: BeginParts['calls'] = (front, ended) =>
    mainCalls({ parts, services: own, auth: authServices }, front, ended)
  const more = { auth, authServices, license, cluster, reach, calls, fronts, http }
  return { config, directory, log, end, state, parts, keys, proposals, control, ...more }
}

/** The listener of the main thread. It opens once: a standby opens it before it serves. */
class HttpPort {
  readonly #listen: () => Promise<HttpServer>
  #server: HttpServer | undefined
  #isStandby: () => void = () => {}
  /** Resolves when the listener was opened for a standby. */
  readonly standby: Promise<void>

  constructor(listen: () => Promise<HttpServer>) {
    this.#listen = listen
    this.standby = new Promise((resolve) => (this.#isStandby = resolve))
  }

  /** @throws Error if the address cannot be listened on */
  async open(): Promise<HttpServer> {
    this.#server ??= await this.#listen()
    return this.#server
  }

  async openStandby(): Promise<void> {
    await this.open()
    this.#isStandby()
  }

  get server(): HttpServer | undefined {
    return this.#server
  }
}
