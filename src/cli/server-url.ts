import { findServer } from '../data-directory/address.js'
import { type Config, describeFaults } from '../settings/config.js'
import { settingsOf } from './read-settings.js'

/** The options by which every command that asks a server is told which. */
export const serverOptions = {
  url: { type: 'string' },
  key: { type: 'string' },
  'data-dir': { type: 'string' },
} as const

/** The lines of a usage about `serverOptions`. */
export const SERVER_USAGE = `On the server's own machine, its address and root key are found in the data directory: that of --data-dir or the settings.
Otherwise: --url URL, and --key KEY or SERVICE_ROOT_API_KEY.
`

/** What `serverOptions` were given. */
export type ServerValues = Partial<Record<keyof typeof serverOptions, string>>

/** A server to ask: the address without a slash at the end. */
export interface AskedServer {
  url: string
  key: string | undefined
}

/** Where a server with these settings is reached from its own machine, without a slash at the end. */
export function serverUrl({ host, port, tls }: Pick<Config, 'host' | 'port' | 'tls'>): string {
  const named = host.includes(':') ? `[${host}]` : host
  return reachedAt(`${tls === undefined ? 'http' : 'https'}://${named}:${port}`)
}

/** Where the server of a data directory on this machine is reached, as its running server has noted. */
export function ownAddress({ dataDir }: Pick<Config, 'dataDir'>): string | undefined {
  const { url } = findServer(dataDir)
  return url === undefined ? undefined : reachedAt(url)
}

/** The address at which a server that listens at `url` is reached from its own machine. */
export function reachedAt(url: string): string {
  return url.replace(...anyAddress)
}

/** Every address of the machine, as a server listens on it: reached on that of the machine itself. */
const anyAddress = [
  /\/\/(0\.0\.0\.0|\[::\])(?=:|$)/,
  (_all: string, host: string) => (host === '[::]' ? '//[::1]' : '//127.0.0.1'),
] as const

/**
 * The address of the running server for a command, and the key: from --url and --key, otherwise from the data directory
 * of a server on this machine, otherwise from the settings. The root key of a data directory is sent to no other address
 * than that of its server. A text says what is wrong.
 */
export function serverAsked({
  url: givenUrl,
  key: givenKey,
  'data-dir': dataDir,
}: ServerValues): AskedServer | string {
  let [url, key] = [givenUrl, givenKey]
  if (url === undefined || key === undefined) {
    const reading = settingsOf(dataDir)
    if (!reading.ok)
      return `Settings are wrong: ${describeFaults(reading.faults).trimEnd().replaceAll('\n', '; ')}`
    const found = findServer(reading.config.dataDir)
    const ownUrl = ownAddress(reading.config) ?? serverUrl(reading.config)
    url ??= ownUrl
    key ??= reading.config.rootApiKey ?? (isSameServer(url, ownUrl) ? found.rootKey : undefined)
  }
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) return 'Expected an http or https URL after --url'
  return { url: url.replace(/\/+$/, ''), key }
}

function isSameServer(url: string, ownUrl: string): boolean {
  return URL.canParse(url) && new URL(url).origin === new URL(ownUrl).origin
}
