import { describe, expect, it } from 'vitest'
import { register, usualPassword } from '../auth/accounts.js'
import { isCaughtUp, numbersOf, openStream } from '../http/events.js'
import { FrontConnection } from './fronts.js'
import type { TestServer } from './server.js'

/** Two fronts of the same shards: in one process, or in two nodes. */
export interface TwoFronts {
  /** A connection to each. */
  fronts: [FrontConnection, FrontConnection]
  /** Where each is reached; the same where one process has both. */
  servers: [TestServer, TestServer]
}

/** Attempts to log in that the server of both has to allow before it locks an account. */
export const attemptsMax = 3

/** What fronts share, whoever made them: each test speaks to both. */
export function sharedByFronts(made: () => TwoFronts): void {
  const fronts = () => made().fronts
  const serverOf = (n: number): TestServer => made().servers[n % 2 === 0 ? 0 : 1]

  /** Both fronts, each with the other one. */
  const pairs = (): [FrontConnection, FrontConnection][] => {
    const [one, other] = fronts()
    return [
      [one, other],
      [other, one],
    ]
  }

  describe('an API key', () => {
    it('works at the other front from the answer on that has made it, and at neither from that which deletes it', async () => {
      for (let round = 0; round < 10; round++) {
        for (const [here, there] of pairs()) {
          const { id, key } = await newKey(here)
          expect((await there.call('GET /v1/agents', { key })).status).toBe(200)
          expect((await here.call(`DELETE /v1/admin/api-keys/${id}`)).status).toBe(200)
          expect((await there.call('GET /v1/agents', { key })).status).toBe(401)
          expect((await here.call('GET /v1/agents', { key })).status).toBe(401)
        }
      }
    })

    it('is admitted by nobody after its deletion was answered, while many ask at both fronts', async () => {
      const crowd = Array.from({ length: 8 }, (_none, n) => new FrontConnection(serverOf(n)))
      for (let round = 0; round < 4; round++) {
        const [here] = pairs()[round % 2] ?? fronts()
        const { id, key } = await newKey(here)
        let deleted = false
        const admittedLate: number[] = []
        const ask = async (connection: FrontConnection) => {
          for (let after = 0; after < 3;) {
            const wasDeleted = deleted
            const { status } = await connection.call('GET /v1/agents', { key })
            if (wasDeleted) after++
            if (wasDeleted && status !== 401) admittedLate.push(status)
          }
        }
        const asking = crowd.map(ask)
        expect((await here.call(`DELETE /v1/admin/api-keys/${id}`)).status).toBe(200)
        deleted = true
        await Promise.all(asking)
        expect(admittedLate).toEqual([])
      }
      for (const connection of crowd) connection.close()
    })

    it('shows its last use at either front', async () => {
      for (const [here, there] of pairs()) {
        const { id, key } = await newKey(here)
        await there.call('GET /v1/agents', { key })
        for (const asked of [here, there]) {
          const { body } = await asked.call('GET /v1/admin/api-keys')
          const shown = body.api_keys.find((one: { key_id: string }) => one.key_id === id)
          expect(shown.last_used_at_ms).toBeGreaterThan(0)
        }
      }
    })
  })

  describe("a user's token", () => {
    it('is refused at the other front from the answer on that signs its session out', async () => {
      for (const [round, [here, there]] of pairs().entries()) {
        const { token } = await register(serverOf(0), `out-${round}@example.org`)
        expect((await there.call('GET /v1/auth/me', { key: token })).status).toBe(200)
        const out = await here.call('POST /v1/auth/logout', { key: token })
        expect(out.status, out.text).toBeLessThan(300)
        for (const asked of [there, here]) {
          expect(await asked.call('GET /v1/auth/me', { key: token })).toMatchObject({
            status: 401,
            body: { code: 'token_revoked' },
          })
        }
      }
    })

    it('is signed by the new key at the other front from the answer on that rotates the keys', async () => {
      const kidOf = (token: string) =>
        JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid
      const email = 'kid@example.org'
      await register(serverOf(0), email)
      for (const [here, there] of pairs()) {
        const rotated = await here.call('POST /v1/auth/keys/rotate')
        const body = { email, password: usualPassword }
        const login = await there.call('POST /v1/auth/login', { key: null, body })
        expect(kidOf(login.body.token)).toBe(rotated.body.kid)
      }
    })
  })

  describe('a login by password', () => {
    it('is guessed no more often at two fronts than the lockout allows', async () => {
      const email = 'locked@example.org'
      await register(serverOf(0), email)
      const guesses = Array.from({ length: 12 }, (_none, n) =>
        fronts()[n % 2]?.call('POST /v1/auth/login', {
          key: null,
          body: { email, password: `wrong ${n} of many` },
        }),
      )
      const codes = (await Promise.all(guesses)).map((answer) => answer?.body.code)
      expect(codes.filter((code) => code === 'invalid_credentials')).toHaveLength(attemptsMax)
      expect(new Set(codes)).toEqual(new Set(['invalid_credentials', 'account_locked']))
    })
  })

  describe('a ticket', () => {
    it('opens one stream where two fronts are asked for different ones at once', async () => {
      for (let round = 0; round < 8; round++) {
        const [here] = pairs()[round % 2] ?? fronts()
        const { body } = await here.call('POST /v1/stream/tickets')
        const open = (agent: string, n: number) =>
          openStream(serverOf(n), `/v1/agents/${agent}/stream?ticket=${body.ticket}`, { key: null }).then(
            (stream) => stream,
            (error: Error) => error.message,
          )
        const opened = await Promise.all(['default', 'default2'].map(open))
        const streams = opened.filter((one) => typeof one !== 'string')
        expect(streams.length).toBeLessThanOrEqual(1)
        for (const stream of streams) stream.close()
      }
    })

    it('opens its stream again at the other front, and none once its key is deleted', async () => {
      for (const [here, there] of pairs()) {
        const { id, key } = await newKey(here)
        const { body } = await here.call('POST /v1/stream/tickets', { key })
        const path = `/v1/agents/default/stream?ticket=${body.ticket}`
        for (let n = 0; n < 4; n++) (await openStream(serverOf(n), path, { key: null })).close()
        await there.call(`DELETE /v1/admin/api-keys/${id}`)
        for (let n = 0; n < 4; n++)
          await expect(openStream(serverOf(n), path, { key: null })).rejects.toThrow('401')
      }
    })
  })

  describe('streams', () => {
    it('show every record once and in order, whichever front they are at and whichever took the record', async () => {
      const [one, other] = fronts()
      await append(one, 'shown', 0)
      const paths = [
        '/v1/agents/shown/stream?since=0',
        '/v1/stream?since=0',
        '/v1/stream?agents=shown,x&since=0',
      ]
      const streams = await Promise.all(
        [...paths, ...paths.toReversed()].map((path, n) => openStream(serverOf(n), path)),
      )
      for (const stream of streams) await stream.until(isCaughtUp)
      const total = 120
      for (let n = 1; n < total; n++) await append(n % 2 === 0 ? one : other, 'shown', n)
      const expected = Array.from({ length: total }, (_none, n) => n)
      for (const stream of streams) {
        const ofShown = () =>
          stream.events.filter(
            ({ data }) =>
              data.agent === 'shown' || data.agent_id === 'shown' || data.payload?.n !== undefined,
          )
        await stream.until(() => numbersOf(ofShown()).length >= total)
        expect(numbersOf(ofShown())).toEqual(expected)
        stream.close()
      }
    })

    it('end at either front with the key that opened them', async () => {
      const { id, key } = await newKey(fronts()[0])
      const streams = await Promise.all(
        Array.from({ length: 4 }, (_none, n) =>
          openStream(serverOf(n), '/v1/agents/default/stream', { key }),
        ),
      )
      expect((await fronts()[1].call(`DELETE /v1/admin/api-keys/${id}`)).status).toBe(200)
      for (const stream of streams) await stream.ended
    })
  })

  describe('a record that was read by its hash', () => {
    it('is shown by neither front as it was once its deletion is answered', async () => {
      const [maker] = fronts()
      await maker.call('POST /v1/agents', { body: { agent_id: 'dropped', zone: 'standard' } })
      for (let round = 0; round < 6; round++) {
        for (const [here, there] of pairs()) {
          const hash = await append(here, 'dropped', round)
          const read = (at: FrontConnection) => at.call(`GET /v1/agents/dropped/records/${hash}`)
          for (const at of [here, there, there]) expect((await read(at)).body.deleted ?? false).toBe(false)
          const deleted = await here.call(`DELETE /v1/agents/dropped/records/${hash}`)
          expect(deleted.status, deleted.text).toBeLessThan(300)
          const [shownThere, shownHere] = [await read(there), await read(here)]
          expect(shownThere.text).toBe(shownHere.text)
        }
      }
    })
  })
}

async function newKey(at: FrontConnection, scopes = ['records:read']): Promise<{ id: string; key: string }> {
  const { status, text, body } = await at.call('POST /v1/admin/api-keys', { body: { name: 'one', scopes } })
  expect(status, text).toBe(201)
  return { id: body.key_id, key: body.key }
}

async function append(at: FrontConnection, agent: string, n: number): Promise<string> {
  const { status, text, body } = await at.call(`POST /v1/collections/${agent}/records`, {
    body: { data: { n } },
  })
  expect(status, text).toBe(201)
  return body.hash
}
