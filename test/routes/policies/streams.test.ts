import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, newAgent } from '../../support/http/answers.js'
import { isCaughtUp, numbersOf, openStream, type TestEvent } from '../../support/http/events.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'
import { signUp, subjectOf } from '../../support/auth/users.js'

/* Row policies on streams, replay and live (docs/adr/0012-row-policies.md). */

let server: TestServer
let ann = ''
let bob = ''

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '3' } })
  ann = await signUp(server, 'ann@example.org')
  bob = await signUp(server, 'bob@example.org')
})
afterAll(() => server.stop())

async function setPolicies(agent: string, actions = ['read']): Promise<void> {
  const conditions = [{ field: 'owner', op: 'eq', value: '$jwt.sub' }]
  const body = { policies: [{ actions, conditions }] }
  expect((await checkedCall(server, `PUT /v1/agents/${agent}/policies`, { body })).status).toBe(200)
}

/** A new agent with a policy that shows users their own records. */
async function ownedAgent(name: string): Promise<string> {
  await newAgent(server, name)
  await setPolicies(name)
  return name
}

const write = (agent: string, n: number, owner: string) =>
  checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data: { n, owner: subjectOf(owner) } } })

/** Alternating records of both users: even numbers are Ann’s, odd numbers Bob’s. */
async function writeMany(agent: string, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) await write(agent, n, n % 2 === 0 ? ann : bob)
}

const has = (count: number) => (events: readonly TestEvent[]) => numbersOf(events).length >= count

describe('the stream of one agent', () => {
  it('shows a user its own records, replayed and live', async () => {
    const agent = await ownedAgent('one')
    await writeMany(agent, 0, 6)
    const path = `/v1/agents/${agent}/stream?since=0`
    const [first, second] = [
      await openStream(server, path, { key: ann }),
      await openStream(server, path, { key: bob }),
    ]
    await Promise.all([first.until(isCaughtUp), second.until(isCaughtUp)])
    await writeMany(agent, 6, 12)
    await Promise.all([first.until(has(6)), second.until(has(6))])
    expect(numbersOf(first.events)).toEqual([0, 2, 4, 6, 8, 10])
    expect(numbersOf(second.events)).toEqual([1, 3, 5, 7, 9, 11])
    expect(first.text()).not.toContain(subjectOf(bob))
    first.close()
    second.close()
  })

  it('continues after the last received event, past hidden ones', async () => {
    const agent = await ownedAgent('resumed')
    await writeMany(agent, 0, 4)
    const path = `/v1/agents/${agent}/stream?since=0`
    const first = await openStream(server, path, { key: ann })
    await first.until(has(2))
    first.close()
    await writeMany(agent, 4, 8)
    const id = first.events.findLast(({ event }) => event === 'record')?.id ?? ''
    const next = await openStream(server, path, { key: ann, headers: { 'last-event-id': id } })
    await next.until(isCaughtUp)
    expect(numbersOf(next.events)).toEqual([4, 6])
    next.close()
  })

  it('hides records from a user among many streams of keys', async () => {
    const agent = await ownedAgent('crowd')
    const path = `/v1/agents/${agent}/stream`
    const keys = await Promise.all(Array.from({ length: 20 }, () => openStream(server, path)))
    const own = await openStream(server, path, { key: ann })
    await Promise.all([...keys, own].map((stream) => stream.until(isCaughtUp)))
    await Promise.all(Array.from({ length: 30 }, (_none, n) => write(agent, n, n % 2 === 0 ? ann : bob)))
    await Promise.all([...keys.map((stream) => stream.until(has(30))), own.until(has(15))])
    const numbers = numbersOf(own.events)
    expect(numbers.filter((n) => n % 2 === 1)).toEqual([])
    expect(new Set(numbers).size).toBe(15)
    for (const stream of [...keys, own]) stream.close()
  })

  it('applies the filter and the policies together', async () => {
    const agent = await ownedAgent('filtered')
    const path = `/v1/agents/${agent}/stream?since=0&filter=n`
    const stream = await openStream(server, path, { key: ann })
    await stream.until(isCaughtUp)
    await checkedCall(server, `POST /v1/agents/${agent}/records`, {
      body: { data: { owner: subjectOf(ann) } },
    })
    await writeMany(agent, 1, 3)
    await stream.until(has(1))
    expect(numbersOf(stream.events)).toEqual([2])
    stream.close()
  })

  it('opens with a ticket like for its user', async () => {
    const agent = await ownedAgent('ticketed')
    const { status, body } = await checkedCall(server, 'POST /v1/stream/tickets', { key: ann })
    expect(status).toBe(201)
    const path = `/v1/agents/${agent}/stream?since=0&ticket=${body.ticket}`
    await writeMany(agent, 0, 4)
    const stream = await openStream(server, path, { key: null })
    await stream.until(isCaughtUp)
    expect(numbersOf(stream.events)).toEqual([0, 2])
    stream.close()
    await newAgent(server, 'unticketed')
    const other = await checkedCall(server, 'POST /v1/stream/tickets', { key: ann })
    const refused = await checkedCall(
      server,
      `GET /v1/agents/unticketed/stream?ticket=${other.body.ticket}`,
      {
        key: null,
      },
    )
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
  })
})

describe('the global stream', () => {
  it('shows a user its own records of the agents that it names, replayed and live', async () => {
    const agents = await Promise.all(['g-0', 'g-1', 'g-2', 'g-3'].map(ownedAgent))
    const named = agents.slice(0, 3)
    const all = async (from: number, to: number) => {
      for (const [place, agent] of agents.entries())
        await writeMany(agent, from + 100 * place, to + 100 * place)
    }
    await all(0, 4)
    const stream = await openStream(server, `/v1/stream?since=0&agents=${named.join(',')}`, { key: ann })
    await stream.until(isCaughtUp)
    await all(4, 8)
    await stream.until(has(12))
    const expected = [0, 1, 2].flatMap((place) => [0, 2, 4, 6].map((n) => n + 100 * place))
    expect(numbersOf(stream.events).toSorted((left, right) => left - right)).toEqual(expected)
    expect(stream.text()).not.toContain(subjectOf(bob))
    stream.close()
  })

  it('is refused for users who name no agent, or one that they may not read', async () => {
    const agent = await ownedAgent('named')
    for (const query of ['', '?since=0', `?agents=${agent},absent`, `?agents=default,${agent}`]) {
      const { status, body } = await checkedCall(server, `GET /v1/stream${query}`, { key: ann })
      expect([status, body.code]).toEqual([403, 'forbidden'])
    }
  })
})

describe('a change of policies', () => {
  it('ends only the streams of users on the agent', async () => {
    const [agent, other] = [await ownedAgent('changing'), await ownedAgent('staying')]
    const open = (path: string, key: string = ann) => openStream(server, path, { key })
    const ended = await Promise.all([
      open(`/v1/agents/${agent}/stream`),
      open(`/v1/agents/${agent}/stream?since=0`, bob),
      open(`/v1/stream?agents=${other},${agent}`),
    ])
    const staying = await Promise.all([
      open(`/v1/agents/${other}/stream`),
      open(`/v1/stream?agents=${other}`),
      open(`/v1/agents/${agent}/stream`, server.rootKey),
    ])
    await Promise.all([...ended, ...staying].map((stream) => stream.until(isCaughtUp)))
    await setPolicies(agent, ['read', 'write'])
    await Promise.all(ended.map((stream) => stream.ended))
    // Ended regularly, with the retry interval.
    for (const stream of ended) expect(stream.text().endsWith('retry: 2000\n\n')).toBe(true)
    await write(other, 2, ann)
    await write(agent, 4, ann)
    await Promise.all(staying.map((stream) => stream.until(has(1))))
    for (const stream of staying) stream.close()
  })

  it('applies to streams that reconnect', async () => {
    const agent = await ownedAgent('reconnected')
    const path = `/v1/agents/${agent}/stream?since=0`
    const stream = await openStream(server, path, { key: ann })
    await stream.until(isCaughtUp)
    await setPolicies(agent, ['write'])
    await stream.ended
    const refused = await checkedCall(server, `GET ${path}`, { key: ann })
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
  })

  it('hides every record that is written after it', async () => {
    const agent = await ownedAgent('close')
    const streams = await Promise.all(
      Array.from({ length: 4 }, () => openStream(server, `/v1/agents/${agent}/stream`, { key: ann })),
    )
    await Promise.all(streams.map((stream) => stream.until(isCaughtUp)))
    const change = setPolicies(agent, ['write'])
    const writes = Array.from({ length: 50 }, (_none, n) => write(agent, n, ann))
    await change
    await Promise.all(writes)
    await Promise.all(streams.map((stream) => stream.ended))
    const types = { type: 'latest', types: ['sys/policy'], limit: 1 }
    const { body } = await checkedCall(server, `POST /v1/agents/${agent}/query`, { body: types })
    const changedAt = body.records[0].seq
    for (const { events } of streams) {
      expect(events.filter(({ event, data }) => event === 'record' && data.seq > changedAt)).toEqual([])
    }
  })
})

it('the server had nothing to log', () => {
  expect(server.stderr()).toBe('')
})
