// @run on the built program
import { fc } from '../../../support/fast-check.js'
import ipaddr from 'ipaddr.js'
import { describe, expect, it } from 'vitest'
import {
  addressText,
  clientAddress,
  limiterKey,
  parseAddressRanges,
} from '../../../../src/front/limits/client-address.js'

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(ipaddr.parse(text).toByteArray())
}

const proxies = '10.0.0.0/8, 192.0.2.7, fd00::/8, ::ffff:172.16.0.0/108'

/** The client's address as text, behind the proxies above. */
function clientOf(peer: string, forwardedFor: string): string {
  const { ranges: trusted, faults } = parseAddressRanges(proxies)
  expect(faults).toEqual([])
  return addressText(clientAddress({ peer: bytesOf(peer), forwardedFor, trusted }))
}

describe('the key of a limiter', () => {
  it('is the full IPv4 address, also if it is mapped into IPv6', () => {
    expect(limiterKey(bytesOf('203.0.113.9'))).toBe('203.0.113.9')
    expect(limiterKey(bytesOf('::ffff:203.0.113.9'))).toBe('203.0.113.9')
  })

  it('is the /64 of an IPv6 address', () => {
    expect(limiterKey(bytesOf('2001:db8:0:1:2:3:4:5'))).toBe('2001:0db8:0000:0001::/64')
    expect(limiterKey(bytesOf('2001:db8:0:1::'))).toBe('2001:0db8:0000:0001::/64')
    expect(limiterKey(bytesOf('2001:db8:0:2::'))).not.toBe('2001:0db8:0000:0001::/64')
    expect(limiterKey(bytesOf('::fffe:203.0.113.9'))).toBe('0000:0000:0000:0000::/64')
  })

  it('is equal for two addresses exactly if their first 64 bits are equal', () => {
    const half = fc.uint8Array({ minLength: 8, maxLength: 8 })
    fc.assert(
      fc.property(half, half, half, (network, host, other) => {
        fc.pre(network.some((byte) => byte !== 0))
        const key = limiterKey(Uint8Array.from([...network, ...host]))
        expect(limiterKey(Uint8Array.from([...network, ...other]))).toBe(key)
        const differs = network.some((byte, at) => byte !== other[at])
        expect(limiterKey(Uint8Array.from([...other, ...host])) !== key).toBe(differs)
      }),
    )
  })

  it('is shared by closed connections, which have no address', () => {
    expect(limiterKey(new Uint8Array(0))).toBe('unknown')
  })
})

describe('the client address', () => {
  it('is the peer if no proxy is trusted, even with the header', () => {
    const peer = bytesOf('10.0.0.1')
    const address = clientAddress({ peer, forwardedFor: '198.51.100.1', trusted: [] })
    expect(addressText(address)).toBe('10.0.0.1')
  })

  it('is the peer if the peer is not trusted', () => {
    expect(clientOf('203.0.113.9', '198.51.100.1')).toBe('203.0.113.9')
    expect(clientOf('2001:db8::1', '198.51.100.1')).toBe('2001:db8::1')
  })

  it('is the peer without a header', () => {
    expect(clientOf('10.0.0.1', '')).toBe('10.0.0.1')
  })

  it('is the first untrusted hop from the right', () => {
    expect(clientOf('10.0.0.1', '198.51.100.1')).toBe('198.51.100.1')
    expect(clientOf('10.0.0.1', '1.1.1.1, 198.51.100.1,10.2.3.4 , 192.0.2.7')).toBe('198.51.100.1')
    expect(clientOf('fd00::1', '1.1.1.1, 2001:db8::5')).toBe('2001:db8::5')
    expect(clientOf('192.0.2.8', '198.51.100.1')).toBe('192.0.2.8')
  })

  it('is the leftmost hop if all hops are trusted', () => {
    expect(clientOf('10.0.0.1', '10.0.0.9, 10.0.0.2')).toBe('10.0.0.9')
  })

  it('recognizes a trusted IPv4 proxy in its mapped form, and a mapped range', () => {
    expect(clientOf('::ffff:10.0.0.1', '198.51.100.1')).toBe('198.51.100.1')
    expect(clientOf('172.16.5.5', '198.51.100.1')).toBe('198.51.100.1')
    expect(clientOf('10.0.0.1', '198.51.100.1, ::ffff:10.9.9.9')).toBe('198.51.100.1')
  })

  it('ignores everything left of a hop that is not an address', () => {
    for (const bad of ['unknown', '10.1', '010.0.0.1', '1.2.3.4.5', '::g', '[10.0.0.1', 'fe80::1%eth0', '']) {
      expect(clientOf('10.0.0.1', `198.51.100.1, ${bad}`)).toBe('10.0.0.1')
      expect(clientOf('10.0.0.1', `198.51.100.1, ${bad}, 10.0.0.2`)).toBe('10.0.0.2')
    }
  })

  it('accepts hops with ports and brackets', () => {
    expect(clientOf('10.0.0.1', '198.51.100.1:4711')).toBe('198.51.100.1')
    expect(clientOf('10.0.0.1', '[2001:db8::5]:4711')).toBe('2001:db8::5')
    expect(clientOf('10.0.0.1', '[2001:db8::5]')).toBe('2001:db8::5')
  })

  it('is the 32nd hop from the right if more hops are trusted', () => {
    const hops = Array.from({ length: 400 }, (_, n) => `10.0.${n >> 8}.${n & 0xff}`)
    expect(clientOf('10.0.0.1', ['198.51.100.1', ...hops].join(','))).toBe('10.0.1.112')
    expect(clientOf('10.0.0.1', ['198.51.100.1', ...hops.slice(0, 31)].join(','))).toBe('198.51.100.1')
  })

  it('parses addresses like ipaddr.js', () => {
    const group = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16))
    const gapped = fc
      .tuple(fc.array(group, { maxLength: 7 }), fc.array(group, { maxLength: 7 }))
      .map(([before, after]) => `${before.join(':')}::${after.join(':')}`)
    const whole = fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.join(':'))
    const text = fc.oneof(fc.ipV4(), fc.ipV6(), gapped, whole)
    const trusted = parseAddressRanges('0.0.0.0/0').ranges
    fc.assert(
      fc.property(text, (hop) => {
        // ipaddr.js reads ::1.2.3.4 as ::ffff:1.2.3.4, against RFC 4291, 2.5.5.
        fc.pre(!/^::\d+\./.test(hop))
        const peer = bytesOf('10.0.0.1')
        const expected = ipaddr.isValid(hop) ? addressText(bytesOf(hop)) : '10.0.0.1'
        expect(addressText(clientAddress({ peer, forwardedFor: hop, trusted }))).toBe(expected)
      }),
      { numRuns: 2_000 },
    )
  })

  it('compares exactly the prefix bits of a trusted range', () => {
    const range = fc.tuple(fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.integer({ min: 0, max: 128 }))
    const flipped = fc.integer({ min: 0, max: 127 })
    fc.assert(
      fc.property(range, flipped, ([bytes, bits], at) => {
        fc.pre(bytes[0] !== 0)
        const { ranges: trusted } = parseAddressRanges(
          `${ipaddr.fromByteArray([...bytes]).toString()}/${bits}`,
        )
        const peer = Uint8Array.from(bytes)
        peer[at >> 3] = (peer[at >> 3] ?? 0) ^ (0x80 >> (at & 7))
        const client = addressText(clientAddress({ peer, forwardedFor: '198.51.100.1', trusted }))
        expect(client === '198.51.100.1').toBe(at >= bits)
      }),
    )
  })

  it('copies the bytes of the peer', () => {
    const peer = bytesOf('203.0.113.9')
    const address = clientAddress({ peer, forwardedFor: '', trusted: [] })
    peer.fill(0)
    expect(addressText(address)).toBe('203.0.113.9')
  })

  it('is an empty text for a closed connection', () => {
    const { ranges: trusted } = parseAddressRanges(proxies)
    const closed = clientAddress({ peer: new Uint8Array(0), forwardedFor: '198.51.100.1', trusted })
    expect(addressText(closed)).toBe('')
  })
})

describe('the trusted proxies', () => {
  it('are none if the setting is empty', () => {
    expect(parseAddressRanges('')).toEqual({ ranges: [], faults: [] })
    expect(parseAddressRanges(' , ')).toEqual({ ranges: [], faults: [] })
  })

  it('report each invalid entry', () => {
    const wrong = ['10.0.0.0/33', '10/8', 'localhost', '::/129', '1.2.3.4/', '0x7f.0.0.1', '10.0.0.0/-1']
    const { ranges: trusted, faults } = parseAddressRanges(['10.0.0.0/8', ...wrong].join(','))
    expect(trusted).toHaveLength(1)
    expect(faults).toEqual(
      wrong.map((text) => `Expected an IP address or a CIDR range, got ${JSON.stringify(text)}`),
    )
  })

  it('include a whole address family with a range of 0 bits', () => {
    const { ranges: trusted } = parseAddressRanges('0.0.0.0/0')
    const forwardedFor = '2001:db8::1'
    const address = clientAddress({ peer: bytesOf('203.0.113.9'), forwardedFor, trusted })
    expect(addressText(address)).toBe('2001:db8::1')
    const other = clientAddress({ peer: bytesOf('2001:db8::9'), forwardedFor, trusted })
    expect(addressText(other)).toBe('2001:db8::9')
  })
})
