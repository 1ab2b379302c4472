import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ServiceClient, type StreamEvent, type Subscription } from '../../src/client/index.js'
import {
  type Answer,
  type ScriptedServer,
  answerJson,
  answerProblem,
  cutOff,
  startScriptedServer,
} from './scripted-server.js'

let server: ScriptedServer | undefined
let subscription: Subscription | undefined

afterEach(async () => {
  subscription?.close()
  await server?.stop()
})

/** A promise and the function that resolves it. */
function deferred<T>() {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((settle) => (resolve = settle))
  return { promise, resolve }
}

/** Starts a stream and sends lines; the connection stays open unless `then` closes it. */
function stream(lines: string[], then?: (response: ServerResponse) => void): Answer {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    response.write(lines.join('\n'), () => then?.(response))
  }
}

const event = (seq: number) => [`id: c${seq}`, 'event: record', `data: {"seq":${seq},"payload":{}}`, '', '']
const end = (response: ServerResponse) => void response.end()
const cut = (response: ServerResponse) => void response.socket?.destroy()

/** Collects events until the one with seq `last`. */
function collector(last: number) {
  const seqs: number[] = []
  const done = deferred<void>()
  const onEvent = (handled: StreamEvent) => {
    seqs.push(handled.seq)
    if (handled.seq === last) done.resolve()
  }
  return { seqs, onEvent, done: done.promise }
}

async function clientOf(...answers: Answer[]) {
  server = await startScriptedServer(...answers)
  const pausesMs: number[] = []
  const timing = {
    pause: async (ms: number) => void pausesMs.push(ms),
    random: () => 1,
    nowMs: Date.now,
    monotonicMs: Date.now,
  }
  return {
    client: new ServiceClient({ url: server.url, token: 'jwt', timing }),
    received: server.received,
    pausesMs,
  }
}

describe('a subscription', () => {
  it('delivers the events of an agent, and sends the credential', async () => {
    const { client, received } = await clientOf(stream([...event(1), ...event(2)]))
    const { seqs, onEvent, done } = collector(2)
    subscription = client.subscribeAgent('notes', onEvent, { since: '0199c5b8f2a4-0003', filter: 'title' })
    await done
    expect(seqs).toEqual([1, 2])
    expect(received[0]?.url).toBe('/v1/agents/notes/stream?filter=title&since=0199c5b8f2a4-0003')
    expect(received[0]?.headers).toMatchObject({ authorization: 'Bearer jwt', accept: 'text/event-stream' })
    expect(received[0]?.headers['last-event-id']).toBeUndefined()
  })

  it('delivers the events of the named agents', async () => {
    const { client, received } = await clientOf(stream(event(1)))
    const { onEvent, done } = collector(1)
    subscription = client.subscribeGlobal(onEvent, { agents: ['a', 'b'], types: ['sys/*'] })
    await done
    expect(received[0]?.url).toBe('/v1/stream?agents=a%2Cb&types=sys%2F*')
  })

  it("reconnects from the last cursor when the stream ends or is interrupted, after the server's retry time", async () => {
    const { client, received, pausesMs } = await clientOf(
      stream(['\uFEFFretry: 40', '', ...event(1)], end),
      stream(['retry: 99999999999', '', ...event(2)], cut),
      stream(event(3)),
    )
    const { seqs, onEvent, done } = collector(3)
    const onOpen = vi.fn()
    const onReconnect = vi.fn()
    subscription = client.subscribeAgent('notes', onEvent, { onOpen, onReconnect })
    await done
    expect(seqs).toEqual([1, 2, 3])
    expect(received.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'c1', 'c2'])
    expect(pausesMs).toEqual([40, 40])
    expect(onOpen).toHaveBeenCalledTimes(3)
    expect(onReconnect).toHaveBeenCalledTimes(2)
  })

  it('reconnects from a cursor of a block without an event', async () => {
    const { client, received } = await clientOf(
      stream(['id: c0', 'event: caught_up', 'data: {}', '', ''], end),
      stream(event(1)),
    )
    const { onEvent, done } = collector(1)
    const onCaughtUp = vi.fn()
    subscription = client.subscribeAgent('notes', onEvent, { onCaughtUp })
    await done
    expect(onCaughtUp).toHaveBeenCalledTimes(1)
    expect(received[1]?.headers['last-event-id']).toBe('c0')
  })

  it('waits longer with each consecutive failure, and as long as Retry-After says', async () => {
    const { client, pausesMs } = await clientOf(
      cutOff,
      answerProblem(503, 'unavailable'),
      answerProblem(429, 'rate_limited', { 'retry-after': '60' }),
      stream(event(1)),
    )
    const { onEvent, done } = collector(1)
    subscription = client.subscribeAgent('notes', onEvent)
    await done
    expect(pausesMs).toEqual([2_000, 4_000, 60_000])
  })

  it.each([400, 401, 403, 404])('ends with onError after %i', async (status) => {
    const { client, received } = await clientOf(answerProblem(status, 'some_code'))
    const ended = deferred<unknown>()
    subscription = client.subscribeAgent('notes', () => undefined, { onError: ended.resolve })
    expect(await ended.promise).toMatchObject({ status, code: 'some_code' })
    expect(subscription.state).toBe('closed')
    expect(received).toHaveLength(1)
  })

  it('ends with onError when a later connection is refused', async () => {
    const { client } = await clientOf(stream(event(1), end), answerProblem(401, 'token_expired'))
    const ended = deferred<unknown>()
    subscription = client.subscribeAgent('notes', () => undefined, { onError: ended.resolve })
    expect(await ended.promise).toMatchObject({ code: 'token_expired' })
    expect(subscription.cursor).toBe('c1')
  })

  it('ends with onError when the answer is not an event stream', async () => {
    const { client } = await clientOf(answerJson({}))
    const ended = deferred<unknown>()
    subscription = client.subscribeAgent('notes', () => undefined, { onError: ended.resolve })
    expect(await ended.promise).toMatchObject({ code: 'invalid_response' })
  })

  it('ends with onError when an event has no end', async () => {
    const { client } = await clientOf(stream([`data: ${'x'.repeat(16_777_216)}`, 'data: x']))
    const ended = deferred<unknown>()
    subscription = client.subscribeAgent('notes', () => undefined, { onError: ended.resolve })
    expect(await ended.promise).toBeInstanceOf(RangeError)
  })

  it('ends with onError when a handler throws, without advancing the cursor past its event', async () => {
    const { client, received } = await clientOf(stream([...event(1), ...event(2)]))
    const ended = deferred<unknown>()
    const onEvent = async (handled: StreamEvent) => {
      if (handled.seq === 2) throw new Error('The screen was closed')
    }
    subscription = client.subscribeAgent('notes', onEvent, { onError: ended.resolve })
    expect(await ended.promise).toEqual(new Error('The screen was closed'))
    expect(subscription.cursor).toBe('c1')
    expect(received).toHaveLength(1)
  })

  it('handles one event at a time', async () => {
    const { client } = await clientOf(stream([...event(1), ...event(2)]))
    const steps: string[] = []
    const done = deferred<void>()
    const onEvent = async (handled: StreamEvent) => {
      steps.push(`begin ${handled.seq}`)
      await new Promise(setImmediate)
      steps.push(`end ${handled.seq}`)
      if (handled.seq === 2) done.resolve()
    }
    subscription = client.subscribeAgent('notes', onEvent)
    await done.promise
    expect(steps).toEqual(['begin 1', 'end 1', 'begin 2', 'end 2'])
  })

  it('reconnects when a connection sends no data', async () => {
    const { client, received } = await clientOf(stream(event(1)), stream(event(2)))
    const { seqs, onEvent, done } = collector(2)
    const lost: unknown[] = []
    const onReconnect = (cause: Error) => void lost.push(cause)
    subscription = client.subscribeAgent('notes', onEvent, { idleTimeoutMs: 30, onReconnect })
    await done
    expect(seqs).toEqual([1, 2])
    expect(received[1]?.headers['last-event-id']).toBe('c1')
    expect(lost[0]).toMatchObject({ code: 'timeout' })
  })

  it('continues from a stored cursor', async () => {
    const { client, received } = await clientOf(stream(event(8)))
    const { onEvent, done } = collector(8)
    subscription = client.subscribeAgent('notes', onEvent, { lastEventId: 'c7' })
    await done
    expect(received[0]?.headers['last-event-id']).toBe('c7')
  })

  it.each(['close', 'signal'])('calls no callback after it was closed by %s', async (by) => {
    const closedByServer = deferred<void>()
    const answer: Answer = (request, response) => {
      response.on('close', () => closedByServer.resolve())
      return stream([...event(1), ...event(2)])(request, response)
    }
    const { client, received } = await clientOf(answer)
    const controller = new AbortController()
    const seqs: number[] = []
    const onEvent = (handled: StreamEvent) => {
      seqs.push(handled.seq)
      if (by === 'close') subscription?.close()
      else controller.abort()
    }
    const onError = vi.fn()
    subscription = client.subscribeAgent('notes', onEvent, { signal: controller.signal, onError })
    await closedByServer.promise
    expect(seqs).toEqual([1])
    expect(subscription.state).toBe('closed')
    expect(onError).not.toHaveBeenCalled()
    expect(received).toHaveLength(1)
  })

  it('does not connect if its signal is aborted already', async () => {
    const { client, received } = await clientOf(answerJson({}))
    subscription = client.subscribeGlobal(() => undefined, { signal: AbortSignal.abort() })
    expect(subscription.state).toBe('closed')
    await client.ping()
    expect(received.map(({ url }) => url)).toEqual(['/healthz'])
  })
})
