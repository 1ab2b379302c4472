import { isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { assert } from '../../base/assert.js'
import { limits } from '../../base/limits/limits.js'

interface Range {
  /** 4 or 16 bytes. */
  bytes: Uint8Array
  /** Length of the prefix, in bits. */
  bits: number
}

/** IP ranges; IPv4-mapped ranges are stored as IPv4. */
export type AddressRanges = readonly Range[]

const IPV4_BYTES = 4
const IPV6_BYTES = 16
const MAPPED_PREFIX_BITS = 96
/** More than the longest IPv6 address with brackets and a port. */
const HOP_CHARACTERS_MAX = 64

const hexPairs = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/**
 * The client's address: 4 or 16 bytes; an IPv4-mapped address as its 4 bytes.
 *
 * `X-Forwarded-For` counts only if the peer is a trusted proxy. It is read from the right, where the nearest
 * proxy wrote, to the first hop that is not trusted: clients can forge everything left of it. A hop that is
 * not an address ends the walk at the hop before it, or at the peer. If all are trusted, the leftmost of at
 * most `forwardedHopsMax` is the client. This runs before admission, so it has to be cheap: about a
 * microsecond.
 * @param request.peer bytes of the connection's remote address, as the HTTP library returns them; copied, not
 * kept
 * @param request.forwardedFor all lines of the header joined by commas, in order; empty if absent
 */
export function clientAddress(request: {
  peer: Uint8Array
  forwardedFor: string
  trusted: AddressRanges
}): Uint8Array {
  const { forwardedFor, trusted } = request
  let address = withoutMapping(request.peer)
  let end = forwardedFor.length
  for (let hops = 0; hops < limits.forwardedHopsMax && end > 0 && isWithinAny(address, trusted); hops++) {
    const comma = forwardedFor.lastIndexOf(',', end - 1)
    const hop = parseHop(forwardedFor.slice(comma + 1, end).trim())
    if (hop === undefined) return address
    address = hop
    end = comma
  }
  return address
}

/**
 * The key under which rate limiters count an address: an IPv4 address in full, an IPv6 address by its /64,
 * which is what one customer gets. Any other length (a closed connection) shares one key.
 * @param ip 4 or 16 bytes
 */
export function limiterKey(ip: Uint8Array): string {
  if (ip.length === IPV4_BYTES) return ipv4Text(ip, 0)
  if (ip.length !== IPV6_BYTES) return 'unknown'
  if (isMapped(ip)) return ipv4Text(ip, IPV6_BYTES - IPV4_BYTES)
  return `${ipv6Group(ip, 0)}:${ipv6Group(ip, 2)}:${ipv6Group(ip, 4)}:${ipv6Group(ip, 6)}::/64`
}

/** An address as text (RFC 5952), for audit records and logs; empty if it is not 4 or 16 bytes. */
export function addressText(ip: Uint8Array): string {
  const parsed = fromBytes(withoutMapping(ip))
  if (parsed === undefined) return ''
  return parsed instanceof ipaddr.IPv6 ? parsed.toRFC5952String() : parsed.toString()
}

/**
 * Parses IP addresses and CIDR ranges, separated by commas. `::/0` matches every IPv6 address and no IPv4
 * address.
 * @returns the ranges, and one error text for each invalid entry
 */
export function parseAddressRanges(cidrs: string): { ranges: AddressRanges; faults: string[] } {
  const ranges: Range[] = []
  const faults: string[] = []
  for (const entry of cidrs.split(',')) {
    const text = entry.trim()
    if (text === '') continue
    const range = parseRange(text)
    if (range === undefined)
      faults.push(`Expected an IP address or a CIDR range, got ${JSON.stringify(text)}`)
    else ranges.push(range)
  }
  return { ranges, faults }
}

function parseRange(text: string): Range | undefined {
  const cidr = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`
  // Only the four-part form: ipaddr.js would also accept `10.1` and octal numbers as addresses.
  if (!ipaddr.IPv4.isValidCIDRFourPartDecimal(cidr) && !ipaddr.IPv6.isValidCIDR(cidr)) return undefined
  const [address, bits] = ipaddr.parseCIDR(cidr)
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= MAPPED_PREFIX_BITS) {
    const bytes = Uint8Array.from(address.toIPv4Address().toByteArray())
    return { bytes, bits: bits - MAPPED_PREFIX_BITS }
  }
  return { bytes: Uint8Array.from(address.toByteArray()), bits }
}

/** Whether an address, 4 or 16 bytes as returned by `clientAddress`, is in one of the ranges. */
export function isWithinAny(ip: Uint8Array, ranges: AddressRanges): boolean {
  return ranges.some((range) => isWithin(ip, range))
}

function isWithin(ip: Uint8Array, { bytes, bits }: Range): boolean {
  if (ip.length !== bytes.length) return false
  for (let at = 0; at * 8 < bits; at++) {
    const prefixBits = Math.min(8, bits - at * 8)
    if (((ip[at] ?? 0) ^ (bytes[at] ?? 0)) >> (8 - prefixBits) !== 0) return false
  }
  return true
}

function fromBytes(ip: Uint8Array): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (ip.length !== IPV4_BYTES && ip.length !== IPV6_BYTES) return undefined
  return ipaddr.fromByteArray([...ip])
}

/** Parses an address, with the port and brackets that some proxies add; undefined if it is not an address. */
function parseHop(text: string): Uint8Array | undefined {
  if (text.length > HOP_CHARACTERS_MAX) return undefined
  const match = /^(?:([\d.]+)|\[([\da-f:.]+)\])(?::\d{1,5})?$|^([\da-f:.]+)$/i.exec(text)
  const address = match?.[1] ?? match?.[2] ?? match?.[3]
  if (address === undefined) return undefined
  if (isIPv4(address)) return Uint8Array.from(address.split('.'), Number)
  return isIPv6(address)
    ? withoutMapping(Uint8Array.from(ipaddr.IPv6.parse(address).toByteArray()))
    : undefined
}

function withoutMapping(ip: Uint8Array): Uint8Array {
  return ip.slice(isMapped(ip) ? IPV6_BYTES - IPV4_BYTES : 0)
}

/** ::ffff:0:0/96 (RFC 4291, 2.5.5.2). */
function isMapped(ip: Uint8Array): boolean {
  if (ip.length !== IPV6_BYTES || ip[10] !== 0xff || ip[11] !== 0xff) return false
  for (let at = 0; at < 10; at += 1) if (ip[at] !== 0) return false
  return true
}

function ipv4Text(ip: Uint8Array, at: number): string {
  return `${ip[at]}.${ip[at + 1]}.${ip[at + 2]}.${ip[at + 3]}`
}

function ipv6Group(ip: Uint8Array, at: number): string {
  const high = ip[at]
  const low = ip[at + 1]
  assert(high !== undefined && low !== undefined, 'a group is within the address')
  return `${hexPairs[high]}${hexPairs[low]}`
}
