const pattern = /^(?<before>postgres(?:ql)?:\/\/(?:[^@/?]*@)?)(?<hosts>[^@/?]+)(?<after>(?:[/?].*)?)$/

/**
 * The addresses of a list of hosts as libpq writes it (`postgres://user@one:5432,two:5432/name`), one each: the driver
 * knows one host.
 * @returns none where it is no such address
 */
export function hostUrls(url: string): string[] {
  const { before = '', hosts = '', after = '' } = pattern.exec(url)?.groups ?? {}
  if (hosts === '') return []
  const urls = hosts.split(',').map((host) => `${before}${host}${after}`)
  return urls.every((one) => URL.canParse(one)) ? urls : []
}
