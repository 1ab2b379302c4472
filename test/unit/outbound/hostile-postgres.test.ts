import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { Session } from '../../../src/cluster/database/session.js'
import { connectPostgres } from '../../../src/outbound/postgres.js'
import { fc } from '../../support/fast-check.js'
import { message, ready, rowsOf, startFakePostgres } from '../../support/postgres/fake-postgres.js'

const QUERY = 'SELECT value FROM something'

/** The result of a statement that the server answers with `bytes`, before it closes the connection. */
async function queried(bytes: Buffer): Promise<unknown> {
  const server = await startFakePostgres((statement, socket) => {
    if (statement !== QUERY) return undefined
    socket.end(bytes)
    return Buffer.alloc(0)
  })
  try {
    const session = await Session.open([server.url])
    const found = await session.rows(QUERY).catch((error: unknown) => error)
    session.drop()
    return found
  } finally {
    await server.stop()
  }
}

const valid = Buffer.concat([rowsOf('value', 'one', 'two'), ready])

// An uncaught error, which would end the process, fails the test run.
describe('an answer of a hostile database', () => {
  it('is returned if it is valid', async () => {
    expect(await queried(valid)).toEqual([{ value: 'one' }, { value: 'two' }])
  })

  it.each([
    ['a row without a count of fields', message('D', '')],
    ['a row of length 0', message('D', '', 0)],
    ['a row of more fields than it has', message('D', Buffer.of(255, 255))],
    ['a field that is longer than its row', message('D', Buffer.of(0, 1, 0, 0, 255, 255))],
    ['a row before its description', message('D', Buffer.of(0, 1, 0, 0, 0, 1, 65))],
    ['a description without fields', message('T', '')],
    ['a description of missing fields', message('T', Buffer.of(255, 255))],
    ['an error without an end', message('E', 'SERROR')],
    ['an error without fields', message('E', '')],
    ['an unknown authentication', message('R', Buffer.of(0, 0, 0, 99))],
    ['an authentication without a kind', message('R', '')],
    ['an unexpected copy', message('G', Buffer.of(0, 0, 1))],
    ['data of an unexpected copy', message('d', 'x')],
    ['a parameter without a value', message('S', 'x')],
    ['the end of a command without a text', message('C', '')],
    ['an idle server without a state', message('Z', '')],
    ['an unknown letter', message('!', 'x')],
    ['the end of a portal', message('s')],
    ['two answers', Buffer.concat([valid, valid])],
    [
      'more rows than any statement selects',
      rowsOf('value', ...Array.from({ length: limits.postgresAnswerRowsMax + 1 }, () => 'x')),
    ],
    [
      'a message of more bytes than any answer',
      message('D', Buffer.alloc(limits.postgresAnswerBytesMax), 2 ** 32 - 1),
    ],
  ])('fails at most the statement: %s', async (_name, bytes) => {
    const found = await queried(Buffer.concat([bytes, ready]))
    if (!Array.isArray(found)) expect(found).toBeInstanceOf(Error)
  })

  it('fails at most the statement with any bytes changed, removed or added', async () => {
    const change = fc.record({
      at: fc.nat(valid.length - 1),
      cut: fc.nat(6),
      put: fc.uint8Array({ maxLength: 6 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        let bytes = valid
        for (const { at, cut, put } of changes)
          bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)])
        const found = await queried(bytes)
        if (!Array.isArray(found)) expect(found).toBeInstanceOf(Error)
      }),
      { numRuns: 200 },
    )
  })

  it('fails only the connection of the sink', async () => {
    const server = await startFakePostgres(() => Buffer.concat([message('D', ''), ready]))
    await expect(
      connectPostgres({ url: server.url, store: '' }, new AbortController().signal),
    ).rejects.toThrow()
    await server.stop()
  })
})

describe('the sink', () => {
  it('connects to the first host that accepts writes, or fails with the reason of each host', async () => {
    const statements: string[] = []
    const reader = await startFakePostgres((statement) =>
      statement === 'SHOW transaction_read_only'
        ? Buffer.concat([rowsOf('transaction_read_only', 'on'), ready])
        : undefined,
    )
    const writer = await startFakePostgres((statement) => void statements.push(statement))
    const [one, two] = [reader, writer].map(({ url }) => new URL(url).host)
    const connect = (hosts: string) =>
      connectPostgres(
        { url: `postgres://strandfast@${hosts}/postgres`, store: '' },
        new AbortController().signal,
      )
    const connection = await connect(`127.0.0.1:1,${one},${two}`)
    connection.close()
    expect(statements).toContain('BEGIN')
    await writer.stop()
    const unreachable = 'connect ECONNREFUSED'
    const readOnly = 'The PostgreSQL server is read-only: it is a standby'
    await expect(connect(`${one},${two}`)).rejects.toThrow(`${one}: ${readOnly}; ${two}: ${unreachable}`)
    await expect(connect(`${one}`)).rejects.toThrow(readOnly)
    await reader.stop()
  })
})
