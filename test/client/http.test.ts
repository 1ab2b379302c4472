import { afterEach, describe, expect, it } from 'vitest'
import { NetworkError, NotFoundError, ServiceClient, ServiceError } from '../../src/client/index.js'
import {
  type Answer,
  type ScriptedServer,
  answerJson,
  answerProblem,
  cutOff,
  startScriptedServer,
} from './scripted-server.js'
import { startClosingServer } from '../support/http/closing-server.js'

let server: ScriptedServer | undefined
let pausesMs: number[] = []
let warnings: string[] = []

afterEach(async () => {
  await server?.stop()
  server = undefined
})

/** A client whose pauses end immediately and are recorded. */
async function clientOf(answers: Answer[], options: { timeoutMs?: number } = {}) {
  server = await startScriptedServer(...answers)
  pausesMs = []
  warnings = []
  let clockMs = 1_000_000
  const pause = async (delayMs: number) => {
    pausesMs.push(delayMs)
    clockMs += delayMs
  }
  const timing = { pause, random: () => 0.5, nowMs: () => clockMs, monotonicMs: () => clockMs }
  const onWarning = (warning: string) => void warnings.push(warning)
  const client = new ServiceClient({ url: `${server.url}/`, apiKey: 'key-1', timing, onWarning, ...options })
  return { client, notes: client.agent('notes'), received: server.received }
}

const head = { agent_id: 'notes', chain_head: 'ab', seq: 1 }
const written = { record_id: 'ab', id: 'ab', hash: 'sha256:ab' }

const neverAnswers: Answer = () => undefined

const cutMidAnswer: Answer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
  response.write('{"agent', () => response.socket?.destroy())
}

describe('the transport', () => {
  it('sends the credential and returns the answer', async () => {
    const { notes, received } = await clientOf([answerJson(head)])
    expect(await notes.head()).toMatchObject(head)
    expect(received).toHaveLength(1)
    expect(received[0]?.url).toBe('/v1/agents/notes/head')
    expect(received[0]?.headers.authorization).toBe('Bearer key-1')
  })

  it('calls getToken before every attempt', async () => {
    server = await startScriptedServer(answerProblem(503, 'overloaded'), answerJson(head))
    const tokens = ['one', 'two']
    const timing = { pause: async () => undefined, random: () => 0, nowMs: Date.now, monotonicMs: Date.now }
    const client = new ServiceClient({ url: server.url, getToken: () => tokens.shift(), timing })
    await client.agent('notes').head()
    expect(server.received.map((request) => request.headers.authorization)).toEqual([
      'Bearer one',
      'Bearer two',
    ])
  })

  it('repeats a read whose connection is lost before or during the response', async () => {
    const { notes, received } = await clientOf([cutOff, cutMidAnswer, answerJson(head)])
    expect(await notes.head()).toMatchObject(head)
    expect(received).toHaveLength(3)
    expect(pausesMs).toEqual([75, 150])
  })

  it('repeats a write with the same idempotency key and the same body', async () => {
    const { notes, received } = await clientOf([
      cutOff,
      answerProblem(503, 'outcome_unknown'),
      answerJson(written, 201),
    ])
    expect(await notes.write({ a: 1 })).toMatchObject(written)
    const keys = new Set(received.map((request) => request.headers['idempotency-key']))
    expect(keys.size).toBe(1)
    expect(String([...keys][0])).toMatch(/^[0-9a-f]{32}$/)
    expect(new Set(received.map((request) => request.body))).toEqual(new Set(['{"data":{"a":1}}']))
  })

  it('repeats reads and writes that were sent on a connection that the service has closed', async () => {
    const closing = await startClosingServer()
    let failed = 0
    const timing = {
      pause: async () => void failed++,
      random: () => 0,
      nowMs: Date.now,
      monotonicMs: () => performance.now(),
    }
    const client = new ServiceClient({ url: closing.url, timing })
    try {
      for (const call of [() => client.agent('notes').head(), () => client.agent('notes').write({ a: 1 })]) {
        await call()
        await closing.closeUnseen()
        expect(await call()).toMatchObject({})
      }
      expect(failed).toBe(2)
    } finally {
      await closing.stop()
    }
  })

  it('uses a new idempotency key for each call, or the given one', async () => {
    const { notes, received } = await clientOf([answerJson(written, 201)])
    await notes.write({ a: 1 })
    await notes.write({ a: 1 })
    await notes.write({ a: 1 }, { idempotencyKey: 'mine' })
    const keys = received.map((request) => request.headers['idempotency-key'])
    expect(new Set(keys).size).toBe(3)
    expect(keys[2]).toBe('mine')
  })

  // Regression: the keys `René` and `Renè` were sent, and both arrived as `Ren`.
  it.each(['', ' ', ' a', 'a ', 'a\tb', 'a\nb', 'Ren\u00e9', '\u8ba2\u53551001', 'a\u007f'])(
    'throws a TypeError for the key %j, and sends nothing',
    async (idempotencyKey) => {
      const { notes, received } = await clientOf([answerJson(written, 201)])
      const write = notes.write({ a: 1 }, { idempotencyKey })
      await expect(write).rejects.toThrow(
        new TypeError('Expected visible ASCII characters in idempotency-key, with blanks only between them'),
      )
      await expect(notes.write({ a: 1 }, { ifMatch: 'Ren\u00e9' })).rejects.toThrow(TypeError)
      expect(received).toEqual([])
      await notes.write({ a: 1 }, { idempotencyKey: encodeURIComponent(`a${idempotencyKey}`) })
      await notes.write({ a: 1 }, { idempotencyKey: '~a "b" !' })
      expect(received).toHaveLength(2)
    },
  )

  it('never repeats a streamed upload', async () => {
    const { client, received } = await clientOf([answerProblem(503, 'overloaded')])
    const upload = client.ingestMany('notes', [{ a: 1 }], { upload: 'stream' })
    await expect(upload).rejects.toMatchObject({ code: 'overloaded' })
    expect(received).toHaveLength(1)
    expect(received[0]?.body).toBe('{"a":1}\n')
  })

  it('waits as long as Retry-After says', async () => {
    const { notes } = await clientOf([
      answerProblem(429, 'rate_limited', { 'retry-after': '2' }),
      answerJson(head),
    ])
    await notes.head()
    expect(pausesMs).toEqual([2_000])
  })

  it('rejects immediately when Retry-After is longer than the call may take', async () => {
    const { notes, received } = await clientOf([answerProblem(429, 'rate_limited', { 'retry-after': '900' })])
    await expect(notes.head()).rejects.toMatchObject({ status: 429, retryAfterMs: 900_000 })
    expect(received).toHaveLength(1)
  })

  it('retries with growing pauses until the call times out', async () => {
    const { notes, received } = await clientOf([answerProblem(503, 'overloaded')])
    await expect(notes.head()).rejects.toMatchObject({ code: 'overloaded' })
    expect(pausesMs.slice(0, 8)).toEqual([75, 150, 300, 600, 1_200, 2_400, 3_750, 3_750])
    const waitedMs = pausesMs.reduce((sum, pauseMs) => sum + pauseMs, 0)
    expect(waitedMs).toBeGreaterThan(29_900)
    expect(waitedMs).toBeLessThan(30_000)
    expect(received).toHaveLength(pausesMs.length + 1)
  })

  it('stops retrying after five minutes if the call has no time limit', async () => {
    const { notes } = await clientOf([answerProblem(503, 'overloaded')], { timeoutMs: Infinity })
    await expect(notes.head()).rejects.toMatchObject({ code: 'overloaded' })
    const waitedMs = pausesMs.reduce((sum, pauseMs) => sum + pauseMs, 0)
    expect(waitedMs).toBeGreaterThan(295_000)
    expect(waitedMs).toBeLessThan(300_000)
  })

  it('stays within the rate that the service announces, and warns of it once', async () => {
    const limited = (remaining: number) =>
      answerJson(head, 200, {
        ratelimit: `"global";r=${remaining}`,
        'ratelimit-policy': '"global";q=4;w=2',
      })
    const { client, notes, received } = await clientOf([
      limited(3),
      limited(2),
      limited(1),
      limited(0),
      limited(0),
    ])
    for (let calls = 0; calls < 6; calls++) await notes.head()
    // Two per second: the fourth answer announces that none is left.
    expect(pausesMs).toEqual([500, 500])
    expect(received).toHaveLength(6)
    // The client of an organism has another transport, but the same warning.
    for (let calls = 0; calls < 3; calls++) await client.organism('acme').agent('acme::notes').head()
    expect(pausesMs).toHaveLength(4)
    expect(warnings).toEqual([
      expect.stringMatching(/^Delaying requests, because the server accepts 2 requests per second from one /),
    ])
  })

  it('sends 32 concurrent requests before it knows whether there is a limit, and any number if there is none', async () => {
    const { notes, received } = await clientOf([answerJson(head)])
    await Promise.all(Array.from({ length: 200 }, () => notes.head()))
    expect(received).toHaveLength(200)
    expect(pausesMs).toEqual([])
  })

  it.each([400, 401, 403, 409, 412, 413, 422, 500, 507])('does not repeat after %i', async (status) => {
    const { notes, received } = await clientOf([answerProblem(status, 'some_code')])
    await expect(notes.write({ a: 1 })).rejects.toMatchObject({ status, code: 'some_code' })
    expect(received).toHaveLength(1)
  })
})

describe('the errors of the client', () => {
  it('contain status, code, message, request id and the whole problem', async () => {
    const { notes } = await clientOf([answerProblem(409, 'agent_exists')])
    const error = await notes.write({}).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ServiceError)
    expect(error).toMatchObject({
      status: 409,
      code: 'agent_exists',
      message: 'Detail of agent_exists',
      requestId: 'req-1',
      problem: { detail: 'Detail of agent_exists' },
    })
  })

  it('are a NotFoundError for 404', async () => {
    const { notes } = await clientOf([answerProblem(404, 'record_not_found')])
    const error = await notes.get('ab').catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(NotFoundError)
    expect(error).toBeInstanceOf(ServiceError)
  })

  it('contain the status of an error page that is not JSON', async () => {
    const page: Answer = (_request, response) => void response.writeHead(403).end('<h1>No</h1>')
    const { notes } = await clientOf([page])
    await expect(notes.head()).rejects.toMatchObject({ status: 403, code: 'http_403', problem: {} })
  })

  it('report an answer that is not JSON', async () => {
    const page: Answer = (_request, response) =>
      void response.writeHead(200, { 'x-request-id': 'r' }).end('<h1>')
    const { notes } = await clientOf([page])
    await expect(notes.head()).rejects.toMatchObject({ code: 'invalid_response', requestId: 'r' })
  })

  it('are a NetworkError when the service cannot be reached', async () => {
    const { notes } = await clientOf([cutOff])
    const error = await notes.head().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(NetworkError)
    expect(error).toMatchObject({ status: 0, code: 'network_error' })
  })

  it('are a NetworkError with the code timeout after the time limit', async () => {
    const { notes, received } = await clientOf([neverAnswers], { timeoutMs: 20 })
    const error = await notes.head().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(NetworkError)
    expect(error).toMatchObject({ code: 'timeout' })
    // Not repeated. On a busy machine, the time may end before the first request arrives.
    expect(received.length).toBeLessThan(2)
  })

  it('are the reason of the signal when the caller aborts', async () => {
    const controller = new AbortController()
    const { notes } = await clientOf([() => controller.abort(new Error('Enough'))])
    await expect(notes.head({ signal: controller.signal })).rejects.toThrow('Enough')
  })

  it('do not wrap an error of getToken', async () => {
    server = await startScriptedServer(answerJson(head))
    const getToken = () => Promise.reject(new TypeError('No session'))
    const client = new ServiceClient({ url: server.url, getToken })
    await expect(client.agent('notes').head()).rejects.toThrow('No session')
    expect(server.received).toEqual([])
  })
})

describe('ping', () => {
  it('is true when the service responds', async () => {
    const { client, received } = await clientOf([answerJson({ status: 'ok' })])
    expect(await client.ping()).toBe(true)
    expect(received[0]?.url).toBe('/healthz')
  })

  it('is false and does not throw when the service fails or cannot be reached', async () => {
    const { client } = await clientOf([answerProblem(500, 'internal_error'), cutOff])
    expect(await client.ping()).toBe(false)
    expect(await client.ping()).toBe(false)
    expect(await new ServiceClient({ url: 'not an address' }).ping()).toBe(false)
  })
})
