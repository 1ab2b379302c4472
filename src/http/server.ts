import { isIPv6 } from 'node:net'
import type { Config } from '../config.js'
import type { Route } from '../routes/route.js'
import { addFallbacks } from './fallback.js'
import { handlerOf, type Handling } from './handle.js'
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
  config: Pick<Config, 'host' | 'port' | 'tls'>,
  routes: readonly Route[],
  handling: Handling,
): Promise<HttpServer> {
  const app = appOf(config)
  for (const route of routes) app[route.method](route.path, handlerOf(route, handling))
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

function appOf({ tls }: Pick<Config, 'tls'>): TemplatedApp {
  if (tls === undefined) return App()
  return SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile })
}

function shown(host: string): string {
  return isIPv6(host) ? `[${host}]` : host
}
