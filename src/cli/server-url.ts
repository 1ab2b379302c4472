import { Addresses } from '../client/addresses.js'
import { findServer } from '../data/address.js'
import { type Config, describeFaults } from '../settings/config.js'
import { NoServerError, renamedOption } from './command.js'
import { settingsOf } from './read-settings.js'

/** The options that select the server of a command. */
export const serverOptions = {
  url: { type: 'string' },
  'api-key': { type: 'string' },
  /** The former name of `--api-key`. */
  key: { type: 'string' },
  'data-dir': { type: 'string' },
} as const

/** The lines of a usage about `serverOptions`. */
export const SERVER_USAGE = `On the machine of the server, its address and root key are read from the data directory (--data-dir or SERVICE_DATA_DIR).
On another machine, give --url URL, and --api-key KEY or SERVICE_ROOT_API_KEY.
`

/** `SERVER_USAGE` for a command that accepts several addresses. */
export const SERVERS_USAGE = `${SERVER_USAGE}--url accepts the nodes of a cluster, separated by commas: if one cannot be reached or is a standby, the next is tried.
`

/** The values of `serverOptions`. */
type ServerOptionValues = Partial<Record<keyof typeof serverOptions, string | undefined>>

/** A server: its address without a trailing slash, and the API key to use. */
interface ServerTarget {
  url: string
  key: string | undefined
}

/**
 * A server or the nodes of a cluster, tried one after another: addresses without a trailing slash, and the
 * API key to use.
 */
export interface ServerTargets {
  urls: readonly string[]
  key: string | undefined
}

/** The address of a server with these settings on its own machine, without a trailing slash. */
export function serverUrl({ host, port, tls }: Pick<Config, 'host' | 'port' | 'tls'>): string {
  const hostname = host.includes(':') ? `[${host}]` : host
  return loopbackUrl(`${tls === undefined ? 'http' : 'https'}://${hostname}:${port}`)
}

/** The address that the running server has written to its data directory; undefined if no server runs. */
export function runningServerUrl({ dataDir }: Pick<Config, 'dataDir'>): string | undefined {
  const { url } = findServer(dataDir)
  return url === undefined ? undefined : loopbackUrl(url)
}

/** Replaces a wildcard host in the address on which a server listens by the loopback address. */
export function loopbackUrl(url: string): string {
  return url.replace(...wildcardHost)
}

const wildcardHost = [
  /\/\/(0\.0\.0\.0|\[::\])(?=:|$)/,
  (_all: string, host: string) => (host === '[::]' ? '//[::1]' : '//127.0.0.1'),
] as const

/**
 * The server address and API key of a command: from --url and --api-key, otherwise from the data directory of
 * the server that runs on this machine. No other server is called, such as one at the default address. The
 * root key of a data directory is sent only to the server of that directory.
 * @throws NoServerError if the server of the data directory does not run; Error that says what is wrong
 */
export function serverOf(values: ServerOptionValues): ServerTarget {
  const { url: givenUrl, 'data-dir': dataDir } = values
  if (givenUrl?.includes(',') === true)
    throw new Error('Expected --url to be one URL: this command calls one server')
  let [url, key] = [givenUrl, renamedOption(values, 'key', 'api-key')]
  if (url === undefined || key === undefined) {
    const config = validConfig(dataDir)
    const { url: notedUrl, rootKey, fault } = findServer(config.dataDir)
    const ownUrl = notedUrl === undefined ? undefined : loopbackUrl(notedUrl)
    url ??= ownUrl
    if (url === undefined)
      throw new NoServerError(
        `${fault}: start one with strandfast serve, or give the address of one with --url`,
      )
    key ??= config.rootApiKey ?? (isSameServer(url, ownUrl) ? rootKey : undefined)
  }
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new Error('Expected --url to be an http or https URL')
  return { url: url.replace(/\/+$/, ''), key }
}

/**
 * Like `serverOf`, for a command that accepts several addresses in --url, separated by commas. With several
 * addresses, the root key of a data directory is never sent.
 * @throws as `serverOf`
 */
export function serversOf(values: ServerOptionValues): ServerTargets {
  const { url, 'data-dir': dataDir } = values
  if (url?.includes(',') !== true) {
    const server = serverOf(values)
    return checkedServers({ urls: [server.url], key: server.key })
  }
  const urls = url.split(',').map((one) => one.trim())
  const key = renamedOption(values, 'key', 'api-key') ?? validConfig(dataDir).rootApiKey
  return checkedServers({ urls, key })
}

/** Checks and normalizes addresses as the client does. @throws Error if one is wrong */
function checkedServers({ urls, key }: ServerTargets): ServerTargets {
  try {
    return { urls: new Addresses(urls).urls, key }
  } catch (error) {
    throw new Error(`--url: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

function validConfig(dataDir: string | undefined): Config {
  const reading = settingsOf(dataDir)
  if (reading.ok) return reading.config
  const faults = describeFaults(reading.faults).trimEnd().replaceAll('\n', '; ')
  throw new Error(`The settings are invalid: ${faults}`)
}

function isSameServer(url: string, ownUrl: string | undefined): boolean {
  return ownUrl !== undefined && URL.canParse(url) && new URL(url).origin === new URL(ownUrl).origin
}
