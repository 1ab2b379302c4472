import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { isCaughtUp, numbersOf, openStream } from '../support/http/events.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

/** Names that lie in all shards. */
const agents = Array.from({ length: 8 }, (_none, n) => `agent-${n}`)

describe.skipIf(noPostgres)('shards that are handed over', () => {
  let cluster: ClusterOfOne
  let key: string
  const servers: TestServer[] = []

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '3'])).toMatchObject({ status: 0 })
  })

  afterAll(() => cluster?.remove())

  const start = async (node: string, dataDir?: string) => {
    const server = await cluster.start({
      env: {
        SERVICE_CLUSTER_NODE: node,
        SERVICE_CLUSTER_LEASE_SECS: '2',
        SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
      },
      ...(dataDir !== undefined && { dataDir }),
    })
    await eventually(async () => (await call(server, 'GET /readyz')).status === 200)
    servers.push(server)
    return server
  }

  /** What was answered to writers and readers at a node, while it is asked without a pause. */
  class Load {
    readonly #server: TestServer
    readonly #running: Promise<unknown>
    #isOver = false
    /** Numbers that were written, by their agents. */
    readonly written = new Map<string, number>(agents.map((agent) => [agent, 0]))
    /** Answers that should not be. */
    readonly wrong: string[] = []
    #longestMs = 0

    constructor(server: TestServer) {
      this.#server = server
      this.#running = Promise.all([
        ...agents.map((agent) => this.#write(agent)),
        this.#read(),
        this.#export(),
      ])
    }

    /** Resolves when each agent has so many records more. */
    async progress(count: number): Promise<void> {
      const until = new Map([...this.written].map(([agent, n]) => [agent, n + count]))
      await eventually(() => [...this.written].every(([agent, n]) => n >= (until.get(agent) ?? 0)))
    }

    async end(): Promise<void> {
      this.#isOver = true
      await this.#running
      console.log(`The longest call took ${Math.round(this.#longestMs)} ms`)
    }

    async #ask(what: string, options: Parameters<typeof call>[2]) {
      const startedAtMs = performance.now()
      const answer = await call(this.#server, what, options)
      this.#longestMs = Math.max(this.#longestMs, performance.now() - startedAtMs)
      if (answer.status >= 300) this.wrong.push(`${what}: ${answer.status} ${answer.text}`)
      return answer
    }

    async #write(agent: string): Promise<void> {
      while (!this.#isOver) {
        const n = this.written.get(agent) ?? 0
        await this.#ask(`POST /v1/collections/${agent}/records`, { body: { data: { n } } })
        this.written.set(agent, n + 1)
      }
    }

    /** With a key, of which the first shard says whether it is in force. */
    async #read(): Promise<void> {
      while (!this.#isOver) await this.#ask('GET /v1/agents', { key })
    }

    async #export(): Promise<void> {
      while (!this.#isOver) {
        const { text } = await this.#ask(`GET /v1/strand/export?agent=${agents[0]}`, {})
        if (!text.endsWith('\n')) this.wrong.push('An export was broken off')
      }
    }
  }

  it('are waited for: no request fails, no stream ends, and who gave them up ends in order', async () => {
    const first = await start('first')
    const made = await call(first, 'POST /v1/admin/api-keys', {
      body: { name: 'one', scopes: ['records:read'] },
    })
    ;({ key } = made.body)
    for (const agent of agents) await call(first, 'POST /v1/agents', { body: { name: agent, zone: 'free' } })
    const second = await start('second')
    const [agent = ''] = agents
    const stream = await openStream(second, `/v1/agents/${agent}/stream?since=0`, { key })
    await stream.until(isCaughtUp)
    const load = new Load(second)
    await load.progress(5)
    expect(await first.halt()).toBe(0)
    await load.progress(5)
    const again = await start('first', first.dataDir)
    await load.progress(5)
    await load.end()
    expect(load.wrong).toEqual([])
    const written = load.written.get(agent) ?? 0
    await stream.until((events) => numbersOf(events).length >= written)
    expect(numbersOf(stream.events)).toEqual(Array.from({ length: written }, (_none, n) => n))
    stream.close()
    for (const server of [again, second]) {
      expect(server.stderr()).not.toContain('a request failed')
      expect(await server.halt()).toBe(0)
    }
  })
})
