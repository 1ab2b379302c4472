import { describe, expect, it } from 'vitest'
import {
  decodeDeviceToken,
  deviceKey,
  encodeDeviceToken,
  isDeviceOf,
} from '../../../src/auth/device-token.js'
import { encodeRefreshToken, refreshKey } from '../../../src/auth/refresh-token.js'
import { limits } from '../../../src/base/limits/limits.js'

const seed = Buffer.alloc(32, 1)
const key = deviceKey(seed)
const claim = {
  userId: 'usr_00112233445566778899aabbccddeeff',
  deviceId: 'ffeeddccbbaa99887766554433221100',
  issuedAtMs: 1_700_000_000_000,
}

describe('a device token', () => {
  const token = encodeDeviceToken(key, 'acme', claim)

  it('contains user, device and time', () => {
    expect(token).toMatch(/^[A-Za-z0-9_-]{94}$/)
    expect(decodeDeviceToken(key, 'acme', token)).toStrictEqual(claim)
  })

  it('is invalid in any other namespace, and with another master seed', () => {
    for (const other of ['', 'acm', 'acme2', 'Acme'])
      expect(decodeDeviceToken(key, other, token)).toBeUndefined()
    expect(decodeDeviceToken(deviceKey(Buffer.alloc(32, 2)), 'acme', token)).toBeUndefined()
  })

  it('is invalid when a character is changed, added or removed, and when it is a refresh token', () => {
    for (let at = 0; at < token.length; at += 1) {
      const other = token[at] === 'A' ? 'B' : 'A'
      const changed = `${token.slice(0, at)}${other}${token.slice(at + 1)}`
      expect(decodeDeviceToken(key, 'acme', changed)).toBeUndefined()
    }
    const refresh = encodeRefreshToken(refreshKey(seed), 'acme', { sid: claim.deviceId, generation: 0 })
    for (const wrong of [token.slice(1), token.slice(0, -1), `${token}A`, `${token}==`, '', refresh]) {
      expect(decodeDeviceToken(key, 'acme', wrong)).toBeUndefined()
    }
  })
})

describe('a device', () => {
  const user = { userId: claim.userId }
  const { issuedAtMs } = claim

  it('belongs only to the user that signed in on it', () => {
    expect(isDeviceOf(claim, user, issuedAtMs)).toBe(true)
    expect(isDeviceOf(claim, { userId: `usr_${'0'.repeat(32)}` }, issuedAtMs)).toBe(false)
  })

  it('is no longer known after the password was set or the mailbox was proven', () => {
    expect(isDeviceOf(claim, { ...user, devicesSinceMs: issuedAtMs }, issuedAtMs)).toBe(true)
    expect(isDeviceOf(claim, { ...user, devicesSinceMs: issuedAtMs + 1 }, issuedAtMs + 1)).toBe(false)
  })

  it('is no longer known after its token has expired', () => {
    const endsAtMs = issuedAtMs + limits.deviceTokenSecs * 1_000
    expect(isDeviceOf(claim, user, endsAtMs - 1)).toBe(true)
    expect(isDeviceOf(claim, user, endsAtMs)).toBe(false)
  })
})
