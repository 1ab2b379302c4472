// @run on the built program
import { describe, expect, it } from 'vitest'
import {
  decideRefresh,
  decodeRefreshToken,
  encodeRefreshToken,
  refreshKey,
} from '../../../src/auth/refresh-token.js'
import { openSession, rotateSession } from '../../../src/auth/session.js'

const key = refreshKey(Buffer.alloc(32, 1))
const sid = '00112233445566778899aabbccddeeff'
const start = 1_700_000_000_000
const expirySecs = 2_592_000

describe('a refresh token', () => {
  const token = encodeRefreshToken(key, 'acme', { sid, generation: 7 })

  it.each([0, 1, 7, 0xffff_ffff])('gives back session and generation %i', (generation) => {
    const token = encodeRefreshToken(key, '', { sid, generation })
    expect(token).toMatch(/^[A-Za-z0-9_-]{70}$/)
    expect(decodeRefreshToken(key, '', token)).toStrictEqual({ sid, generation })
  })

  it('is none in another namespace, the root included', () => {
    expect(decodeRefreshToken(key, 'acme', token)).toStrictEqual({ sid, generation: 7 })
    for (const other of ['', 'acm', 'acme2', 'Acme']) {
      expect(decodeRefreshToken(key, other, token)).toBeUndefined()
    }
  })

  it('is none under a key of another master seed', () => {
    expect(decodeRefreshToken(refreshKey(Buffer.alloc(32, 2)), 'acme', token)).toBeUndefined()
  })

  it('is none when any character of it is changed, or when it is cut or longer', () => {
    for (let at = 0; at < token.length; at += 1) {
      const other = token[at] === 'A' ? 'B' : 'A'
      const changed = `${token.slice(0, at)}${other}${token.slice(at + 1)}`
      expect(decodeRefreshToken(key, 'acme', changed)).toBeUndefined()
    }
    for (const wrong of [token.slice(1), token.slice(0, -1), `${token}A`, `${token}==`, ` ${token}`, '']) {
      expect(decodeRefreshToken(key, 'acme', wrong)).toBeUndefined()
    }
  })

  it('is not made of a session id or a generation that does not fit', () => {
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
    ['the token in force, at once', 5, start, { kind: 'rotate', generation: 6 }],
    ['the token in force, late', 5, late, { kind: 'rotate', generation: 6 }],
    ['the one before, at once', 4, start, { kind: 'repeat', generation: 5 }],
    ['the one before, 10 s after its exchange', 4, start + 10_000, { kind: 'repeat', generation: 5 }],
    ['the one before, 10 s and 1 ms after its exchange', 4, start + 10_001, { kind: 'reused' }],
    ['the one before that, at once', 3, start, { kind: 'reused' }],
    ['the first one', 0, start, { kind: 'reused' }],
    ['one that is yet to be made', 6, start, { kind: 'reused' }],
    ['the token in force, when the session has ended by time', 5, start + 60_000, { kind: 'expired' }],
    ['the one before, when the session has ended by time', 4, start + 60_000, { kind: 'expired' }],
    ['an old one, when the session has ended by time', 0, start + 60_000, { kind: 'expired' }],
  ])('follows from its generation and the time: %s', (_, ...[generation, nowMs, decision]) => {
    expect(decideRefresh(session, generation, nowMs)).toStrictEqual(decision)
  })

  it('is decided for each distance and time as the rule says', () => {
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
  const login = { userId: 'usr_1', amr: ['pwd'], refreshExpirySecs: expirySecs }
  const opened = openSession(login, start, (count) => Buffer.alloc(count, 0xab))

  it('starts with generation 0 and a whole lifetime', () => {
    expect(opened).toStrictEqual({
      sid: 'ab'.repeat(16),
      userId: 'usr_1',
      amr: ['pwd'],
      createdAtMs: start,
      lastUsedAtMs: start,
      expiresAtMs: start + expirySecs * 1_000,
      generation: 0,
      rotatedAtMs: start,
    })
  })

  it('serves two tabs that send the same token within 10 s, and ends with the second one later', () => {
    const once = rotateSession(opened, start + 1_000, expirySecs)
    expect(decideRefresh(once, 0, start + 11_000)).toStrictEqual({ kind: 'repeat', generation: 1 })
    expect(decideRefresh(once, 0, start + 11_001)).toStrictEqual({ kind: 'reused' })
    const twice = rotateSession(once, start + 3_000, expirySecs)
    expect(twice).toMatchObject({
      generation: 2,
      rotatedAtMs: start + 3_000,
      expiresAtMs: start + 3_000 + expirySecs * 1_000,
      createdAtMs: start,
    })
    expect(decideRefresh(twice, 0, start + 3_000)).toStrictEqual({ kind: 'reused' })
  })

  it('is decided as any other when the version before stored it', () => {
    const kept = { ...opened, generation: 3, rotatedAtMs: start, previousRotatedAtMs: start }
    expect(decideRefresh(kept, 2, start + 10_001)).toStrictEqual({ kind: 'reused' })
    expect(decideRefresh(kept, 1, start)).toStrictEqual({ kind: 'reused' })
  })
})
