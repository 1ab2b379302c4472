import { BlockList } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** Whether a host is this machine itself: a name, an address, or the host of a URL. */
export function isLoopback(host: string): boolean {
  const address = host.startsWith('[') ? host.slice(1, -1) : host
  return address === 'localhost' || loopback.check(address) || loopback.check(address, 'ipv6')
}
