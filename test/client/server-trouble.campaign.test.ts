import { describe, expect, it } from 'vitest'
import { systemTiming } from '../../src/client/timing.js'
import {
  NetworkError,
  ServiceClient,
  ServiceError,
  type StreamEvent,
  type Subscription,
} from '../../src/client/index.js'
import { freePort } from '../support/server/free-port.js'
import { startServer } from '../support/server/server.js'

/** Timing whose pauses are all 20 ms, so that other tasks can run. */
const shortPauses = {
  ...systemTiming,
  pause: (_ms: number, signal: AbortSignal) => systemTiming.pause(20, signal),
}

/** Collects events; its promise resolves when a given number has arrived. */
function collected() {
  const events: StreamEvent[] = []
  const waiting: { count: number; resolve: () => void }[] = []
  return {
    events,
    onEvent(event: StreamEvent) {
      events.push(event)
      for (const { count, resolve } of waiting) if (events.length >= count) resolve()
    },
    reached: (count: number) =>
      new Promise<void>((resolve) => {
        waiting.push({ count, resolve })
        if (events.length >= count) resolve()
      }),
  }
}

describe('subscriptions over a restart of the server', () => {
  it('deliver each record of one agent and of all exactly once, whether the server stopped or was killed', async () => {
    const port = String(await freePort())
    let server = await startServer({ env: { SERVICE_PORT: port } })
    const client = new ServiceClient({ url: server.url, apiKey: server.rootKey, timing: shortPauses })
    const [one, all] = [collected(), collected()]
    try {
      await client.collection('a').writeBatch([{ n: 1 }, { n: 2 }])
      await client.collection('b').write({ n: 1 })
      const ofOne = client.subscribeAgent('a', one.onEvent, { since: 0 })
      const ofAll = client.subscribeGlobal(all.onEvent, { agents: ['a', 'b'], since: 0 })
      await Promise.all([one.reached(2), all.reached(3)])
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        const before = { one: one.events.length, all: all.events.length }
        await server.halt(signal)
        server = await startServer({ env: { SERVICE_PORT: port }, dataDir: server.dataDir })
        await client.collection('a').writeBatch([{ after: signal }, { after: signal }])
        await client.collection('b').write({ after: signal })
        await Promise.all([one.reached(before.one + 2), all.reached(before.all + 3)])
      }
      ofOne.close()
      ofAll.close()
      expect(one.events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6])
      const seen = all.events.map(({ agent, seq }) => `${agent} ${seq}`).toSorted()
      expect(seen).toEqual(['a 1', 'a 2', 'a 3', 'a 4', 'a 5', 'a 6', 'b 1', 'b 2', 'b 3'])
    } finally {
      await server.stop()
    }
  })

  it('continue in a later subscription from a stored cursor', async () => {
    const server = await startServer()
    const client = new ServiceClient({ url: server.url, apiKey: server.rootKey })
    const [first, second] = [collected(), collected()]
    try {
      await client.collection('kept').writeBatch([{ n: 1 }, { n: 2 }, { n: 3 }])
      const earlier = await new Promise<Subscription>((resolve) => {
        const subscription = client.subscribeAgent('kept', first.onEvent, {
          since: 0,
          // The cursor advances after the callback.
          onCaughtUp: () => queueMicrotask(() => resolve(subscription)),
        })
      })
      earlier.close()
      await client.collection('kept').write({ n: 4 })
      const later = client.subscribeAgent('kept', second.onEvent, { lastEventId: earlier.cursor })
      await second.reached(1)
      later.close()
      expect(first.events.map(({ seq }) => seq)).toEqual([1, 2, 3])
      expect(second.events.map(({ seq }) => seq)).toEqual([4])
    } finally {
      await server.stop()
    }
  })
})

describe('calls', () => {
  it('survive a restart of the server, and a write is written once', async () => {
    const port = String(await freePort())
    let server = await startServer({ env: { SERVICE_PORT: port } })
    // The server is back before the second attempt.
    const pause = async () => {
      server = await startServer({ env: { SERVICE_PORT: port }, dataDir: server.dataDir })
    }
    const timing = { ...systemTiming, pause }
    const client = new ServiceClient({ url: server.url, apiKey: server.rootKey, timing })
    try {
      await client.collection('notes').write({ n: 1 })
      await server.halt()
      expect(await client.collection('notes').write({ n: 2 })).toMatchObject({ seq: 2 })
      expect((await client.agent('notes').head()).record_count).toBe(2)
    } finally {
      await server.stop()
    }
  })

  it('fail with a NetworkError if no server responds, and ping returns false', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    const client = new ServiceClient({ url, timing: shortPauses, timeoutMs: 500 })
    await expect(client.agent().head()).rejects.toBeInstanceOf(NetworkError)
    await expect(client.agent().head()).rejects.toBeInstanceOf(ServiceError)
    expect(await client.ping()).toBe(false)
  })

  it('lose none of a thousand concurrent writes under the default rate limit', async () => {
    const server = await startServer({ env: { SERVICE_RATE_LIMIT_RPS: '100' } })
    try {
      const client = new ServiceClient({ url: server.url, apiKey: server.rootKey })
      const notes = client.collection<{ n: number }>('notes')
      const written = await Promise.all(Array.from({ length: 1_000 }, (_none, n) => notes.write({ n })))
      expect(new Set(written.map(({ seq }) => seq)).size).toBe(1_000)
      expect((await client.agent('notes').head()).record_count).toBe(1_000)
    } finally {
      await server.stop()
    }
  })

  it('lose no write while the server is killed and restarted', async () => {
    const env = { SERVICE_PORT: String(await freePort()) }
    let server = await startServer({ env })
    try {
      const client = new ServiceClient({ url: server.url, apiKey: server.rootKey })
      const notes = client.collection<{ n: number }>('notes')
      const writes = Array.from({ length: 200 }, (_none, n) => notes.write({ n }))
      await Promise.any(writes)
      await server.halt('SIGKILL')
      server = await startServer({ env, dataDir: server.dataDir })
      const written = await Promise.all(writes)
      expect(new Set(written.map(({ seq }) => seq)).size).toBe(200)
      expect((await client.agent('notes').head()).record_count).toBe(200)
    } finally {
      await server.stop()
    }
  })

  it('wait as long as Retry-After says after too many calls', async () => {
    const server = await startServer({ env: { SERVICE_RATE_LIMIT_RPS: '1', SERVICE_RATE_LIMIT_BURST: '1' } })
    try {
      const pauses: number[] = []
      const pause = (ms: number, signal: AbortSignal) => {
        pauses.push(ms)
        return systemTiming.pause(ms, signal)
      }
      const clientBy = (timing: typeof systemTiming) =>
        new ServiceClient({ url: server.url, apiKey: server.rootKey, timing })
      // A client that has seen no answer does not know the limit: another client has just used it up, so this
      // one is refused.
      for (let tries = 0; pauses.length === 0 && tries < 10; tries++) {
        await clientBy(systemTiming).agent().head()
        await clientBy({ ...systemTiming, pause })
          .agent()
          .head()
      }
      expect(Math.max(...pauses)).toBeGreaterThanOrEqual(1_000)
    } finally {
      await server.stop()
    }
  })

  it('are aborted by their AbortSignal, streams too', async () => {
    const server = await startServer()
    const client = new ServiceClient({ url: server.url, apiKey: server.rootKey })
    try {
      const reason = new Error('enough')
      await expect(client.agent().head({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
      const aborter = new AbortController()
      async function* endless() {
        for (let n = 0; ; n++) {
          if (n === 10_000) aborter.abort(reason)
          yield { n }
        }
      }
      const ingest = client.ingestMany('default', endless(), { signal: aborter.signal, upload: 'stream' })
      await expect(ingest).rejects.toBe(reason)
      const streamed = new AbortController()
      const subscription = await new Promise<Subscription>((resolve, onError) => {
        const { signal } = streamed
        const onOpen = () => resolve(opening)
        const opening = client.subscribeGlobal(() => undefined, { signal, onOpen, onError })
      })
      streamed.abort()
      expect(subscription.state).toBe('closed')
      expect(await client.ping()).toBe(true)
    } finally {
      await server.stop()
    }
  })
})

describe('the rate limit that a server announces', () => {
  it('is respected from answers of 200 and 201: no call is refused although there are more calls than the limit allows', async () => {
    const server = await startServer({
      env: { SERVICE_RATE_LIMIT_RPS: '100', SERVICE_RATE_LIMIT_BURST: '100' },
    })
    const statuses: number[] = []
    const counting: typeof fetch = async (...call) => {
      const response = await fetch(...call)
      statuses.push(response.status)
      return response
    }
    const client = new ServiceClient({ url: server.url, apiKey: server.rootKey, fetch: counting })
    try {
      const writes = Array.from({ length: 160 }, (_none, n) => client.collection('paced').write({ n }))
      expect(await Promise.all(writes)).toHaveLength(160)
      expect(statuses.filter((status) => status === 201)).toHaveLength(160)
      expect(statuses.filter((status) => status === 429)).toEqual([])
    } finally {
      await server.stop()
    }
  })
})
