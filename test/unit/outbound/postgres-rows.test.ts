import { DatabaseError } from 'pg'
import { describe, expect, it } from 'vitest'
import {
  copyText,
  failureText,
  needsFewerRows,
  refusalCode,
  suspectCode,
  type SinkRow,
} from '../../../src/outbound/postgres-rows.js'

const row = (body: string | undefined): SinkRow => ({
  contentHash: 'ab'.repeat(32),
  agent: 'feed',
  seq: 3,
  timestampHlc: '0199c5b8f2a4-0003',
  type: 'record',
  body: body === undefined ? undefined : Buffer.from(body),
})

function failure(code: string): DatabaseError {
  const error = new DatabaseError('Failing row contains (a secret)', 0, 'error')
  error.code = code
  error.detail = 'a secret'
  return error
}

describe('rows in the text format of COPY', () => {
  it('escape the special characters of the format', () => {
    expect(copyText([row('{"a":"\\n","b":"\\\\"}')]).toString()).toBe(
      `${'ab'.repeat(32)}\tfeed\t3\t0199c5b8f2a4-0003\trecord\t{"a":"\\\\n","b":"\\\\\\\\"}\n`,
    )
    expect(
      copyText([row('\t\r\n')])
        .toString()
        .split('\t')
        .at(-1),
    ).toBe('\\t\\r\\n\n')
  })

  it('have NULL for an erased body, but not for a text that looks like NULL', () => {
    expect(copyText([row(undefined)]).toString()).toMatch(/\t\\N\n$/)
    expect(copyText([row('\\N')]).toString()).toMatch(/\t\\\\N\n$/)
  })

  it('encode text as UTF-8', () => {
    expect(copyText([row('{"a":"é😀"}')]).includes(Buffer.from('é😀'))).toBe(true)
  })
})

/** Faults of the connection, the server, its load or its disk. */
const passing = (
  '08006 08P01 2200H 25006 25P03 25P04 26000 28P01 2D000 3B001 3D000 40001 40P01 53000 53100 53200 53300 53400 ' +
  '55000 55006 55P03 57000 57014 57P01 57P02 57P03 57P05 58000 58030 58P01 72000 F0000 HV000 HV00N XX001 XX002'
).split(' ')

describe('the cause of a failed batch', () => {
  it.each(['22P05', '22003', '23514', '23505', '54000', '44000', 'P0001'])('is a row with %s', (code) => {
    expect(refusalCode(failure(code))).toBe(code)
  })

  it.each([...passing, '42501', '42P01', 'XX000'])(
    'is not certainly a row with %s: the same rows may be accepted later',
    (code) => expect(refusalCode(failure(code))).toBeUndefined(),
  )

  it.each(['XX000', '42601', '42P01', 'P0002', '0A000', '21000', '38000'])('may be a row with %s', (code) => {
    expect(suspectCode(failure(code))).toBe(code)
    expect(needsFewerRows(failure(code))).toBe(true)
  })

  it.each(passing)('is never a row with %s', (code) => {
    expect(suspectCode(failure(code))).toBeUndefined()
  })

  it.each(['57014', '53200'])('may be too many rows with %s', (code) => {
    expect(needsFewerRows(failure(code))).toBe(true)
  })

  it.each(['57P01', '40P01', '55P03', '08006'])('is not the number of rows with %s', (code) => {
    expect(needsFewerRows(failure(code))).toBe(false)
  })

  it('is not a row when the connection fails', () => {
    const broken = new Error('Connection terminated unexpectedly')
    expect([refusalCode(broken), suspectCode(broken)]).toEqual([undefined, undefined])
    expect(failureText(broken)).toContain('Connection terminated')
  })

  it('is described without the content of the row', () => {
    expect(failureText(failure('23514'))).toBe('SQLSTATE 23514')
    expect(failureText(failure('42501'))).toBe('the role lacks a privilege (SQLSTATE 42501)')
  })

  it.each([
    [failure('25006'), 'it is read-only (SQLSTATE 25006)'],
    [failure('28P01'), 'it refuses the login of the role (SQLSTATE 28P01)'],
    [
      new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      'it requires a password, and the URL has none',
    ],
    [
      new Error('The server does not support SSL connections'),
      'it does not support TLS, which the URL requires',
    ],
    [
      Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
      'its TLS certificate is not accepted: self-signed certificate',
    ],
    [new AggregateError([new Error('one'), new Error('two')], ''), 'one, two'],
  ])('is described in words: %#', (error, text) => expect(failureText(error)).toBe(text))
})
