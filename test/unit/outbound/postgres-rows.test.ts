import { DatabaseError } from 'pg'
import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits.js'
import { copyText, refusalReason, type SinkRow } from '../../../src/outbound/postgres-rows.js'

const row = (body: string | undefined): SinkRow => ({
  contentHash: 'ab'.repeat(32),
  agent: 'feed',
  seq: 3,
  timestampHlc: '0199c5b8f2a4-0003',
  type: 'record',
  body: body === undefined ? undefined : Buffer.from(body),
})

function failure(code: string, detail?: string): DatabaseError {
  const error = new DatabaseError('not taken', 0, 'error')
  error.code = code
  if (detail !== undefined) error.detail = detail
  return error
}

describe('rows in the text format of COPY', () => {
  it('escape what the format uses itself', () => {
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

  it('say NULL for a body that was erased, and not for a text that looks like it', () => {
    expect(copyText([row(undefined)]).toString()).toMatch(/\t\\N\n$/)
    expect(copyText([row('\\N')]).toString()).toMatch(/\t\\\\N\n$/)
  })

  it('keep what is not ASCII as UTF-8', () => {
    expect(copyText([row('{"a":"é😀"}')]).includes(Buffer.from('é😀'))).toBe(true)
  })
})

describe('why PostgreSQL did not take a batch', () => {
  it.each(['22P05', '22003', '23514', '23505', '54000', '44000', 'P0001'])('is in a row by %s', (code) => {
    expect(refusalReason(failure(code))).toBe(`${code}: not taken`)
  })

  it.each(['57P01', '53100', '40P01', '55P03', '42501', '42P01', '25006', 'XX000', '08006'])(
    'is not in a row by %s: the same rows may be taken later',
    (code) => expect(refusalReason(failure(code))).toBeUndefined(),
  )

  it('is not in a row when the connection broke', () => {
    expect(refusalReason(new Error('Connection terminated unexpectedly'))).toBeUndefined()
  })

  it('is kept without what a text column cannot hold, and not at any length', () => {
    const reason = refusalReason(failure('22P05', `\0${'x'.repeat(5_000)}`))
    expect(reason).not.toContain('\0')
    expect(reason?.length).toBe(limits.sinkReasonCharsMax)
  })
})
