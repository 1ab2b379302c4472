// @run through a standby
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkedCall, newAgent } from '../../support/http/answers.js'
import { isCaughtUp, numbersOf, openStream, type TestStream } from '../../support/http/events.js'
import { exportOf, fill, importTo, sharedSeed } from '../../support/shard/imports.js'
import { startServer, type TestServer } from '../../support/server/server.js'

/*
 * Imports in streams: a stream of the agent shows all records, streams of many agents show none, and neither
 * misses other records.
 */

let source: TestServer
let target: TestServer

beforeAll(async () => {
  source = await startServer({ env: { ...sharedSeed, SERVICE_SHARDS: '1' } })
  target = await startServer({ env: { ...sharedSeed, SERVICE_SHARDS: '2' } })
})
afterAll(async () => {
  await source.stop()
  await target.stop()
})

const upTo = (count: number) => Array.from({ length: count }, (_none, n) => n)
const last = (stream: TestStream, n: number) => stream.until((events) => numbersOf(events).includes(n))

/** A strand of numbers on the source; the target has its first part. */
async function halfOf(agent: string): Promise<void> {
  await newAgent(source, agent)
  await fill(source, agent, { from: 0, count: 10 })
  const held = await importTo(target, await exportOf(source, agent), { query: '?hold=true' })
  expect(held.status).toBe(200)
  await fill(source, agent, { from: 10, count: 400, query: '?signing=group' })
  await fill(source, agent, { from: 410, count: 10 })
}

it('shows each imported record once in streams of the agent, and later records after it', async () => {
  await halfOf('flow')
  // With this many streams, recent events are stored for those that fall behind.
  const plain = await Promise.all(upTo(17).map(() => openStream(target, '/v1/agents/flow/stream?since=0')))
  const streams = [...plain, await openStream(target, '/v1/agents/flow/stream?since=0&filter=n')]
  try {
    for (const stream of streams) await stream.until(isCaughtUp)
    expect((await importTo(target, await exportOf(source, 'flow'))).body.imported).toBe(410)
    await fill(target, 'flow', { from: 420, count: 5 })
    for (const stream of streams) await last(stream, 424)
    for (const { events } of streams) expect(numbersOf(events)).toEqual(upTo(425))
    const replayed = await openStream(target, '/v1/agents/flow/stream?since=0')
    await last(replayed, 424)
    expect(numbersOf(replayed.events)).toEqual(upTo(425))
    replayed.close()
  } finally {
    for (const stream of streams) stream.close()
  }
})

it('shows no imported records in streams of many agents, which continue from any cursor', async () => {
  await halfOf('history')
  await newAgent(target, 'news')
  await fill(target, 'news', { from: 1_000, count: 3 })
  const live = await openStream(target, '/v1/stream?agents=news,history&since=0')
  await live.until(isCaughtUp)
  expect(numbersOf(live.events)).toEqual([1_000, 1_001, 1_002])
  const cursor = live.events.at(-1)?.id ?? ''
  await importTo(target, await exportOf(source, 'history'))
  await fill(target, 'news', { from: 1_003, count: 3 })
  await fill(target, 'history', { from: 2_000, count: 3 })
  const since = await openStream(target, '/v1/stream?agents=news,history', {
    headers: { 'last-event-id': cursor },
  })
  const written = [1_003, 1_004, 1_005, 2_000, 2_001, 2_002]
  for (const [stream, before] of [
    [live, [1_000, 1_001, 1_002]],
    [since, []],
  ] as const) {
    await stream.until((events) => written.every((n) => numbersOf(events).includes(n)))
    expect(numbersOf(stream.events).toSorted((left, right) => left - right)).toEqual([...before, ...written])
    stream.close()
  }
  const everything = await openStream(target, '/v1/stream?since=0')
  await everything.until(isCaughtUp)
  expect(numbersOf(everything.events)).not.toContain(15)
  expect(numbersOf(everything.events)).toContain(2_002)
  everything.close()
})

it('starts a stream at an imported agent', async () => {
  const { body } = await checkedCall(target, 'GET /v1/agents/history/head')
  const stream = await openStream(target, `/v1/agents/history/stream?since=${body.timestamp_hlc}`)
  await stream.until(isCaughtUp)
  expect(numbersOf(stream.events)).toEqual([2_002])
  stream.close()
})
