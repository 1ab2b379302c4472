import { isIPv6 } from 'node:net'
import { refuse } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { assertFree } from '../door/free-port.js'
import type { Config } from '../../settings/config.js'
import type { Route } from '../routes/routes.js'
import { problemOf } from '../../wire/problem.js'
import { boundConnections, type ConnectionBound } from '../limits/connections.js'
import { addFallbacks } from './fallback.js'
import { handlerOf } from './handle.js'
import type { Handling } from './handling.js'
import type { DoorMethod, DoorOptions, Engine, HttpDoor } from '../door/door.js'
import { loadEngine, type LoadedEngine } from '../door/engine.js'

/** The listening part of the server. */
export interface HttpServer {
  url: string
  /** The port in force. */
  port: number
  /** The HTTP library. */
  engine: Engine
  /** Gives a front of another thread a share of the connections. */
  shareWith(door: number): void
  /** Takes no new connections; open ones go on. */
  stopListening(): void
  /** Closes every connection. */
  close(): void
}

/** The settings that listening needs. */
export type ListenSettings = Pick<Config, 'host' | 'port' | 'tls' | 'httpEngine'> & {
  connections: ConnectionBound
}

/** A part of the server that listens with others on one port. */
export interface HttpShare extends Pick<HttpServer, 'stopListening' | 'close'> {
  /** Names it to the thread that listens first. */
  door: number
}

/**
 * Listens and routes.
 * @param shared whether fronts of other threads take a share of the connections
 * @throws Error when the address cannot be listened on, or the certificate not be read
 */
export async function listen(
  config: ListenSettings,
  { routes, shared }: { routes: readonly Route[]; shared: boolean },
  handling: Handling,
): Promise<HttpServer> {
  const loaded = await engineOf(config)
  if (config.port !== 0) await assertFree(config)
  const door = openDoor(loaded, config, { routes, handling })
  const port = await door.listen(config.host, config.port, shared)
  if (port === undefined) throw new Error(notFree(config))
  return {
    url: `${config.tls === undefined ? 'http' : 'https'}://${shown(config.host)}:${port}`,
    port,
    engine: loaded.engine,
    shareWith: (other) => door.shareWith(other),
    ...endsOf(door),
  }
}

/**
 * Takes a share of the connections of a port that another thread of this process listens on, and routes.
 * @throws Error when that is not possible, or the certificate cannot be read
 */
export async function listenAlong(
  config: ListenSettings,
  routes: readonly Route[],
  handling: Handling,
): Promise<HttpShare> {
  const door = openDoor(await engineOf(config), config, { routes, handling })
  const share = await door.takeShare(config.host, config.port)
  if (share === undefined) throw new Error(notFree(config))
  return { door: share, ...endsOf(door) }
}

async function engineOf({ httpEngine }: ListenSettings): Promise<LoadedEngine> {
  const loading = await loadEngine(httpEngine)
  if (!loading.ok) throw new Error(loading.detail)
  return loading.loaded
}

function openDoor(
  loaded: LoadedEngine,
  { tls, connections }: ListenSettings,
  { routes, handling }: { routes: readonly Route[]; handling: Handling },
): HttpDoor {
  const problem: DoorOptions['problem'] = (code) =>
    JSON.stringify(problemOf(refuse(code, noRequest[code]), handling.nextRequestId()))
  const door = doorOf(loaded, { tls, problem })
  boundConnections(door, connections)
  const all = routes.flatMap((route): { method: DoorMethod; route: Route; headOnly: boolean }[] => {
    const own = { method: route.method, route, headOnly: false }
    return route.method === 'get' ? [own, { method: 'head', route, headOnly: true }] : [own]
  })
  for (const { method, route, headOnly } of all)
    door.route(method, route.path, handlerOf(route, handling, headOnly))
  addFallbacks(door, routes, handling)
  return door
}

function endsOf(door: HttpDoor): Pick<HttpServer, 'stopListening' | 'close'> {
  return {
    stopListening: () => door.stopListening(),
    close() {
      door.stopListening()
      door.close()
    },
  }
}

function notFree({ host, port }: ListenSettings): string {
  return `Expected ${host}:${port} to be free and an address of this machine`
}

const noRequest = {
  malformed_request: 'Expected a request of HTTP/1.1',
  headers_too_large: `Expected headers of at most ${limits.headerBlockBytesMax} bytes`,
  http_version_not_supported: 'Expected HTTP/1.1, and a target of this server',
}

function doorOf({ open }: LoadedEngine, options: DoorOptions): HttpDoor {
  const { tls } = options
  try {
    return open(options)
  } catch (error) {
    if (tls === undefined) throw error
    throw new Error(`Expected ${tls.certFile} and ${tls.keyFile} to be a PEM certificate and its key`, {
      cause: error,
    })
  }
}

function shown(host: string): string {
  return isIPv6(host) ? `[${host}]` : host
}

/** Why several threads cannot listen on one port, in one line; undefined where they can. */
export async function unsharedBecause(httpEngine: Config['httpEngine']): Promise<string | undefined> {
  const loading = await loadEngine(httpEngine)
  return loading.ok ? loading.loaded.unsharedBecause() : undefined
}
