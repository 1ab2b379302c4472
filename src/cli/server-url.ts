import type { Config } from '../config.js'

/** Where a server with these settings is reached from its own machine, without a slash at the end. */
export function serverUrl(config: Pick<Config, 'host' | 'port' | 'tls'>): string {
  const { host, port } = config
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${config.tls === undefined ? 'http' : 'https'}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}
