// @run through a standby
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { Tickets } from '../../src/front/http/streams/tickets.js'
import { streamRoutes } from '../../src/front/routes/stream.js'
import {
  checkedCall,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
  written,
} from '../support/http/answers.js'
import { isCaughtUp, numbersOf, openStream, type TestEvent } from '../support/http/events.js'
import { startServer, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '3' } })
})
afterAll(() => server.stop())

const upTo = (count: number) => Array.from({ length: count }, (_none, n) => n)

const write = async (agent: string, n: number, more: object = {}) =>
  (await written(server, `POST /v1/collections/${agent}/records`, { data: { n, ...more } })).body

/** Agents on all shards, with `count` records each; the numbers of agent k start at 1,000 k. */
async function filled(name: string, count: number): Promise<string[]> {
  const agents = upTo(6).map((k) => `${name}-${k}`)
  const records = (k: number) => upTo(count).map((n) => ({ data: { n: 1_000 * k + n } }))
  await Promise.all(
    agents.map((agent, k) =>
      written(server, `POST /v1/collections/${agent}/records/batch`, { records: records(k) }),
    ),
  )
  return agents
}

const has = (count: number) => (events: readonly TestEvent[]) => numbersOf(events).length >= count
const numeric = (left: number, right: number) => left - right

describe('the stream of one agent', () => {
  it('sends new records, with all their members', async () => {
    await write('live', 0)
    const stream = await openStream(server, '/v1/agents/live/stream')
    await stream.until(isCaughtUp)
    const written = await write('live', 1)
    await stream.until(has(1))
    expect(stream.text().startsWith('retry: 2000\n\n')).toBe(true)
    const event = stream.events.find(({ event }) => event === 'record')
    expect(event).toEqual({
      id: '2',
      event: 'record',
      data: {
        record_id: written.id,
        payload: { n: 1 },
        agent: 'live',
        seq: 2,
        type: 'record',
        timestamp_hlc: written.timestamp_hlc,
        timestamp_ms: Number.parseInt(written.timestamp_hlc.slice(0, 12), 16),
        content_hash: written.id,
        parent_hash: written.parent_hash,
      },
    })
    stream.close()
  })

  it('replays and continues live without gaps or duplicates, while other clients write', async () => {
    const agent = await newAgent(server, 'busy')
    const append = (n: number) => written(server, `POST /v1/agents/${agent}/records`, { data: { n } })
    for (const n of upTo(10)) await append(n)
    const writing = upTo(300)
      .slice(10)
      .map((n) => append(n))
    const streams = await Promise.all(
      upTo(4).map(() => openStream(server, `/v1/agents/${agent}/stream?since=0`)),
    )
    await Promise.all(writing)
    for (const stream of streams) {
      await stream.until(has(300))
      // The last record may arrive with the replay, and its end after it.
      await stream.until(isCaughtUp)
      expect(numbersOf(stream.events).sort(numeric)).toEqual(upTo(300))
      const seqs = stream.events.filter(({ event }) => event === 'record').map(({ data }) => data.seq)
      expect(seqs).toEqual(upTo(300).map((n) => n + 1))
      expect(stream.events.filter(({ event }) => event === 'caught_up').length).toBe(1)
      stream.close()
    }
  })

  it('replays more than one page', async () => {
    const records = upTo(1_000).map((n) => ({ data: { n } }))
    await written(server, 'POST /v1/collections/long/records/batch', { records })
    const stream = await openStream(server, '/v1/agents/long/stream?since=0')
    await stream.until(isCaughtUp)
    expect(numbersOf(stream.events)).toEqual(upTo(1_000))
    stream.close()
  })

  it('starts at since, as HLC, milliseconds or ISO 8601', async () => {
    for (const n of upTo(4)) await write('since', n)
    const { timestamp_hlc: hlc } = await write('since', 4)
    await write('since', 5)
    const from = async (since: string) => {
      const stream = await openStream(server, `/v1/agents/since/stream?since=${encodeURIComponent(since)}`)
      await stream.until(isCaughtUp)
      stream.close()
      return numbersOf(stream.events)
    }
    expect(await from(hlc)).toEqual([4, 5])
    const ms = Number.parseInt(hlc, 16)
    for (const moment of [String(ms), new Date(ms).toISOString()]) {
      expect((await from(moment)).slice(-2)).toEqual([4, 5])
    }
    expect(await from('1970-01-01')).toEqual(upTo(6))
    expect(await from('ffffffffffff-ffff')).toEqual([])
  })

  it('continues after Last-Event-ID, which takes precedence over since', async () => {
    for (const n of upTo(5)) await write('resumed', n)
    const headers = { 'last-event-id': '3' }
    const stream = await openStream(server, '/v1/agents/resumed/stream?since=0', { headers })
    await stream.until(isCaughtUp)
    expect(numbersOf(stream.events)).toEqual([3, 4])
    await write('resumed', 5)
    await stream.until(has(3))
    stream.close()
    const lastId = stream.events.findLast(({ event }) => event === 'record')?.id ?? ''
    await write('resumed', 6)
    const again = await openStream(server, '/v1/agents/resumed/stream', {
      headers: { 'last-event-id': lastId },
    })
    await again.until(isCaughtUp)
    expect(numbersOf(again.events)).toEqual([6])
    again.close()
  })

  it('loses nothing if the client reconnects at caught_up', async () => {
    await write('idle', 0)
    const stream = await openStream(server, '/v1/agents/idle/stream')
    await stream.until(isCaughtUp)
    stream.close()
    const id = stream.events.find(({ event }) => event === 'caught_up')?.id ?? ''
    await write('idle', 1)
    const again = await openStream(server, '/v1/agents/idle/stream', { headers: { 'last-event-id': id } })
    await again.until(isCaughtUp)
    expect(numbersOf(again.events)).toEqual([1])
    again.close()
  })

  it('shows only payloads that have the field of its filter, in replay and live', async () => {
    for (const n of upTo(4)) await write('filtered', n, n % 2 === 0 ? { alarm: null } : {})
    const path = '/v1/agents/filtered/stream?since=0&filter=alarm'
    const stream = await openStream(server, path)
    await stream.until(isCaughtUp)
    expect(numbersOf(stream.events)).toEqual([0, 2])
    await write('filtered', 5)
    await write('filtered', 6, { alarm: {} })
    await stream.until(has(3))
    expect(numbersOf(stream.events)).toEqual([0, 2, 6])
    stream.close()
    const dotted = await openStream(server, '/v1/agents/filtered/stream?since=0&filter=__proto__')
    await dotted.until(isCaughtUp)
    expect(numbersOf(dotted.events)).toEqual([])
    dotted.close()
    const labels = { 'app.kubernetes.io/name': 'web' }
    await write('filtered', 7, { labels, 'dotted.name': 1 })
    for (const filter of ['/labels/app.kubernetes.io~1name', 'dotted.name', '/dotted.name']) {
      const path = `/v1/agents/filtered/stream?since=0&filter=${encodeURIComponent(filter)}`
      const one = await openStream(server, path)
      await one.until(isCaughtUp)
      expect([filter, numbersOf(one.events)]).toEqual([filter, [7]])
      one.close()
    }
  })

  it('shows records of the named types, in replay and live, among them those of the server', async () => {
    const agent = await newAgent(server, 'typed')
    const { id } = await write(agent, 0)
    await written(server, `DELETE /v1/agents/${agent}/records/${id}`)
    const typesOf = (events: readonly TestEvent[]) => events.map(({ data }) => data.type).filter(Boolean)
    const paths = [
      [`/v1/agents/${agent}/stream?since=0&types=sys/*`, ['sys/genesis', 'sys/tombstone', 'sys/restore']],
      [`/v1/stream?agents=${agent}&since=0&types=sys/restore,record`, ['record', 'sys/restore', 'record']],
      [`/v1/stream?agents=${agent}&since=0`, ['record', 'record']],
      [
        `/v1/agents/${agent}/stream?since=0&types=*`,
        ['sys/genesis', 'record', 'sys/tombstone', 'sys/restore', 'record'],
      ],
    ] as const
    const streams = await Promise.all(paths.map(([path]) => openStream(server, path)))
    await Promise.all(streams.map((stream) => stream.until(isCaughtUp)))
    await written(server, `POST /v1/agents/${agent}/records/${id}/restore`)
    await write(agent, 1)
    for (const [at, [path, expected]] of paths.entries()) {
      const stream = streams[at]
      await stream?.until((events) => typesOf(events).length >= expected.length)
      expect([path, typesOf(stream?.events ?? [])]).toEqual([path, expected])
      stream?.close()
    }
    const refused = await checkedCall(server, `GET /v1/agents/${agent}/stream?types=Sys`)
    expect([refused.status, refused.body.errors[0].pointer]).toEqual([400, '?types'])
  })

  it('shows no records of the server unless their types are named', async () => {
    const agent = await newAgent(server, 'mutated')
    const { id } = await write(agent, 0)
    await written(server, `DELETE /v1/agents/${agent}/records/${id}`)
    await write(agent, 1)
    const stream = await openStream(server, `/v1/agents/${agent}/stream?since=0`)
    await stream.until(isCaughtUp)
    expect(stream.events.map(({ data }) => data.type).filter(Boolean)).toEqual(['record', 'record'])
    stream.close()
  })

  it('answers 400, 401, 403 and 404 instead of a stream', async () => {
    const path = 'GET /v1/agents/default/stream'
    for (const since of ['x', '', '2026-02-30', '-1', '20270101', '1790000000']) {
      expect([since, (await checkedCall(server, `${path}?since=${since}`)).status]).toEqual([since, 400])
    }
    for (const id of ['x', '-1', '1.5', '281474976710655', '999999999999999', '9'.repeat(40)]) {
      const refused = await checkedCall(server, path, { headers: { 'last-event-id': id } })
      expect([id, refused.status, refused.body.code]).toEqual([id, 400, 'validation_failed'])
    }
    for (const filter of ['/a~b', 'a..b', '.', '']) {
      for (const one of [path, 'GET /v1/stream']) {
        const { status, body } = await checkedCall(server, `${one}?filter=${filter}`)
        expect([filter, status, body.errors[0].pointer]).toEqual([filter, 400, '?filter'])
      }
    }
    expect((await checkedCall(server, 'GET /v1/agents/absent/stream')).status).toBe(404)
    expect((await checkedCall(server, path, { key: null })).status).toBe(401)
    const { key } = await scopedKey(server, ['records:write'])
    expect((await checkedCall(server, path, { key })).status).toBe(403)
    expect((await checkedCall(server, 'GET /readyz')).status).toBe(200)
  })
})

describe('the stream of all agents', () => {
  it('sends no earlier records', async () => {
    await filled('before', 20)
    const stream = await openStream(server, '/v1/stream')
    await stream.until(isCaughtUp)
    await write('before-0', -1)
    await stream.until(has(1))
    expect(numbersOf(stream.events)).toEqual([-1])
    stream.close()
  })

  it('replays and continues live across all shards without gaps or duplicates', async () => {
    const { timestamp_hlc: since } = await write('global-start', -1)
    await filled('global', 40)
    const writing = upTo(120).map((n) => write(`global-${n % 6}`, 100_000 + n))
    const streams = await Promise.all(upTo(3).map(() => openStream(server, `/v1/stream?since=${since}`)))
    await Promise.all(writing)
    for (const stream of streams) {
      const ours = () => numbersOf(stream.events).filter((n) => n >= 0)
      await stream.until(() => ours().length >= 360)
      const expected = [
        ...upTo(6).flatMap((k) => upTo(40).map((n) => 1_000 * k + n)),
        ...upTo(120).map((n) => 100_000 + n),
      ]
      expect(ours().sort(numeric)).toEqual(expected)
      for (const agent of upTo(6).map((k) => `global-${k}`)) {
        const seqs = stream.events.filter(({ data }) => data.agent === agent).map(({ data }) => data.seq)
        expect(seqs).toEqual(upTo(60).map((n) => n + 1))
      }
      stream.close()
    }
  })

  it('continues after any event', async () => {
    const { timestamp_hlc: since } = await write('resume-start', -1)
    const agents = await filled('resume', 5)
    const query = `agents=${agents.join(',')}`
    const whole = await openStream(server, `/v1/stream?${query}&since=${since}`)
    await whole.until(has(30))
    whole.close()
    const events = whole.events.filter(({ event }) => event === 'record').slice(0, 30)
    for (const place of [0, 7, 14, 28]) {
      const headers = { 'last-event-id': events[place]?.id ?? '' }
      const rest = await openStream(server, `/v1/stream?${query}&since=0`, { headers })
      await rest.until(isCaughtUp)
      const expected = events.slice(place + 1).map(({ data }) => data.payload.n)
      expect(numbersOf(rest.events).sort(numeric)).toEqual(expected.sort(numeric))
      rest.close()
    }
  })

  it('shows only the agents that it is restricted to, in replay and live', async () => {
    const { timestamp_hlc: since } = await write('restricted-start', -1)
    await filled('restricted', 3)
    const { key } = await scopedKey(server, ['records:read'], ['restricted-*'])
    const path = `/v1/stream?agents=restricted-1,restricted-4&agents=restricted-1&since=${since}`
    const stream = await openStream(server, path, { key })
    await stream.until(isCaughtUp)
    for (const k of upTo(6)) await write(`restricted-${k}`, 1_000 * k + 3)
    await stream.until(has(8))
    const expected = [1_000, 1_001, 1_002, 1_003, 4_000, 4_001, 4_002, 4_003]
    expect(numbersOf(stream.events).sort(numeric)).toEqual(expected)
    stream.close()
  })

  it('answers 400 for invalid agents and cursors', async () => {
    const many = upTo(1_001).map((n) => `a${n}`)
    for (const agents of ['', ',', 'a,', 'a b', 'x'.repeat(129), many.join(',')]) {
      const refused = await checkedCall(server, `GET /v1/stream?agents=${encodeURIComponent(agents)}`)
      expect([agents.slice(0, 20), refused.status]).toEqual([agents.slice(0, 20), 400])
    }
    const clock = '000000000000-0000'
    const tooMany = Array.from({ length: 17 }, () => clock).join('.')
    for (const id of [
      '1',
      `${clock}.${clock}.x`,
      `${clock}.`.repeat(4),
      `${clock}-12`,
      `${clock}~`,
      tooMany,
    ]) {
      const refused = await checkedCall(server, 'GET /v1/stream', { headers: { 'last-event-id': id } })
      expect([id, refused.status, refused.body.code]).toEqual([id, 400, 'validation_failed'])
    }
  })

  it('waits for later records if its cursor is ahead of all records', async () => {
    const end = 'ffffffffffff-ffff'
    const headers = { 'last-event-id': `${end}.${end}.${end}` }
    const stream = await openStream(server, '/v1/stream', { headers })
    await stream.until(isCaughtUp)
    expect(numbersOf(stream.events)).toEqual([])
    stream.close()
    expect((await checkedCall(server, 'GET /readyz')).status).toBe(200)
  })
})

describe('a ticket', () => {
  const issue = (key = server.rootKey) => checkedCall(server, 'POST /v1/stream/tickets', { key })

  it('opens one stream without a header, and reopens it after the last received event', async () => {
    const { status, body } = await issue()
    expect([status, body.expires_in]).toEqual([201, 60])
    const path = `/v1/agents/default/stream?ticket=${body.ticket}&filter=n`
    const stream = await openStream(server, path, { key: null })
    await stream.until(isCaughtUp)
    await write('default', 70)
    await stream.until(has(1))
    const seen = stream.events.findLast(({ id }) => id !== undefined)?.id ?? ''
    stream.close()
    await write('default', 71)
    const headers = { 'last-event-id': seen }
    const again = await openStream(server, path, { key: null, headers })
    await again.until(has(1))
    expect(numbersOf(again.events)).toEqual([71])
    again.close()
    // The same with a parameter, for clients that cannot set headers of a new EventSource.
    const moved = await openStream(server, `${path}&last_event_id=${seen}`, { key: null })
    await moved.until(has(1))
    moved.close()
    // A polyfill adds its own parameter when it reconnects, so that one takes precedence.
    const filled = await openStream(server, `${path}&last_event_id=0&lastEventId=${seen}`, { key: null })
    await filled.until(has(1))
    expect(numbersOf(filled.events)).toEqual([71])
    filled.close()
    const other = `GET /v1/agents/live/stream?ticket=${body.ticket}&filter=n`
    const wider = `GET /v1/agents/default/stream?ticket=${body.ticket}`
    for (const route of [other, wider, 'GET /v1/stream?ticket=nothing', 'GET /v1/stream?ticket=']) {
      const refused = await checkedCall(server, route, { key: null })
      expect([refused.status, refused.body.code]).toEqual([401, 'unauthorized'])
    }
  })

  it('opens its stream only with the parameters of the first use', async () => {
    const shown = { types: 'reading,note', filter: 'n', agents: 'default,live' }
    const pathOf = (base: string, parameters: Record<string, string>, ticket: string) =>
      `${base}?${new URLSearchParams({ ...parameters, since: '0', ticket })}`
    for (const base of ['/v1/agents/default/stream', '/v1/stream']) {
      const named = Object.entries(shown).filter(([name]) => name !== 'agents' || base === '/v1/stream')
      const first = Object.fromEntries(named)
      const { ticket } = (await issue()).body
      const stream = await openStream(server, pathOf(base, first, ticket), { key: null })
      await stream.until(isCaughtUp)
      stream.close()
      const again = await openStream(server, pathOf(base, first, ticket), { key: null })
      again.close()
      for (const [name] of named) {
        const { [name]: _left, ...without } = first
        const changed = { ...first, [name]: name === 'types' ? 'sys/*' : 'live' }
        for (const parameters of [without, changed]) {
          const route = `GET ${pathOf(base, parameters, ticket)}`
          expect([route, (await checkedCall(server, route, { key: null })).status]).toEqual([route, 401])
        }
      }
      // The same items of a list, each in its own parameter.
      const apart = pathOf(base, first, ticket).replace('reading%2Cnote', 'reading&types=note')
      const reopened = await openStream(server, apart, { key: null })
      reopened.close()
    }
  })

  it('opens nothing but streams', async () => {
    const { body } = await issue()
    expect((await checkedCall(server, `GET /v1/agents?ticket=${body.ticket}`, { key: null })).status).toBe(
      401,
    )
  })

  it('reaches the agents of its key, and is revoked with it', async () => {
    const { key, key_id } = await scopedKey(server, ['records:read'], ['live'])
    const limited = (await issue(key)).body.ticket
    const refused = await checkedCall(server, `GET /v1/agents/default/stream?ticket=${limited}`, {
      key: null,
    })
    expect(refused.status).toBe(403)
    const lost = (await issue(key)).body.ticket
    await written(server, `DELETE /v1/admin/api-keys/${key_id}`)
    expect(
      (await checkedCall(server, `GET /v1/agents/live/stream?ticket=${lost}`, { key: null })).status,
    ).toBe(401)
  })

  it('requires the scope to read, and writes nothing', async () => {
    const { key } = await scopedKey(server, ['records:write'])
    await expectUnchanged(server, 'default', async () => {
      expect((await issue(key)).status).toBe(403)
      expect((await checkedCall(server, 'POST /v1/stream/tickets', { key: null })).status).toBe(401)
      expect((await checkedCall(server, 'POST /v1/stream/tickets', { raw: ' '.repeat(2_000) })).status).toBe(
        413,
      )
    })
  })

  it('is valid for 60 s; too many unused tickets are 429 for a principal, 503 for all', () => {
    let nowMs = 1_000
    const share = 1_000
    const use = { address: '192.0.2.1', stream: 'a' }
    const tickets = new Tickets(() => nowMs, share)
    const principalOf = (n: number) => ({ id: `key_${n}`, scopes: new Set<string>(), agents: [] })
    const principal = principalOf(0)
    const [kept, late] = [tickets.issue(principal), tickets.issue(principal)]
    nowMs += 59_999
    expect(typeof kept === 'string' && tickets.redeem(kept, use)).toBe(principal)
    nowMs += 1
    expect(typeof late === 'string' && tickets.redeem(late, use)).toBeUndefined()
    const [first, second] = Array.from({ length: share }, () => tickets.issue(principal))
    expect(tickets.issue(principal)).toMatchObject({ code: 'too_many_streams', retryAfterSecs: 1 })
    expect(typeof first === 'string' && tickets.redeem(first, use)).toBe(principal)
    expect(typeof second === 'string' && tickets.redeem(second, use)).toBe(principal)
    expect(typeof tickets.issue(principal)).toBe('string')
    expect(typeof tickets.issue(principal)).toBe('string')
    expect(tickets.issue(principal)).toMatchObject({ code: 'too_many_streams' })
    // Three tickets wait for another use.
    for (let n = share; n < limits.streamTicketsMax - 3; n++)
      tickets.issue(principalOf(1 + Math.floor(n / share)))
    expect(tickets.issue(principalOf(0))).toMatchObject({ code: 'overloaded', retryAfterSecs: 1 })
    expect(tickets.issue(principalOf(10_000))).toMatchObject({ code: 'overloaded', retryAfterSecs: 1 })
    nowMs += 60_000
    expect(typeof tickets.issue(principal)).toBe('string')
  })

  it('is valid only for its address and stream, while the stream is open and 60 s after it', () => {
    let nowMs = 1_000
    const tickets = new Tickets(() => nowMs, 2)
    const principal = { id: 'key_1', scopes: new Set<string>(), agents: [] }
    const use = { address: '192.0.2.1', stream: 'a' }
    const ticket = String(tickets.issue(principal))
    expect(tickets.hold(ticket, principal)).toBeUndefined()
    expect(tickets.redeem(ticket, use)).toBe(principal)
    expect(tickets.redeem(ticket, { ...use, address: '192.0.2.2' })).toBeUndefined()
    expect(tickets.redeem(ticket, { ...use, stream: 'b' })).toBeUndefined()
    expect(tickets.hold(ticket, { ...principal, id: 'key_2' })).toBeUndefined()
    const [first, second] = [tickets.hold(ticket, principal), tickets.hold(ticket, principal)]
    nowMs += 3_600_000
    expect(tickets.redeem(ticket, use)).toBe(principal)
    first?.()
    nowMs += 3_600_000
    second?.()
    nowMs += 59_999
    expect(tickets.redeem(ticket, use)).toBe(principal)
    nowMs += 59_999
    expect(tickets.redeem(ticket, use)).toBe(principal)
    nowMs += 60_000
    expect(tickets.redeem(ticket, use)).toBeUndefined()
  })

  it('is revoked with its key while its stream is open; used tickets are limited per principal', () => {
    const tickets = new Tickets(() => 1_000, 2)
    const principal = { id: 'key_1', scopes: new Set<string>(), agents: [] }
    const use = { address: '192.0.2.1', stream: 'a' }
    const opened = () => {
      const ticket = String(tickets.issue(principal))
      expect(tickets.redeem(ticket, use)).toBe(principal)
      return { ticket, release: tickets.hold(ticket, principal) }
    }
    const three = [opened(), opened(), opened()]
    for (const { release } of three) release?.()
    expect(three.map(({ ticket }) => tickets.redeem(ticket, use))).toEqual([principal, principal, undefined])
    const fresh = String(tickets.issue(principal))
    tickets.revoke('key_1')
    expect(tickets.redeem(fresh, use)).toBeUndefined()
    const { ticket, release } = opened()
    tickets.revoke('key_1')
    release?.()
    expect(tickets.redeem(ticket, use)).toBeUndefined()
  })
})

describe('the end of a stream', () => {
  it('follows the deletion of its key, but not for other keys', async () => {
    const { key, key_id } = await scopedKey(server, ['records:read'])
    const own = await openStream(server, '/v1/agents/default/stream', { key })
    const global = await openStream(server, '/v1/stream', { key })
    const other = await openStream(server, '/v1/agents/default/stream')
    await Promise.all([own, global, other].map((stream) => stream.until(isCaughtUp)))
    await written(server, `DELETE /v1/admin/api-keys/${key_id}`)
    await Promise.all([own.ended, global.ended])
    expect(own.text().endsWith('retry: 2000\n\n')).toBe(true)
    await write('default', 1)
    await other.until(has(1))
    other.close()
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(streamRoutes)).toEqual([])
})

it('a stream ends with retry when the server stops', async () => {
  const streams = await Promise.all(
    ['/v1/agents/default/stream', '/v1/stream'].map((path) => openStream(server, path)),
  )
  await Promise.all(streams.map((stream) => stream.until(isCaughtUp)))
  expect(await server.halt()).toBe(0)
  for (const stream of streams) {
    await stream.ended
    expect(stream.text().endsWith('retry: 2000\n\n')).toBe(true)
  }
})
