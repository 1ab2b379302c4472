import { once } from 'node:events'
import { createServer, isIPv6 } from 'node:net'
import type { Config } from '../settings/config.js'
import type { Route } from '../routes/routes.js'
import { boundConnections, type ConnectionBound } from './connections.js'
import { addFallbacks } from './fallback.js'
import { handlerOf } from './handle.js'
import type { Handling } from './handling.js'
import { App, closeListenSocket, localPort, SSLApp, type ListenSocket, type TemplatedApp } from './uws.js'

/** The listening part of the server. */
export interface HttpServer {
  url: string
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
  config: Pick<Config, 'host' | 'port' | 'tls'> & { connections: ConnectionBound },
  routes: readonly Route[],
  handling: Handling,
): Promise<HttpServer> {
  await assertFree(config)
  const app = appOf(config)
  boundConnections(app, config.connections)
  for (const route of routes) {
    app[route.method](route.path, handlerOf(route, handling))
    if (route.method === 'get') app.head(route.path, handlerOf(route, handling, true))
  }
  addFallbacks(app, routes, handling)
  const socket = await new Promise<ListenSocket | false>((resolve) =>
    app.listen(config.host, config.port, resolve),
  )
  if (socket === false)
    throw new Error(`Expected ${config.host}:${config.port} to be free and an address of this machine`)
  let listening = true
  const stopListening = () => {
    if (listening) closeListenSocket(socket)
    listening = false
  }
  return {
    url: `${config.tls === undefined ? 'http' : 'https'}://${shown(config.host)}:${localPort(socket)}`,
    stopListening,
    close() {
      stopListening()
      app.close()
    },
  }
}

/**
 * uWebSockets.js shares a port with whoever already listens on it (SO_REUSEPORT), so two servers would each get some of
 * the connections. With its exclusive option, no server could start again while old connections linger, so Node tries
 * the port first.
 */
async function assertFree({ host, port }: Pick<Config, 'host' | 'port'>): Promise<void> {
  if (port === 0) return
  const probe = createServer()
  probe.listen({ host, port, exclusive: true })
  await once(probe, 'listening')
  probe.close()
  await once(probe, 'close')
}

function appOf({ tls }: Pick<Config, 'tls'>): TemplatedApp {
  if (tls === undefined) return App()
  try {
    return SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile })
  } catch (error) {
    throw new Error(`Expected ${tls.certFile} and ${tls.keyFile} to be a PEM certificate and its key`, {
      cause: error,
    })
  }
}

function shown(host: string): string {
  return isIPv6(host) ? `[${host}]` : host
}
