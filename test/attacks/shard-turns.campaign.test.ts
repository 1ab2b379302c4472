import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signUp } from '../support/auth/users.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { openStream } from '../support/http/events.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * Small commands that together are expensive for a shard: row policies, short writes, and reads of one
 * caller.
 */

let server: TestServer
/** A token with claims of nearly 4 KB. */
let user = ''

beforeAll(async () => {
  server = await startAuthServer({ nodeOptions: probedOptions, env: { SERVICE_SHARDS: '2' } })
  user = await signUp(server, 'user@example.org', { own: { a: 'x'.repeat(4_000) } })
})
afterAll(() => server.stop())

const eq = (n: number) => ({ field: `f${n % 32}`, op: 'ne', value: '$jwt.user_metadata.a' })

describe('row policies with a long claim', () => {
  const AGENTS = 150
  const names = Array.from({ length: AGENTS }, (_none, n) => `ruled-${n}`)

  beforeAll(async () => {
    // The largest policies that can be set.
    const conditions = Array.from({ length: 32 }, (_none, n) => eq(n))
    const policies = Array.from({ length: 24 }, () => ({ actions: ['read', 'write'], conditions }))
    for (const name of names) {
      await newAgent(server, name)
      const { status, text } = await checkedCall(server, `PUT /v1/agents/${name}/policies`, {
        body: { policies },
      })
      expect(status, text).toBe(200)
    }
  })

  it.each([
    ['300 streams of an agent', 300, `/v1/agents/${names[0]}/stream`],
    ['a stream of 150 agents', 1, `/v1/stream?agents=${names.join(',')}`],
  ])('stall no other caller with %s', async (_name, count, path) => {
    await expectHarmless(server, async () => {
      const [first = ''] = names
      const opened = Array.from({ length: count }, () => openStream(server, path, { key: user }))
      const streams = await Promise.all(opened)
      for (let n = 0; n < 20; n++) {
        await call(server, `POST /v1/agents/${first}/records`, { body: { data: { n } } })
      }
      for (const stream of streams) stream.close()
    })
  })

  it('stall no other caller with 1,000 concurrent small writes, allowed or refused', async () => {
    for (const data of [Object.fromEntries(Array.from({ length: 32 }, (_none, n) => [`f${n}`, 'y'])), {}]) {
      await expectHarmless(server, async () => {
        const writes = Array.from({ length: 1_000 }, () =>
          call(server, 'POST /v1/agents/ruled-0/records', { body: { data }, key: user }),
        )
        const statuses = new Set((await Promise.all(writes)).map(({ status }) => status))
        expect(statuses).toEqual(new Set(['f0' in data ? 201 : 403]))
      })
    }
  })
})

describe('writes', () => {
  it('stall no other caller if they create four organisms with 1,000 agents each', async () => {
    await expectHarmless(server, async () => {
      const created = Array.from({ length: 4 }, (_none, k) => {
        const agents = Array.from({ length: 1_000 }, (_one, n) => ({ name: `m${n}`, zone: 'free' }))
        return call(server, 'POST /v1/organisms', {
          body: { organism_id: `large-${k}`, name: 'large', agents },
        })
      })
      expect((await Promise.all(created)).map(({ status }) => status)).toEqual([201, 201, 201, 201])
    })
  })

  it('stall no other caller if they are large records of small members', async () => {
    const members = Array.from({ length: 22_000 }, (_none, n) => `"${n.toString(36)}":${n % 10}`)
    const raw = `{"data":{${members
      .join(',')
      .slice(0, 250_000)
      .replace(/,[^,]*$/, '')}}}`
    const headers = { 'content-type': 'application/json' }
    await expectHarmless(server, async () => {
      const writes = Array.from({ length: 8 }, () =>
        call(server, 'POST /v1/collections/wide/records', { raw, headers }),
      )
      expect(new Set((await Promise.all(writes)).map(({ status }) => status))).toEqual(new Set([201]))
    })
  })
})

describe('reads of one caller', () => {
  const LISTS = 60

  it('are overtaken by reads of another caller', async () => {
    await newAgent(server, 'hub')
    for (let from = 0; from < 4_000; from += 200) {
      const edges = Array.from({ length: 200 }, (_none, n) =>
        call(server, 'POST /v1/graph/edges', {
          body: { src: 'hub', dst: 'hub', edge_type: `t${from + n}`, weight: 1 },
        }),
      )
      await Promise.all(edges)
    }
    const [one, other] = [
      await scopedKey(server, ['records:read']),
      await scopedKey(server, ['records:read']),
    ]
    const statuses: number[] = []
    const lists = Array.from({ length: LISTS }, async () => {
      const path = '/v1/graph/edges/hub?direction=in&limit=1000'
      statuses.push((await call(server, `GET ${path}`, { key: one.key })).status)
    })
    await Promise.race(lists)
    const before = statuses.length
    await call(server, 'GET /v1/agents/hub/head', { key: other.key })
    // The reads of one turn of the shard, and those that were in flight.
    expect(statuses.length - before).toBeLessThan(LISTS / 2)
    await Promise.all(lists)
    expect(new Set(statuses)).toEqual(new Set([200]))
  })
})
