import { afterEach, describe, expect, it } from 'vitest'
import { systemTiming } from '../../src/client/backoff.js'
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

/** A client of several nodes, each with its script; its waits end at once and are noted. */
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
  return { client, notes: client.agent('notes'), pausesMs, asked: () => nodes.map(countOf) }
}

const countOf = ({ received }: ScriptedServer) => received.length

const head = answerJson({ agent_id: 'notes', chain_head: 'ab', seq: 1 })
const written = answerJson({ record_id: 'ab', id: 'ab', hash: 'sha256:ab' }, 201)
const standsBy = answerProblem(503, 'unavailable', { 'retry-after': '1' })
const neverAnswers: Answer = () => undefined

describe('a client with several addresses', () => {
  it('goes on at once where a node stands by, and stays with the one that answered', async () => {
    const { notes, pausesMs, asked } = await clientOf([[standsBy], [head]])
    for (let calls = 0; calls < 3; calls++) await notes.head()
    expect(pausesMs).toEqual([])
    expect(asked()).toEqual([1, 3])
  })

  it('sends a write on under the same idempotency key where its outcome is not known', async () => {
    const { notes, pausesMs, asked } = await clientOf([
      [cutOff],
      [answerProblem(503, 'outcome_unknown')],
      [written],
    ])
    await notes.write({ a: 1 })
    expect([asked(), pausesMs]).toEqual([[1, 1, 1], []])
    const sent = servers.flatMap(({ received }) => received)
    expect(new Set(sent.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    expect(new Set(sent.map(({ body }) => body))).toEqual(new Set(['{"data":{"a":1}}']))
    expect(new Set(sent.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer key-1']))
  })

  it('asks each address at the pace of one that is alone while all are away', async () => {
    const { notes, pausesMs, asked } = await clientOf([[answerProblem(503, 'unavailable')], [cutOff]])
    await expect(notes.head()).rejects.toMatchObject({ status: expect.any(Number) })
    // Both are due at one moment, so that there is a wait for every two tries.
    expect(pausesMs.slice(0, 8)).toEqual([75, 150, 300, 600, 1_200, 2_400, 3_750, 3_750])
    const waitedMs = pausesMs.reduce((sum, one) => sum + one, 0)
    expect(waitedMs).toBeLessThan(30_000)
    expect(asked()).toEqual([pausesMs.length + 1, pausesMs.length + 1])
  })

  it('waits for an address as long as that one asked, and a part of it more, while it asks others', async () => {
    const { notes, pausesMs, asked } = await clientOf([[standsBy, head], [cutOff]])
    await notes.head()
    // The one that was cut off is tried after 75, 225, 525 and 1,125 ms; the one that stands by after 1,250.
    expect(pausesMs).toEqual([75, 150, 300, 600, 125])
    expect(asked()).toEqual([2, 5])
  })

  it('stays with a node that is busy or limits its rate', async () => {
    const { notes, pausesMs, asked } = await clientOf([
      [answerProblem(429, 'rate_limited', { 'retry-after': '2' }), answerProblem(503, 'overloaded'), head],
      [head],
    ])
    await notes.head()
    expect(pausesMs).toEqual([2_000, 150])
    expect(asked()).toEqual([3, 0])
  })

  it('goes on once for all calls that were under way together', async () => {
    const { notes, asked } = await clientOf([[cutOff], [head], [head]])
    await Promise.all(Array.from({ length: 20 }, () => notes.head()))
    expect(asked()).toEqual([20, 20, 0])
  })

  it('goes on where a node takes a request and says nothing, and still has the time for it', async () => {
    servers = [await startScriptedServer(neverAnswers), await startScriptedServer(written)]
    const client = new ServiceClient({ url: servers.map(({ url }) => url), timeoutMs: 2_000 })
    await client.agent('notes').write({ a: 1 })
    await client.agent('notes').write({ a: 2 })
    expect(servers.map(countOf)).toEqual([1, 2])
  })

  it('never sends an upload twice that can be read once, and has the next call go elsewhere', async () => {
    const summary = answerJson({ accepted: 1, rejected: 0, errors: [] })
    const { client, asked } = await clientOf([[standsBy], [summary]])
    const upload = () => client.ingestMany('notes', [{ a: 1 }], { upload: 'stream' })
    await expect(upload()).rejects.toMatchObject({ code: 'unavailable' })
    expect(asked()).toEqual([1, 0])
    await upload()
    expect(asked()).toEqual([1, 1])
  })

  it('uploads many records by chunks, which can be sent on', async () => {
    const summary = answerJson({ accepted: 2, rejected: 0, errors: [] })
    const { client, asked } = await clientOf([[cutOff], [summary]])
    expect(await client.ingestMany('notes', [{ a: 1 }, { a: 2 }])).toMatchObject({ accepted: 2 })
    expect(asked()).toEqual([1, 1])
    expect(servers[1]?.received[0]?.body).toBe('{"a":1}\n{"a":2}\n')
  })

  it('sends a call that must not be repeated on only where nothing was done', async () => {
    const answer = answerJson({ token: null, refresh_token: null, expires_in: null })
    const login = { email: 'a@b.example', password: 'long enough' }
    const refused = await clientOf([[standsBy], [answer]])
    await refused.client.auth.login(login)
    expect([refused.asked(), refused.pausesMs]).toEqual([[1, 1], []])
    const cut = await clientOf([[cutOff], [answer]])
    await expect(cut.client.auth.login(login)).rejects.toMatchObject({ code: 'network_error' })
    expect(cut.asked()).toEqual([1, 0])
    await cut.client.auth.login(login)
    expect(cut.asked()).toEqual([1, 1])
    const allStandBy = await clientOf([[standsBy], [standsBy]])
    await expect(allStandBy.client.auth.login(login)).rejects.toMatchObject({ code: 'unavailable' })
    expect([allStandBy.asked(), allStandBy.pausesMs]).toEqual([[1, 1], []])
  })

  it('sends such a call on where no connection came about', async () => {
    servers = [await startScriptedServer(answerJson({ token: null, refresh_token: null, expires_in: null }))]
    const url = [`http://127.0.0.1:${await freePort()}`, ...servers.map((server) => server.url)]
    const client = new ServiceClient({ url })
    await client.auth.login({ email: 'a@b.example', password: 'long enough' })
    expect(servers.map(countOf)).toEqual([1])
  })

  it('has the clients of organisms begin at the address that answered', async () => {
    const { client, notes, asked } = await clientOf([[standsBy], [head]])
    await notes.head()
    await client.organism('0'.repeat(32)).agent('notes').head()
    expect(asked()).toEqual([1, 2])
  })

  it('pings each once', async () => {
    const some = await clientOf([[cutOff], [answerJson({})]])
    expect(await some.client.ping()).toBe(true)
    const none = await clientOf([[cutOff], [standsBy]])
    expect(await none.client.ping()).toBe(false)
    expect([none.asked(), none.pausesMs]).toEqual([[1, 1], []])
  })

  it('reconnects a stream at the next address, from the last event', async () => {
    const event = (seq: number) => `id: c${seq}\nevent: record\ndata: {"seq":${seq},"payload":{}}\n\n`
    const stream =
      (text: string, isCut = false): Answer =>
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(text, () => isCut && response.socket?.destroy())
      }
    const { client } = await clientOf([[stream(event(1) + event(2), true), standsBy], [stream(event(3))]])
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

  it('leaves an address whose stream has fallen silent', async () => {
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
  const made = (url: string | readonly string[]) => () => new ServiceClient({ url })
  const [one, other] = ['https://one.example', 'https://other.example/records/']

  it.each([
    { url: [], says: 'Expected an address of the service' },
    { url: [one, `${one}:443/`], says: 'Expected another address at place 2, got that of place 1' },
    { url: [one, 'http://other.example'], says: 'Expected addresses that are all https or all http' },
    { url: [one, 'other.example'], says: /^Expected an http or https address .* at place 2$/ },
    { url: ['ftp://one.example', other], says: /at place 1$/ },
    { url: [one, `${other}?key=secret`], says: /^(?!.*secret).*at place 2$/ },
    { url: ['https://user:secret@one.example', other], says: /^(?!.*secret).*at place 1$/ },
    { url: Array.from({ length: 17 }, (_none, n) => `https://${n}.example`), says: 'Expected at most 16' },
  ])('is refused where it cannot be meant: $url', ({ url, says }) => {
    expect(made(url)).toThrow(TypeError)
    expect(made(url)).toThrow(says)
  })

  it('may have different paths, and is copied', async () => {
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

  it('may be of one, which is asked as a lone address is', async () => {
    const { notes, pausesMs } = await clientOf([[standsBy, cutOff, head]])
    await notes.head()
    expect(pausesMs).toEqual([1_000, 150])
  })
})
