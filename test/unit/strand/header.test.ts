// @run on the built program
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { headerJson, headerText, parseHeader, zeroHash } from '../../../src/strand/header.js'
import {
  isRecordType,
  isReservedType,
  isSystemType,
  matchesTypes,
  queriedTypePattern,
} from '../../../src/strand/record-type.js'

const hex64 = fc.stringMatching(/^[0-9a-f]{64}$/)
const headers = fc.record(
  {
    strand: hex64,
    key: hex64,
    seq: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    prev: hex64,
    hlc: fc.stringMatching(/^[0-9a-f]{12}-[0-9a-f]{4}$/),
    type: fc.stringMatching(/^[a-z0-9_./-]{1,64}$/),
    body: hex64,
  },
  { noNullPrototype: true },
)
const header = {
  strand: zeroHash,
  key: zeroHash,
  seq: 0,
  prev: zeroHash,
  hlc: '0199c5b8f2a4-0003',
  type: 'record',
  body: zeroHash,
}

describe('a record header', () => {
  it('is parsed to the fields that it was rendered from', () => {
    fc.assert(
      fc.property(headers, (each) => {
        expect(parseHeader(headerText(each))).toStrictEqual(each)
      }),
    )
  })

  it('is rendered as a JSON string of the same text', () => {
    fc.assert(
      fc.property(headers, (each) => {
        expect(headerJson(each)).toBe(JSON.stringify(headerText(each)))
      }),
    )
  })

  it('is refused when a character outside of its type is changed', () => {
    const text = headerText(header)
    const typeStart = text.indexOf('record\n')
    for (let at = 0; at < text.length; at += 1) {
      for (const put of ['', 'X', '\n', ' ', '\0', 'a'.repeat(65)]) {
        const changed = text.slice(0, at) + put + text.slice(at + 1)
        const shorterType = put === '' && at >= typeStart && at < typeStart + 'record'.length
        if (!shorterType && changed !== text) expect(parseHeader(changed)).toBeUndefined()
      }
    }
  })

  it('is refused with anything before or after it', () => {
    expect(parseHeader(`${headerText(header)}\n`)).toBeUndefined()
    expect(parseHeader(`\ufeff${headerText(header)}`)).toBeUndefined()
    expect(parseHeader(headerText(header).replaceAll('\n', '\r\n'))).toBeUndefined()
    expect(parseHeader('')).toBeUndefined()
  })

  it('is refused when seq is not canonical', () => {
    for (const seq of ['00', '01', '-1', '1e3', '9007199254740992', '']) {
      expect(parseHeader(headerText(header).replace('seq 0', `seq ${seq}`))).toBeUndefined()
    }
  })
})

describe('a record type', () => {
  it('has 1 to 64 characters of a small alphabet', () => {
    for (const type of ['record', 'reading/outdoor', 'a', '0', '..', 'x'.repeat(64)])
      expect(isRecordType(type)).toBe(true)
    for (const type of ['', 'Record', 'a b', 'a\n', 'é', 'x'.repeat(65), 'a*'])
      expect(isRecordType(type)).toBe(false)
  })

  it('is reserved below sys/, auth/ and edge/, and excluded from queries below sys/ and edge/', () => {
    expect(
      ['sys/genesis', 'auth/login', 'edge/add', 'system', 'sys', 'a/sys/x'].map(isReservedType),
    ).toStrictEqual([true, true, true, false, false, false])
    expect(['sys/genesis', 'auth/login', 'edge/add', 'record'].map(isSystemType)).toStrictEqual([
      true,
      false,
      true,
      false,
    ])
  })

  it('matches itself or a prefix with a star', () => {
    expect(matchesTypes('reading', ['auth/*', 'reading'])).toBe(true)
    expect(matchesTypes('auth/login', ['auth/*'])).toBe(true)
    expect(matchesTypes('auth', ['auth/*'])).toBe(false)
    expect(matchesTypes('reading', ['read'])).toBe(false)
    expect(matchesTypes('reading', [])).toBe(false)
    expect(matchesTypes('anything', ['*'])).toBe(true)
  })

  it('has patterns with at most one star, at the end', () => {
    const whole = new RegExp(`^${queriedTypePattern}$`)
    for (const pattern of ['reading', 'auth/*', '*']) expect(whole.test(pattern)).toBe(true)
    for (const pattern of ['', '**', '*/x', 'a*b', 'A*', 'x'.repeat(65)])
      expect(whole.test(pattern)).toBe(false)
  })
})
