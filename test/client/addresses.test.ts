import { afterEach, describe, expect, it } from 'vitest'
import { systemTiming } from '../../src/client/timing.js'
import { ServiceClient, type StreamEvent, type Subscription } from '../../src/client/index.js'
import { freePort } from '../support/server/free-port.js'
import {
  type Answer,
  type ScriptedServer,
  answerJson,
  answerProblem,
  cutOff,
  startScriptedServer,
} from './scripted-server.js'

let servers: ScriptedServer[] = []
let subscription: Subscription | undefined

afterEach(async () => {
  subscription?.close()
  await Promise.all(servers.map((server) => server.stop()))
  servers = []
})

/** A client of several scripted nodes. Pauses end immediately and are recorded. */
async function clientOf(scripts: Answer[][], options: { timeoutMs?: number } = {}) {
  const nodes = await Promise.all(scripts.map((answers) => startScriptedServer(...answers)))
  servers.push(...nodes)
  const pausesMs: number[] = []
  let clockMs = 1_000_000
  const pause = async (delayMs: number) => {
    pausesMs.push(delayMs)
    clockMs += delayMs
  }
  const timing = { pause, random: () => 0.5, nowMs: () => clockMs, monotonicMs: () => clockMs }
  const url = nodes.map((server) => server.url)
  const client = new ServiceClient({ url, apiKey: 'key-1', timing, ...options })
  return { client, notes: client.agent('notes'), pausesMs, requestCounts: () => nodes.map(countOf) }
}

const countOf = ({ received }: ScriptedServer) => received.length

const head = answerJson({ agent_id: 'notes', chain_head: 'ab', seq: 1 })
const written = answerJson({ record_id: 'ab', id: 'ab', hash: 'sha256:ab' }, 201)
const standbyAnswer = answerProblem(503, 'unavailable', { 'retry-after': '1' })
const neverAnswers: Answer = () => undefined

describe('a client with several addresses', () => {
  it('switches to the next address immediately if a node is a standby, and stays with the one that served', async () => {
    const { notes, pausesMs, requestCounts } = await clientOf([[standbyAnswer], [head]])
    for (let calls = 0; calls < 3; calls++) await notes.head()
    expect(pausesMs).toEqual([])
    expect(requestCounts()).toEqual([1, 3])
  })

  it('repeats a write at the next address with the same idempotency key if its outcome is unknown', async () => {
    const { notes, pausesMs, requestCounts } = await clientOf([
      [cutOff],
      [answerProblem(503, 'outcome_unknown')],
      [written],
    ])
    await notes.write({ a: 1 })
    expect([requestCounts(), pausesMs]).toEqual([[1, 1, 1], []])
    const sent = servers.flatMap(({ received }) => received)
    expect(new Set(sent.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    expect(new Set(sent.map(({ body }) => body))).toEqual(new Set(['{"data":{"a":1}}']))
    expect(new Set(sent.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer key-1']))
  })

  it('retries each address with its own back-off while none is available', async () => {
    const { notes, pausesMs, requestCounts } = await clientOf([[answerProblem(503, 'unavailable')], [cutOff]])
    await expect(notes.head()).rejects.toMatchObject({ status: expect.any(Number) })
    // Both addresses are due at the same time, so there is one pause for two attempts.
    expect(pausesMs.slice(0, 8)).toEqual([75, 150, 300, 600, 1_200, 2_400, 3_750, 3_750])
    const waitedMs = pausesMs.reduce((sum, pauseMs) => sum + pauseMs, 0)
    expect(waitedMs).toBeLessThan(30_000)
    expect(requestCounts()).toEqual([pausesMs.length + 1, pausesMs.length + 1])
  })

  it('respects the Retry-After of each address, with jitter, while it tries others', async () => {
    const { notes, pausesMs, requestCounts } = await clientOf([[standbyAnswer, head], [cutOff]])
    await notes.head()
    // The unavailable node is tried after 75, 225, 525 and 1,125 ms, the standby after 1,250 ms.
    expect(pausesMs).toEqual([75, 150, 300, 600, 125])
    expect(requestCounts()).toEqual([2, 5])
  })

  it('stays with a node that is busy or limits its rate', async () => {
    const { notes, pausesMs, requestCounts } = await clientOf([
      [answerProblem(429, 'rate_limited', { 'retry-after': '2' }), answerProblem(503, 'overloaded'), head],
      [head],
    ])
    await notes.head()
    expect(pausesMs).toEqual([2_000, 150])
    expect(requestCounts()).toEqual([3, 0])
  })

  it('switches the address only once for concurrent calls that failed', async () => {
    const { notes, requestCounts } = await clientOf([[cutOff], [head], [head]])
    await Promise.all(Array.from({ length: 20 }, () => notes.head()))
    expect(requestCounts()).toEqual([20, 20, 0])
  })

  it('tries the next address within its time limit if a node accepts a request and does not respond', async () => {
    servers = [await startScriptedServer(neverAnswers), await startScriptedServer(written)]
    const client = new ServiceClient({ url: servers.map(({ url }) => url), timeoutMs: 2_000 })
    await client.agent('notes').write({ a: 1 })
    await client.agent('notes').write({ a: 2 })
    expect(servers.map(countOf)).toEqual([1, 2])
  })

  it('does not repeat a streamed upload, but sends the next call to the next address', async () => {
    const summary = answerJson({ accepted: 1, rejected: 0, errors: [] })
    const { client, requestCounts } = await clientOf([[standbyAnswer], [summary]])
    const upload = () => client.ingestMany('notes', [{ a: 1 }], { upload: 'stream' })
    await expect(upload()).rejects.toMatchObject({ code: 'unavailable' })
    expect(requestCounts()).toEqual([1, 0])
    await upload()
    expect(requestCounts()).toEqual([1, 1])
  })

  it('uploads many records in chunks, which can be repeated at the next address', async () => {
    const summary = answerJson({ accepted: 2, rejected: 0, errors: [] })
    const { client, requestCounts } = await clientOf([[cutOff], [summary]])
    expect(await client.ingestMany('notes', [{ a: 1 }, { a: 2 }])).toMatchObject({ accepted: 2 })
    expect(requestCounts()).toEqual([1, 1])
    expect(servers[1]?.received[0]?.body).toBe('{"a":1}\n{"a":2}\n')
  })

  it('tries the next address for a call that is not repeatable only if it was not executed', async () => {
    const answer = answerJson({ token: null, refresh_token: null, expires_in: null })
    const login = { email: 'a@b.example', password: 'long enough' }
    const refused = await clientOf([[standbyAnswer], [answer]])
    await refused.client.auth.login(login)
    expect([refused.requestCounts(), refused.pausesMs]).toEqual([[1, 1], []])
    const cut = await clientOf([[cutOff], [answer]])
    await expect(cut.client.auth.login(login)).rejects.toMatchObject({ code: 'network_error' })
    expect(cut.requestCounts()).toEqual([1, 0])
    await cut.client.auth.login(login)
    expect(cut.requestCounts()).toEqual([1, 1])
    const onlyStandbys = await clientOf([[standbyAnswer], [standbyAnswer]])
    await expect(onlyStandbys.client.auth.login(login)).rejects.toMatchObject({ code: 'unavailable' })
    expect([onlyStandbys.requestCounts(), onlyStandbys.pausesMs]).toEqual([[1, 1], []])
  })

  it('tries the next address for such a call if no connection was established', async () => {
    servers = [await startScriptedServer(answerJson({ token: null, refresh_token: null, expires_in: null }))]
    const url = [`http://127.0.0.1:${await freePort()}`, ...servers.map((server) => server.url)]
    const client = new ServiceClient({ url })
    await client.auth.login({ email: 'a@b.example', password: 'long enough' })
    expect(servers.map(countOf)).toEqual([1])
  })

  it('makes the clients of organisms start at the address that served', async () => {
    const { client, notes, requestCounts } = await clientOf([[standbyAnswer], [head]])
    await notes.head()
    await client.organism('0'.repeat(32)).agent('notes').head()
    expect(requestCounts()).toEqual([1, 2])
  })

  it('pings each address once', async () => {
    const some = await clientOf([[cutOff], [answerJson({})]])
    expect(await some.client.ping()).toBe(true)
    const none = await clientOf([[cutOff], [standbyAnswer]])
    expect(await none.client.ping()).toBe(false)
    expect([none.requestCounts(), none.pausesMs]).toEqual([[1, 1], []])
  })

  it('reconnects a stream at the next address, from the last event', async () => {
    const event = (seq: number) => `id: c${seq}\nevent: record\ndata: {"seq":${seq},"payload":{}}\n\n`
    const stream =
      (text: string, isCut = false): Answer =>
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(text, () => isCut && response.socket?.destroy())
      }
    const { client } = await clientOf([
      [stream(event(1) + event(2), true), standbyAnswer],
      [stream(event(3))],
    ])
    const seqs: number[] = []
    await new Promise<void>((resolve) => {
      subscription = client.subscribeAgent('notes', ({ seq }: StreamEvent) => {
        seqs.push(seq)
        if (seq === 3) resolve()
      })
    })
    expect(seqs).toEqual([1, 2, 3])
    expect(servers[1]?.received[0]?.headers['last-event-id']).toBe('c2')
  })

  it('leaves an address whose stream sends no data', async () => {
    const silent: Answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n')
    }
    servers = [await startScriptedServer(silent), await startScriptedServer(silent)]
    const timing = { ...systemTiming, pause: async () => undefined }
    const client = new ServiceClient({ url: servers.map(({ url }) => url), timing })
    await new Promise<void>((resolve) => {
      let opened = 0
      const onOpen = () => (opened += 1) === 2 && resolve()
      subscription = client.subscribeGlobal(() => undefined, { idleTimeoutMs: 50, onOpen })
    })
    expect(servers.map(countOf)).toEqual([1, 1])
  })
})

describe('a list of addresses', () => {
  const clientAt = (url: string | readonly string[]) => () => new ServiceClient({ url })
  const [one, other] = ['https://one.example', 'https://other.example/records/']

  it.each([
    { url: [], message: 'Expected at least one address of the service' },
    { url: [one, `${one}:443/`], message: 'Expected different addresses, but 1 and 2 are the same' },
    { url: [one, 'http://other.example'], message: 'Expected addresses that are all https or all http' },
    { url: [one, 'other.example'], message: /^Expected address 2 to be an http or https URL/ },
    { url: ['ftp://one.example', other], message: /^Expected address 1 / },
    { url: [one, `${other}?key=secret`], message: /^(?!.*secret)Expected address 2 / },
    { url: ['https://user:secret@one.example', other], message: /^(?!.*secret)Expected address 1 / },
    { url: Array.from({ length: 17 }, (_none, n) => `https://${n}.example`), message: 'Expected at most 16' },
  ])('is refused if it is invalid: $url', ({ url, message }) => {
    expect(clientAt(url)).toThrow(TypeError)
    expect(clientAt(url)).toThrow(message)
  })

  it('may contain different paths, and is copied', async () => {
    const urls: string[] = []
    const seen: typeof fetch = async (input) => {
      urls.push(String(input))
      return urls.length === 1 ? new Response('', { status: 502 }) : Response.json({})
    }
    const list = [one, other]
    const client = new ServiceClient({ url: list, fetch: seen })
    list.length = 0
    await client.whoAmI()
    expect(urls).toEqual(['https://one.example/v1/whoami', 'https://other.example/records/v1/whoami'])
  })

  it('may contain one address, which is retried as a single address is', async () => {
    const { notes, pausesMs } = await clientOf([[standbyAnswer, cutOff, head]])
    await notes.head()
    expect(pausesMs).toEqual([1_000, 150])
  })
})
