const pattern = /^(?<before>postgres(?:ql)?:\/\/(?:[^@/?]*@)?)(?<hosts>[^@/?]+)(?<after>(?:[/?].*)?)$/

/**
 * Splits a libpq URL with several hosts (`postgres://user@one:5432,two:5432/name`) into one URL for each
 * host, because the driver supports one host only.
 * @returns an empty list when the URL is invalid
 */
export function hostUrls(url: string): string[] {
  const { before = '', hosts = '', after = '' } = pattern.exec(url)?.groups ?? {}
  if (hosts === '') return []
  const urls = hosts.split(',').map((host) => `${before}${host}${after}`)
  return urls.every((one) => URL.canParse(one)) ? urls : []
}
