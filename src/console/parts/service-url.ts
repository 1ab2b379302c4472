/**
 * The URL of the service without a trailing slash. The page is at its `/console`, possibly below a proxy's
 * prefix.
 */
export function serviceUrl(): string {
  return new URL('.', location.href).href.replace(/\/$/, '')
}
