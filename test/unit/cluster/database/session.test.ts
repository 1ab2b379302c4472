import { Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Session } from '../../../../src/cluster/database/session.js'
import { message, ready, startFakePostgres } from '../../../support/postgres/fake-postgres.js'

describe('a session with the database of a cluster', () => {
  afterEach(() => vi.restoreAllMocks())

  /** The statements of a new session. */
  async function statementsOf(answer: Parameters<typeof startFakePostgres>[0]): Promise<string[]> {
    const statements: string[] = []
    const server = await startFakePostgres((statement, socket) => {
      statements.push(statement)
      return answer(statement, socket)
    })
    try {
      const session = await Session.open([server.url])
      session.drop()
      return statements
    } finally {
      await server.stop()
    }
  }

  it('takes one round trip after the login, because the database may be far away', async () => {
    expect(await statementsOf(() => undefined)).toHaveLength(1)
  })

  it('does without the check for its client if the server does not support that', async () => {
    const refused = Buffer.concat([message('E', 'SERROR\0C22023\0Mnot on this platform\0\0'), ready])
    const name = 'client_connection_check_interval'
    const statements = await statementsOf((text) => (text.includes(name) ? refused : undefined))
    expect(statements.map((text) => text.includes(name))).toEqual([true, false])
  })

  it('keeps its connection alive from ten seconds on', async () => {
    const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive')
    await statementsOf(() => undefined)
    expect(keepAlive).toHaveBeenCalledWith(true, 10_000)
  })
})
