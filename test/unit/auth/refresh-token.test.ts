// @run on the built program
import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import {
  decideRefresh,
  decodeRefreshToken,
  encodeRefreshToken,
  refreshKey,
} from '../../../src/auth/refresh-token.js'
import { openSession, rotateSession, sessionEndsAtMs } from '../../../src/auth/session.js'

const key = refreshKey(Buffer.alloc(32, 1))
const sid = '00112233445566778899aabbccddeeff'
const start = 1_700_000_000_000
const expirySecs = 2_592_000

describe('a refresh token', () => {
  const token = encodeRefreshToken(key, 'acme', { sid, generation: 7 })

  it.each([0, 1, 7, 0xffff_ffff])('contains session and generation %i', (generation) => {
    const token = encodeRefreshToken(key, '', { sid, generation })
    expect(token).toMatch(/^[A-Za-z0-9_-]{70}$/)
    expect(decodeRefreshToken(key, '', token)).toStrictEqual({ sid, generation })
  })

  it('is invalid in any other namespace', () => {
    expect(decodeRefreshToken(key, 'acme', token)).toStrictEqual({ sid, generation: 7 })
    for (const other of ['', 'acm', 'acme2', 'Acme']) {
      expect(decodeRefreshToken(key, other, token)).toBeUndefined()
    }
  })

  it('is invalid with a key of another master seed', () => {
    expect(decodeRefreshToken(refreshKey(Buffer.alloc(32, 2)), 'acme', token)).toBeUndefined()
  })

  it('is invalid when a character is changed, added or removed', () => {
    for (let at = 0; at < token.length; at += 1) {
      const other = token[at] === 'A' ? 'B' : 'A'
      const changed = `${token.slice(0, at)}${other}${token.slice(at + 1)}`
      expect(decodeRefreshToken(key, 'acme', changed)).toBeUndefined()
    }
    for (const wrong of [token.slice(1), token.slice(0, -1), `${token}A`, `${token}==`, ` ${token}`, '']) {
      expect(decodeRefreshToken(key, 'acme', wrong)).toBeUndefined()
    }
  })

  it('cannot be created from an invalid session id or generation', () => {
    expect(() => encodeRefreshToken(key, '', { sid: 'abc', generation: 0 })).toThrow('32 hex digits')
    expect(() => encodeRefreshToken(key, '', { sid, generation: 2 ** 32 })).toThrow('32 bits')
    expect(() => encodeRefreshToken(key, '', { sid, generation: -1 })).toThrow('32 bits')
  })
})

describe('the answer to a presented token', () => {
  const session = {
    sid,
    userId: 'usr_1',
    amr: ['pwd'],
    createdAtMs: start - 100_000,
    lastUsedAtMs: start,
    expiresAtMs: start + 60_000,
    generation: 5,
    rotatedAtMs: start,
  }
  const late = start + 59_999

  it.each<[name: string, generation: number, nowMs: number, decision: object]>([
    ['the current token, immediately', 5, start, { kind: 'rotate', generation: 6 }],
    ['the current token, late', 5, late, { kind: 'rotate', generation: 6 }],
    ['the previous token, immediately', 4, start, { kind: 'repeat', generation: 5 }],
    ['the previous token, 10 s after its exchange', 4, start + 10_000, { kind: 'repeat', generation: 5 }],
    ['the previous token, 10 s and 1 ms after its exchange', 4, start + 10_001, { kind: 'reused' }],
    ['the token before that, immediately', 3, start, { kind: 'reused' }],
    ['the first token', 0, start, { kind: 'reused' }],
    ['a future token', 6, start, { kind: 'reused' }],
    ['the current token of an expired session', 5, start + 60_000, { kind: 'expired' }],
    ['the previous token of an expired session', 4, start + 60_000, { kind: 'expired' }],
    ['an old token of an expired session', 0, start + 60_000, { kind: 'expired' }],
  ])('depends on its generation and the time: %s', (_, ...[generation, nowMs, decision]) => {
    expect(decideRefresh(session, generation, nowMs)).toStrictEqual(decision)
  })

  it('follows the rule for each generation and time', () => {
    for (let generation = 0; generation <= 8; generation += 1) {
      for (let afterMs = -1_000; afterMs <= 61_000; afterMs += 500) {
        const nowMs = start + afterMs
        const { kind } = decideRefresh(session, generation, nowMs)
        if (afterMs >= 60_000) expect(kind).toBe('expired')
        else if (generation === 5) expect(kind).toBe('rotate')
        else expect(kind).toBe(generation === 4 && afterMs <= 10_000 ? 'repeat' : 'reused')
      }
    }
  })
})

describe('a session', () => {
  const lifetimes = { refreshExpirySecs: expirySecs, jwtExpirySecs: 3_600 }
  const login = { userId: 'usr_1', amr: ['pwd'], ...lifetimes }
  const opened = openSession(login, start, (count) => Buffer.alloc(count, 0xab))

  it('starts with generation 0 and a full lifetime', () => {
    expect(opened).toStrictEqual({
      sid: 'ab'.repeat(16),
      userId: 'usr_1',
      amr: ['pwd'],
      createdAtMs: start,
      lastUsedAtMs: start,
      expiresAtMs: start + expirySecs * 1_000,
      generation: 0,
      rotatedAtMs: start,
      // An hour, the time in which an exchange can be repeated, and the allowed difference of clocks.
      tokensEndAtMs: start + 3_600_000 + 10_000 + 60_000,
    })
  })

  it('serves two tabs that send the same token within 10 s, and ends if the second one is later', () => {
    const once = rotateSession(opened, start + 1_000, lifetimes)
    expect(decideRefresh(once, 0, start + 11_000)).toStrictEqual({ kind: 'repeat', generation: 1 })
    expect(decideRefresh(once, 0, start + 11_001)).toStrictEqual({ kind: 'reused' })
    const twice = rotateSession(once, start + 3_000, lifetimes)
    expect(twice).toMatchObject({
      generation: 2,
      rotatedAtMs: start + 3_000,
      expiresAtMs: start + 3_000 + expirySecs * 1_000,
      createdAtMs: start,
    })
    expect(decideRefresh(twice, 1, start + 13_000)).toStrictEqual({ kind: 'repeat', generation: 2 })
    expect(decideRefresh(twice, 1, start + 13_001)).toStrictEqual({ kind: 'reused' })
  })

  it('answers each earlier token with the current one for 10 s after its own exchange', () => {
    let session = opened
    const exchangedAtMs: number[] = []
    for (let generation = 0; generation < 20; generation++) {
      exchangedAtMs.push(start + generation * 700)
      session = rotateSession(session, start + generation * 700, lifetimes)
    }
    for (let nowMs = start + 13_300; nowMs < start + 25_000; nowMs += 50) {
      for (const [generation, atMs] of exchangedAtMs.entries()) {
        const decision = nowMs - atMs <= 10_000 ? { kind: 'repeat', generation: 20 } : { kind: 'reused' }
        expect(decideRefresh(session, generation, nowMs)).toStrictEqual(decision)
      }
    }
    expect(session.earlierExchangesMs).toHaveLength(14)
  })

  it('stores a bounded number of exchanges', () => {
    let session = opened
    for (let count = 0; count < 100; count++) session = rotateSession(session, start, lifetimes)
    const { refreshRepeatsMax: most } = limits
    expect(session.earlierExchangesMs).toHaveLength(most - 1)
    expect(decideRefresh(session, 100 - most, start)).toStrictEqual({ kind: 'repeat', generation: 100 })
    expect(decideRefresh(session, 99 - most, start)).toStrictEqual({ kind: 'reused' })
  })

  it('lasts until its access tokens have expired too, also those of a longer lifetime before', () => {
    const once = rotateSession(opened, start + 1_000, { refreshExpirySecs: 60, jwtExpirySecs: 60 })
    expect(once.expiresAtMs).toBe(start + 61_000)
    expect(sessionEndsAtMs(once)).toBe(start + 3_670_000)
    expect(decideRefresh(once, 1, start + 61_000)).toStrictEqual({ kind: 'expired' })
    expect(decideRefresh(once, 0, start + 61_000)).toStrictEqual({ kind: 'reused' })
    expect(decideRefresh(once, 0, start + 3_670_000)).toStrictEqual({ kind: 'expired' })
  })

  it('follows the same rule if an earlier version stored it', () => {
    const older = { ...opened, generation: 3, rotatedAtMs: start, previousRotatedAtMs: start }
    expect(decideRefresh(older, 2, start + 10_001)).toStrictEqual({ kind: 'reused' })
    expect(decideRefresh(older, 1, start)).toStrictEqual({ kind: 'reused' })
  })
})
