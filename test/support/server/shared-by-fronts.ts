import { describe, expect, it } from 'vitest'
import { register, usualPassword } from '../auth/accounts.js'
import { isCaughtUp, numbersOf, openStream } from '../http/events.js'
import { FrontConnection } from './fronts.js'
import type { TestServer } from './server.js'

/** Two fronts of the same shards: in one process, or in two nodes. */
export interface TwoFronts {
  /** A connection to each front. */
  fronts: [FrontConnection, FrontConnection]
  /** The server of each front; the same if one process has both. */
  servers: [TestServer, TestServer]
}

/** Failed logins after which the server must lock an account. */
export const attemptsMax = 3

/** Tests of state that two fronts share. Each test uses both fronts. */
export function sharedByFronts(twoFronts: () => TwoFronts): void {
  const fronts = () => twoFronts().fronts
  const serverOf = (n: number): TestServer => twoFronts().servers[n % 2 === 0 ? 0 : 1]

  /** Both orders of the fronts. */
  const pairs = (): [FrontConnection, FrontConnection][] => {
    const [one, other] = fronts()
    return [
      [one, other],
      [other, one],
    ]
  }

  describe('an API key', () => {
    it('works at the other front once its creation is confirmed, and at no front once its deletion is', async () => {
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

    it('is refused by both fronts after its deletion is confirmed, under concurrent load', async () => {
      const connections = Array.from({ length: 8 }, (_none, n) => new FrontConnection(serverOf(n)))
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
        const requests = connections.map(ask)
        expect((await here.call(`DELETE /v1/admin/api-keys/${id}`)).status).toBe(200)
        deleted = true
        await Promise.all(requests)
        expect(admittedLate).toEqual([])
      }
      for (const connection of connections) connection.close()
    })

    it('shows its last use at both fronts', async () => {
      for (const [here, there] of pairs()) {
        const { id, key } = await newKey(here)
        await there.call('GET /v1/agents', { key })
        for (const connection of [here, there]) {
          const { body } = await connection.call('GET /v1/admin/api-keys')
          const shown = body.api_keys.find((one: { key_id: string }) => one.key_id === id)
          expect(shown.last_used_at_ms).toBeGreaterThan(0)
        }
      }
    })
  })

  describe("a user's token", () => {
    it('is refused at the other front once its sign-out is confirmed', async () => {
      for (const [round, [here, there]] of pairs().entries()) {
        const { token } = await register(serverOf(0), `out-${round}@example.org`)
        expect((await there.call('GET /v1/auth/me', { key: token })).status).toBe(200)
        const out = await here.call('POST /v1/auth/logout', { key: token })
        expect(out.status, out.text).toBeLessThan(300)
        for (const connection of [there, here]) {
          expect(await connection.call('GET /v1/auth/me', { key: token })).toMatchObject({
            status: 401,
            body: { code: 'token_revoked' },
          })
        }
      }
    })

    it('is signed by the new key at the other front once the rotation is confirmed', async () => {
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

  describe('a password login', () => {
    it('allows no more guesses at two fronts than the lockout does', async () => {
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
    it('opens only one stream when two fronts receive it at the same time', async () => {
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

    it('reopens its stream at the other front until its key is deleted', async () => {
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
    it('show every record once and in order at both fronts', async () => {
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

    it('end at both fronts when their key is deleted', async () => {
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

  describe('a cached record', () => {
    it('is shown as deleted by both fronts once its deletion is confirmed', async () => {
      const [first] = fronts()
      await first.call('POST /v1/agents', { body: { agent_id: 'dropped', zone: 'standard' } })
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
