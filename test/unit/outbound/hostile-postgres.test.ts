import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { Session } from '../../../src/cluster/database/session.js'
import { connectPostgres } from '../../../src/outbound/postgres.js'
import { fc } from '../../support/fast-check.js'
import { message, ready, rowsOf, startFakePostgres } from '../../support/postgres/fake-postgres.js'

const QUERY = 'SELECT value FROM something'

/** What becomes of a statement that is answered with these bytes, and then with the end of the connection. */
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

const sound = Buffer.concat([rowsOf('value', 'one', 'two'), ready])

// An error that nothing catches fails the run, as it would end the process.
describe('what a hostile database sends breaks its connection, and no more', () => {
  it('is read where it is sound', async () => {
    expect(await queried(sound)).toEqual([{ value: 'one' }, { value: 'two' }])
  })

  it.each([
    ['a row without a count of fields', message('D', '')],
    ['a row of length 0', message('D', '', 0)],
    ['a row of more fields than it has', message('D', Buffer.of(255, 255))],
    ['a field that is longer than its row', message('D', Buffer.of(0, 1, 0, 0, 255, 255))],
    ['a row before its description', message('D', Buffer.of(0, 1, 0, 0, 0, 1, 65))],
    ['a description without fields', message('T', '')],
    ['a description of fields that are not there', message('T', Buffer.of(255, 255))],
    ['an error without an end', message('E', 'SERROR')],
    ['an error without fields', message('E', '')],
    ['an authentication that is none', message('R', Buffer.of(0, 0, 0, 99))],
    ['an authentication without a kind', message('R', '')],
    ['a copy that was not asked for', message('G', Buffer.of(0, 0, 1))],
    ['data of a copy that was not asked for', message('d', 'x')],
    ['a parameter without a value', message('S', 'x')],
    ['the end of a command without a text', message('C', '')],
    ['an idle server without a state', message('Z', '')],
    ['an unknown letter', message('!', 'x')],
    ['the end of a portal', message('s')],
    ['two answers', Buffer.concat([sound, sound])],
    [
      'more rows than any statement asks for',
      rowsOf('value', ...Array.from({ length: limits.postgresAnswerRowsMax + 1 }, () => 'x')),
    ],
    [
      'a message of more bytes than any answer',
      message('D', Buffer.alloc(limits.postgresAnswerBytesMax), 2 ** 32 - 1),
    ],
  ])('has %s', async (_name, bytes) => {
    const found = await queried(Buffer.concat([bytes, ready]))
    if (!Array.isArray(found)) expect(found).toBeInstanceOf(Error)
  })

  it('has any byte changed, left out, or more', async () => {
    const change = fc.record({
      at: fc.nat(sound.length - 1),
      cut: fc.nat(6),
      put: fc.uint8Array({ maxLength: 6 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        let bytes = sound
        for (const { at, cut, put } of changes)
          bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)])
        const found = await queried(bytes)
        if (!Array.isArray(found)) expect(found).toBeInstanceOf(Error)
      }),
      { numRuns: 200 },
    )
  })

  it('is no more to the sink', async () => {
    const server = await startFakePostgres(() => Buffer.concat([message('D', ''), ready]))
    await expect(
      connectPostgres({ url: server.url, store: '' }, new AbortController().signal),
    ).rejects.toThrow()
    await server.stop()
  })
})

describe('the sink', () => {
  it('connects to the first of several hosts that takes writes, and else says for each why not', async () => {
    const asked: string[] = []
    const reader = await startFakePostgres((statement) =>
      statement === 'SHOW transaction_read_only'
        ? Buffer.concat([rowsOf('transaction_read_only', 'on'), ready])
        : undefined,
    )
    const writer = await startFakePostgres((statement) => void asked.push(statement))
    const [one, two] = [reader, writer].map(({ url }) => new URL(url).host)
    const connect = (hosts: string) =>
      connectPostgres(
        { url: `postgres://strandfast@${hosts}/postgres`, store: '' },
        new AbortController().signal,
      )
    const connection = await connect(`127.0.0.1:1,${one},${two}`)
    connection.close()
    expect(asked).toContain('BEGIN')
    await writer.stop()
    const away = 'connect ECONNREFUSED'
    const reads = 'The PostgreSQL server only reads: it is a standby'
    await expect(connect(`${one},${two}`)).rejects.toThrow(`${one}: ${reads}; ${two}: ${away}`)
    await expect(connect(`${one}`)).rejects.toThrow(reads)
    await reader.stop()
  })
})
