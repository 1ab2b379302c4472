import { isIPv6 } from 'node:net'
import { refuse } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { assertFree } from '../engine/free-port.js'
import type { Config } from '../../settings/config.js'
import type { Route } from '../routes/routes.js'
import { problemOf } from '../../wire/problem.js'
import { boundConnections, type ConnectionBound } from '../limits/connections.js'
import { addFallbacks } from './fallback.js'
import { handlerOf } from './handle.js'
import type { Handling } from './handling.js'
import type { HandlerMethod, ListenerOptions, Engine, HttpListener } from '../engine/http-listener.js'
import { loadEngine, type LoadedEngine } from '../engine/engine.js'

export interface HttpServer {
  url: string
  port: number
  engine: Engine
  /** Shares the connections with a front of another thread. */
  shareWith(listenerId: number): void
  /** Accepts no new connections; open ones stay. */
  stopListening(): void
  close(): void
}

export type ListenSettings = Pick<Config, 'host' | 'port' | 'tls' | 'httpEngine'> & {
  connections: ConnectionBound
}

/** A front that shares the port of another thread. */
export interface HttpShare extends Pick<HttpServer, 'stopListening' | 'close'> {
  /** The id for the `shareWith` of the thread that listens first. */
  listenerId: number
}

/**
 * Listens for requests and routes them.
 * @param shared whether fronts of other threads share the connections
 * @throws Error if the server cannot listen on the address or cannot read the certificate
 */
export async function listen(
  config: ListenSettings,
  { routes, shared }: { routes: readonly Route[]; shared: boolean },
  handling: Handling,
): Promise<HttpServer> {
  const loaded = await engineOf(config)
  if (config.port !== 0) await assertFree(config)
  const listener = createListener(loaded, config, { routes, handling })
  const port = await listener.listen(config.host, config.port, shared)
  if (port === undefined) throw new Error(notFree(config))
  return {
    url: `${config.tls === undefined ? 'http' : 'https'}://${hostInUrl(config.host)}:${port}`,
    port,
    engine: loaded.engine,
    shareWith: (listenerId) => listener.shareWith(listenerId),
    ...closeMethods(listener),
  }
}

/**
 * Shares the port on which another thread of this process listens, and routes requests.
 * @throws Error if the port cannot be shared or the certificate cannot be read
 */
export async function listenShared(
  config: ListenSettings,
  routes: readonly Route[],
  handling: Handling,
): Promise<HttpShare> {
  const listener = createListener(await engineOf(config), config, { routes, handling })
  const share = await listener.takeShare(config.host, config.port)
  if (share === undefined) throw new Error(notFree(config))
  return { listenerId: share, ...closeMethods(listener) }
}

async function engineOf({ httpEngine }: ListenSettings): Promise<LoadedEngine> {
  const loading = await loadEngine(httpEngine)
  if (!loading.ok) throw new Error(loading.detail)
  return loading.loaded
}

function createListener(
  loaded: LoadedEngine,
  { tls, connections }: ListenSettings,
  { routes, handling }: { routes: readonly Route[]; handling: Handling },
): HttpListener {
  const problem: ListenerOptions['problem'] = (code) =>
    JSON.stringify(problemOf(refuse(code, noRequest[code]), handling.nextRequestId()))
  const listener = openListener(loaded, { tls, problem })
  boundConnections(listener, connections)
  const all = routes.flatMap((route): { method: HandlerMethod; route: Route; headOnly: boolean }[] => {
    const own = { method: route.method, route, headOnly: false }
    return route.method === 'get' ? [own, { method: 'head', route, headOnly: true }] : [own]
  })
  for (const { method, route, headOnly } of all)
    listener.route(method, route.path, handlerOf(route, handling, headOnly))
  addFallbacks(listener, routes, handling)
  return listener
}

function closeMethods(listener: HttpListener): Pick<HttpServer, 'stopListening' | 'close'> {
  return {
    stopListening: () => listener.stopListening(),
    close() {
      listener.stopListening()
      listener.close()
    },
  }
}

function notFree({ host, port }: ListenSettings): string {
  return `Cannot listen on ${host}:${port}: the port is in use, or the host is not an address of this machine`
}

const noRequest = {
  malformed_request: 'Expected a request of HTTP/1.1',
  headers_too_large: `Expected headers of at most ${limits.headerBlockBytesMax} bytes`,
  http_version_not_supported: 'Expected HTTP/1.1, and a target of this server',
}

function openListener({ open }: LoadedEngine, options: ListenerOptions): HttpListener {
  const { tls } = options
  try {
    return open(options)
  } catch (error) {
    if (tls === undefined) throw error
    throw new Error(`Cannot read ${tls.certFile} and ${tls.keyFile} as a PEM certificate and its key`, {
      cause: error,
    })
  }
}

function hostInUrl(host: string): string {
  return isIPv6(host) ? `[${host}]` : host
}

/** Why several threads cannot share a port, in one line; undefined if they can. */
export async function unsharedReason(httpEngine: Config['httpEngine']): Promise<string | undefined> {
  const loading = await loadEngine(httpEngine)
  return loading.ok ? loading.loaded.unsharedReason() : undefined
}
