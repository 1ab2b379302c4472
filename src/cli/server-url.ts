import { type Config, describeFaults, readProcessConfig } from '../settings/config.js'

/** Where a server with these settings is reached from its own machine, without a slash at the end. */
export function serverUrl(config: Pick<Config, 'host' | 'port' | 'tls'>): string {
  const { host, port } = config
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${config.tls === undefined ? 'http' : 'https'}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

/**
 * The address of the running server for a command, without a slash at the end, and the key: from --url and --key,
 * otherwise from the settings. A text says what is wrong with either.
 */
export function serverAsked({
  url: givenUrl,
  key: givenKey,
}: {
  url?: string
  key?: string
}): { url: string; key: string | undefined } | string {
  let [url, key] = [givenUrl, givenKey]
  if (url === undefined || key === undefined) {
    const reading = readProcessConfig()
    if (!reading.ok) return `Settings are wrong\n${describeFaults(reading.faults)}`
    url ??= serverUrl(reading.config)
    key ??= reading.config.rootApiKey
  }
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) return 'Expected an http or https URL after --url'
  return { url: url.replace(/\/+$/, ''), key }
}
