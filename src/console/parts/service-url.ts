/** The address of the service, without a slash at its end: the page is its `/console`, perhaps behind a proxy's prefix. */
export function serviceUrl(): string {
  return new URL('.', location.href).href.replace(/\/$/, '')
}
