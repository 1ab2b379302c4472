import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemTiming } from '../../src/client/backoff.js'
import { ServiceClient, type StreamEvent } from '../../src/client/index.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { freePort } from '../support/server/free-port.js'
import type { TestServer } from '../support/server/server.js'

/** Waits as long as a client does, but for the longest. */
const timing = {
  ...systemTiming,
  pause: (ms: number, signal: AbortSignal) => systemTiming.pause(Math.min(ms, 250), signal),
}
const writersMax = 8

interface Note {
  n: number
}

/** Writes one number after the other by several writers, until told to stop, and reads each back. */
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

  /** Resolves once so many more writes were answered. */
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
    // The one that stands by is named first.
    const url = nodes.map((node) => node.url).toReversed()
    client = new ServiceClient({ url, apiKey: nodes[0]?.rootKey, timing, timeoutMs: 20_000 })
  })

  afterEach(async () => {
    for (const node of nodes) await node.halt('SIGKILL')
  })

  const start = (place: number, dataDir?: string) =>
    cluster.start({
      env: {
        SERVICE_CLUSTER_NODE: `node-${place}`,
        SERVICE_CLUSTER_LEASE_SECS: '1',
        SERVICE_PORT: ports[place] ?? '',
      },
      ...(dataDir !== undefined && { dataDir }),
    })

  /** Subscribes to an agent, and to it among all, and gives what came. */
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

  /** Every answered write is there once, at its place, and each stream has every record once, in order. */
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

  it('loses no write and no event, and repeats none, while the owner is killed and the next one stops', async () => {
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

  it('goes on where the owner says nothing, as on a machine that is gone', async () => {
    const [first, second] = nodes
    if (first === undefined || second === undefined) return
    // Half of a call's time for the first address is then longer than the other one takes to open the shards.
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
