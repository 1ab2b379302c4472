import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { linkToken, outcomeOf, register, tryLogin } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * An account and its audit record are written in one transaction, and no answer is sent before it is on disk.
 */

const CLIENTS = 16
const ANSWERS = 60
const ROUNDS = 3
const password = 'thirteen wet plovers on a post'

let directory: string
let server: TestServer

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-auth-crash-'))
})
afterEach(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

async function start(): Promise<void> {
  server = await startAuthServer({ dataDir: join(directory, 'data'), env: { SERVICE_SHARDS: '2' } })
}

/** Calls `attempt` until the server is killed, and `answered` with each result. */
async function untilKilled<T>(
  attempt: (n: number) => Promise<T>,
  answered: (value: T) => void,
): Promise<void> {
  for (let n = 0; ; n++) {
    let value: T
    try {
      value = await attempt(n)
    } catch (error) {
      // A killed server breaks the connection; other errors are faults.
      if (error instanceof TypeError) return
      throw error
    }
    answered(value)
  }
}

/** The user ids of the audit records of a type, from a complete and verified export. */
async function audited(type: string): Promise<string[]> {
  const { text } = await call(server, 'GET /v1/strand/export')
  const lines = text.trimEnd().split('\n')
  expect(await verifyExport(lines)).toMatchObject({ ok: true })
  return lines
    .slice(1, -1)
    .map((line) => JSON.parse(line))
    .filter(({ h }) => new RegExp(`^type ${type}$`, 'm').test(h))
    .map(({ body }) => JSON.parse(body).user_id)
}

describe('a crash in the middle of', () => {
  it('registrations loses no acknowledged account, and each account has its record', async () => {
    const accounts: { email: string; userId: string }[] = []
    for (let round = 0; round < ROUNDS; round++) {
      await start()
      const goal = accounts.length + ANSWERS
      let enough = () => {}
      const reached = new Promise<void>((resolve) => (enough = resolve))
      const clients = Array.from({ length: CLIENTS }, (_none, client) =>
        untilKilled(
          (n) => register(server, `r${round}-c${client}-n${n}@example.org`, password),
          (account) => {
            accounts.push(account)
            if (accounts.length >= goal) enough()
          },
        ),
      )
      await Promise.race([reached, Promise.all(clients)])
      await server.halt('SIGKILL')
      await Promise.all(clients)
      expect(accounts.length).toBeGreaterThanOrEqual(goal)
    }
    await start()
    for (let from = 0; from < accounts.length; from += CLIENTS) {
      const some = accounts.slice(from, from + CLIENTS)
      const outcomes = await Promise.all(
        some.map(({ email }) => outcomeOf(tryLogin(server, email, password))),
      )
      expect(outcomes).toEqual(some.map(() => '200'))
    }
    const { body } = await checkedCall(server, 'GET /v1/auth/users?limit=1000')
    const users: string[] = body.users.map(({ user_id }: { user_id: string }) => user_id)
    // Accounts whose answer was lost may exist or not; if they do, they have their record.
    expect((await audited('auth/register')).toSorted()).toEqual(users.toSorted())
    expect(accounts.map(({ userId }) => userId).filter((userId) => !users.includes(userId))).toEqual([])
    expect(body.total).toBe(users.length)
  })

  it('sign-ins with one-time links makes no used link valid again', async () => {
    await start()
    const used: { token: string; userId: string }[] = []
    let enough = () => {}
    const reached = new Promise<void>((resolve) => (enough = resolve))
    const clients = Array.from({ length: CLIENTS }, (_none, client) =>
      untilKilled(
        async (n) => {
          const token = await linkToken(server, 'magic-link/send', `link-${client}-${n}@example.org`)
          const { status, body } = await checkedCall(server, 'POST /v1/auth/magic-link/verify', {
            key: null,
            body: { token },
          })
          expect(status).toBe(200)
          return { token, userId: String(body.user_id) }
        },
        (one) => {
          if (used.push(one) >= ANSWERS) enough()
        },
      ),
    )
    await Promise.race([reached, Promise.all(clients)])
    await server.halt('SIGKILL')
    await Promise.all(clients)
    expect(used.length).toBeGreaterThanOrEqual(ANSWERS)
    await start()
    const outcomes = await Promise.all(
      used.map(({ token }) =>
        outcomeOf(checkedCall(server, 'POST /v1/auth/magic-link/verify', { key: null, body: { token } })),
      ),
    )
    expect(new Set(outcomes)).toEqual(new Set(['401 invalid_token']))
    const signedIn = await audited('auth/magic_link_login')
    expect(used.filter(({ userId }) => !signedIn.includes(userId))).toEqual([])
  })
})
