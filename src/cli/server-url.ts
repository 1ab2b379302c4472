import { Addresses } from '../client/addresses.js'
import { findServer } from '../data/address.js'
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

/** The same of a command that goes on at the next address. */
export const SERVERS_USAGE = `${SERVER_USAGE}--url takes the nodes of a cluster between commas: where one is away or stands by, the next is asked.
`

/** What `serverOptions` were given. */
export type ServerValues = Partial<Record<keyof typeof serverOptions, string>>

/** A server to ask: the address without a slash at the end. */
export interface ServerTarget {
  url: string
  key: string | undefined
}

/** A server, or the nodes of a cluster, to ask in turn: addresses without a slash at the end. */
export interface ServerTargets {
  urls: readonly string[]
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
export function serverOf({
  url: givenUrl,
  key: givenKey,
  'data-dir': dataDir,
}: ServerValues): ServerTarget | string {
  if (givenUrl?.includes(',') === true) return 'Expected one URL after --url: this command asks one server'
  let [url, key] = [givenUrl, givenKey]
  if (url === undefined || key === undefined) {
    const reading = settingsOf(dataDir)
    if (!reading.ok) return describeSettings(reading.faults)
    const found = findServer(reading.config.dataDir)
    const ownUrl = ownAddress(reading.config) ?? serverUrl(reading.config)
    url ??= ownUrl
    key ??= reading.config.rootApiKey ?? (isSameServer(url, ownUrl) ? found.rootKey : undefined)
  }
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) return 'Expected an http or https URL after --url'
  return { url: url.replace(/\/+$/, ''), key }
}

/**
 * The same for a command that goes on at the next address: --url may name several, between commas. The root key of a data
 * directory is sent to none of them.
 */
export function serversOf(values: ServerValues): ServerTargets | string {
  const { url, key, 'data-dir': dataDir } = values
  if (url?.includes(',') !== true) {
    const server = serverOf(values)
    if (typeof server === 'string') return server
    return checkedServers({ urls: [server.url], key: server.key })
  }
  const urls = url.split(',').map((one) => one.trim())
  if (key !== undefined) return checkedServers({ urls, key })
  const reading = settingsOf(dataDir)
  if (!reading.ok) return describeSettings(reading.faults)
  return checkedServers({ urls, key: reading.config.rootApiKey })
}

/** Addresses as the client takes them; a text says why it would not. */
function checkedServers({ urls, key }: ServerTargets): ServerTargets | string {
  try {
    return { urls: new Addresses(urls).inTurn, key }
  } catch (error) {
    return `--url: ${error instanceof Error ? error.message : String(error)}`
  }
}

function describeSettings(faults: Parameters<typeof describeFaults>[0]): string {
  return `Settings are wrong: ${describeFaults(faults).trimEnd().replaceAll('\n', '; ')}`
}

function isSameServer(url: string, ownUrl: string): boolean {
  return URL.canParse(url) && new URL(url).origin === new URL(ownUrl).origin
}
