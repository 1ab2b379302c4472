import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemTiming } from '../../src/client/timing.js'
import { ServiceClient, type StreamEvent } from '../../src/client/index.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { freePort } from '../support/server/free-port.js'
import type { TestServer } from '../support/server/server.js'

/** Waits as long as a client does, but at most 250 ms. */
const timing = {
  ...systemTiming,
  pause: (ms: number, signal: AbortSignal) => systemTiming.pause(Math.min(ms, 250), signal),
}
const writersMax = 8

interface Note {
  n: number
}

/** Several writers that write increasing numbers until they are stopped, and read each back. */
class Load {
  readonly seqs = new Map<number, number>()
  readonly #client: ServiceClient
  readonly #agent: string
  readonly #writers: Promise<void>[]
  #next = 0
  #failed = false
  #isOver = false

  constructor(client: ServiceClient, agent: string) {
    this.#client = client
    this.#agent = agent
    this.#writers = Array.from({ length: writersMax }, () => this.#write())
    for (const writer of this.#writers) writer.catch(() => (this.#failed = true))
  }

  /** Resolves after `count` more writes were answered. */
  async more(count: number): Promise<void> {
    const wanted = this.seqs.size + count
    await eventually(() => this.seqs.size >= wanted || this.#failed)
    if (this.#failed) await Promise.all(this.#writers)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#writers)
  }

  async #write(): Promise<void> {
    const notes = this.#client.collection<Note>(this.#agent)
    while (!this.#isOver) {
      const n = this.#next++
      const { seq, hash } = await notes.write({ n })
      this.seqs.set(n, seq)
      expect((await notes.get(hash)).data).toEqual({ n })
    }
  }
}

describe.skipIf(noPostgres)('a client with the addresses of two nodes', () => {
  let cluster: ClusterOfOne
  let ports: string[]
  let nodes: TestServer[]
  let client: ServiceClient

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '3'])).toMatchObject({ status: 0 })
    ports = [String(await freePort()), String(await freePort())]
  })

  afterAll(() => cluster?.remove())

  beforeEach(async () => {
    nodes = [await start(0), await start(1)]
    // The standby is first in the list.
    const url = nodes.map((node) => node.url).toReversed()
    client = new ServiceClient({ url, apiKey: nodes[0]?.rootKey, timing, timeoutMs: 20_000 })
  })

  afterEach(async () => {
    for (const node of nodes) await node.halt('SIGKILL')
  })

  const start = (nth: number, dataDir?: string) =>
    cluster.start({
      env: {
        SERVICE_CLUSTER_NODE: `node-${nth}`,
        SERVICE_CLUSTER_LEASE_SECS: '1',
        SERVICE_PORT: ports[nth] ?? '',
      },
      ...(dataDir !== undefined && { dataDir }),
    })

  /** Subscribes to one agent, and to that agent in the global stream, and collects the events. */
  const followed = (agent: string, idleTimeoutMs?: number) => {
    const [one, all]: [StreamEvent<Note>[], StreamEvent<Note>[]] = [[], []]
    const failed: unknown[] = []
    const options = { since: 0, idleTimeoutMs, onError: (error: unknown) => failed.push(error) }
    const subscriptions = [
      client.subscribeAgent<Note>(agent, (event) => void one.push(event), options),
      client.subscribeGlobal<Note>((event) => void all.push(event), { ...options, agents: [agent] }),
    ]
    return { one, all, failed, close: () => subscriptions.forEach((each) => each.close()) }
  }

  /**
   * Checks that every answered write exists once at its seq, and that each stream has every record once, in
   * order.
   */
  const checked = async (agent: string, load: Load, streams: ReturnType<typeof followed>) => {
    const written: [number, number][] = []
    for await (const { seq, data } of client
      .agent<Note>(agent)
      .queryAll({ type: 'latest', order: 'asc', limit: 1_000 })) {
      written.push([data.n, seq])
    }
    const answered = [...load.seqs].toSorted(([, one], [, other]) => one - other)
    expect(written).toEqual(answered)
    await eventually(async () => streams.failed.length > 0 || streams.one.length >= written.length)
    await eventually(async () => streams.failed.length > 0 || streams.all.length >= written.length)
    streams.close()
    expect(streams.failed).toEqual([])
    const seen = (events: StreamEvent<Note>[]) => events.map(({ seq, payload }) => [payload.n, seq])
    expect(seen(streams.one)).toEqual(written)
    expect(seen(streams.all)).toEqual(written)
  }

  it('loses and repeats no write and no event while the owner is killed and the next owner stops', async () => {
    const [first, second] = nodes
    if (first === undefined || second === undefined) return
    const { hash } = await client.collection<Note>('notes').write({ n: -1 })
    const load = new Load(client, 'notes')
    load.seqs.set(-1, (await client.agent<Note>('notes').get(hash)).seq)
    const streams = followed('notes')
    await load.more(100)
    await first.halt('SIGKILL')
    await load.more(100)
    nodes = [await start(0, first.dataDir), second]
    await load.more(50)
    expect(await second.halt()).toBe(0)
    await load.more(100)
    await load.stop()
    await checked('notes', load, streams)
  })

  it('uses the other node when the owner does not answer, like a machine that is down', async () => {
    const [first, second] = nodes
    if (first === undefined || second === undefined) return
    // Half of the timeout, spent on the first address, is longer than the other node takes to open the
    // shards.
    client = new ServiceClient({
      url: [first.url, second.url],
      apiKey: first.rootKey,
      timing,
      timeoutMs: 8_000,
    })
    await client.collection<Note>('silent').write({ n: -1 })
    const load = new Load(client, 'silent')
    load.seqs.set(-1, 1)
    const streams = followed('silent', 3_000)
    await load.more(50)
    first.process.kill('SIGSTOP')
    await load.more(50)
    await load.stop()
    await checked('silent', load, streams)
  })
})
