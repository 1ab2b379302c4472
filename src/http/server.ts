import { isIPv6 } from 'node:net'
import { refuse } from '../base/errors.js'
import { assertFree } from '../base/free-port.js'
import type { Config } from '../settings/config.js'
import type { Route } from '../routes/routes.js'
import { problemOf } from '../wire/problem.js'
import { boundConnections, type ConnectionBound } from './connections.js'
import { addFallbacks } from './fallback.js'
import { handlerOf } from './handle.js'
import type { Handling } from './handling.js'
import type { DoorOptions, Engine, HttpDoor } from '../door/door.js'
import { loadEngine, type LoadedEngine } from '../door/engine.js'

/** The listening part of the server. */
export interface HttpServer {
  url: string
  /** The HTTP library. */
  engine: Engine
  /** Why the faster one does not serve, where it was not left out on purpose. */
  slowerBecause: string | undefined
  /** Takes no new connections; open ones go on. */
  stopListening(): void
  /** Closes every connection. */
  close(): void
}

/**
 * Listens and routes.
 * @throws Error when the address cannot be listened on, or the certificate not be read
 */
export async function listen(
  config: Pick<Config, 'host' | 'port' | 'tls' | 'httpEngine'> & { connections: ConnectionBound },
  routes: readonly Route[],
  handling: Handling,
): Promise<HttpServer> {
  const loading = await loadEngine(config.httpEngine)
  if (!loading.ok) throw new Error(loading.detail)
  const { engine, slowerBecause } = loading.loaded
  if (config.port !== 0) await assertFree(config)
  const malformed = () => JSON.stringify(problemOf(noRequest, handling.nextRequestId()))
  const door = doorOf(loading.loaded, { tls: config.tls, malformed })
  boundConnections(door, config.connections)
  for (const route of routes) {
    door.route(route.method, route.path, handlerOf(route, handling))
    if (route.method === 'get') door.route('head', route.path, handlerOf(route, handling, true))
  }
  addFallbacks(door, routes, handling)
  const port = await door.listen(config.host, config.port)
  if (port === undefined)
    throw new Error(`Expected ${config.host}:${config.port} to be free and an address of this machine`)
  return {
    url: `${config.tls === undefined ? 'http' : 'https'}://${shown(config.host)}:${port}`,
    engine,
    slowerBecause,
    stopListening: () => door.stopListening(),
    close() {
      door.stopListening()
      door.close()
    },
  }
}

const noRequest = refuse('malformed_request', 'Expected a request of HTTP/1.1')

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
