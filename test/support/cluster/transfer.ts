import { eventually } from '../eventually.js'
import { isCaughtUp, numbersOf, openStream } from '../http/events.js'
import { makeClusterOfOne, type ClusterOfOne } from '../postgres/cluster-of-one.js'
import { call, type TestServer } from '../server/server.js'

/** Names that cover all shards. */
const agents = Array.from({ length: 8 }, (_none, n) => `agent-${n}`)

/** The observations during a transfer of shards. */
export interface TransferFindings {
  /** Unexpected answers: empty if all is well. */
  wrong: string[]
  /** The longest time to an answer, milliseconds. */
  longestMs: number
}

/**
 * Runs two nodes that share three shards, under load. One of them stops in order and starts again, so its
 * shards move to the other node and back; writers, readers, exports and a stream at that node should not
 * notice.
 * @param program to run instead of the built one
 */
export async function transferShards(program?: string): Promise<TransferFindings> {
  const cluster = await makeClusterOfOne()
  try {
    await cluster.run(['cluster', 'init', '--shards', '3'])
    return await transferUnderLoad(cluster, program)
  } catch (error) {
    return { wrong: [String(error)], longestMs: Infinity }
  } finally {
    await cluster.remove()
  }
}

async function transferUnderLoad(
  cluster: ClusterOfOne,
  program: string | undefined,
): Promise<TransferFindings> {
  const start = async (node: string, dataDir?: string) => {
    const server = await cluster.start({
      env: {
        SERVICE_CLUSTER_NODE: node,
        SERVICE_CLUSTER_LEASE_SECS: '2',
        SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
      },
      ...(dataDir !== undefined && { dataDir }),
      ...(program !== undefined && { program }),
    })
    await eventually(async () => (await call(server, 'GET /readyz')).status === 200)
    return server
  }
  const owned = async (server: TestServer) =>
    Number(/^strandfast_cluster_owned_shards (\d+)$/m.exec((await call(server, 'GET /metrics')).text)?.[1])
  const first = await start('first')
  const created = await call(first, 'POST /v1/admin/api-keys', {
    body: { name: 'one', scopes: ['records:read'] },
  })
  const { key } = created.body
  for (const agent of agents) await call(first, 'POST /v1/agents', { body: { name: agent, zone: 'free' } })
  const second = await start('second')
  const [agent = ''] = agents
  const stream = await openStream(second, `/v1/agents/${agent}/stream?since=0`, { key })
  await stream.until(isCaughtUp)
  const load = new Load(second, key)
  const ends: (number | null)[] = []
  let again = first
  const steps = async () => {
    await load.progress(5)
    // The node gets its share without help.
    await eventually(async () => (await owned(second)) > 0)
    await load.progress(5)
    ends.push(await first.halt())
    await load.progress(5)
    again = await start('first', first.dataDir)
    await eventually(async () => (await owned(again)) > 0)
    await load.progress(5)
  }
  await Promise.race([steps(), load.wentWrong])
  await load.end()
  const wrong = [...load.wrong]
  if (wrong.length > 0) {
    stream.close()
    return { wrong, longestMs: load.longestMs }
  }
  const written = load.written.get(agent) ?? 0
  await stream.until((events) => numbersOf(events).length >= written)
  const numbers = numbersOf(stream.events).join()
  if (numbers !== Array.from({ length: written }, (_none, n) => n).join())
    wrong.push(`The stream had ${numbers}, of ${written} that were written`)
  stream.close()
  for (const server of [again, second]) {
    if (server.stderr().includes('a request failed')) wrong.push(server.stderr())
    ends.push(await server.halt())
  }
  if (ends.join() !== '0,0,0') wrong.push(`The processes ended with ${ends.join()}`)
  return { wrong, longestMs: load.longestMs }
}

/** Writers and readers that send requests to a node without a pause, and the answers. */
class Load {
  readonly #server: TestServer
  readonly #key: string
  readonly #running: Promise<unknown>
  #isOver = false
  /** The number of written records, by agent. */
  readonly written = new Map<string, number>(agents.map((agent) => [agent, 0]))
  /** Unexpected answers. */
  readonly wrong: string[] = []
  /** Resolves with the first unexpected answer. */
  readonly wentWrong: Promise<void>
  #goesWrong: () => void = () => {}
  longestMs = 0

  constructor(server: TestServer, key: string) {
    this.#server = server
    this.#key = key
    this.wentWrong = new Promise((resolve) => (this.#goesWrong = resolve))
    this.#running = Promise.all([...agents.map((agent) => this.#write(agent)), this.#read(), this.#export()])
  }

  /** Resolves when each agent has `count` more records. */
  async progress(count: number): Promise<void> {
    const until = new Map([...this.written].map(([agent, n]) => [agent, n + count]))
    await eventually(() => [...this.written].every(([agent, n]) => n >= (until.get(agent) ?? 0)))
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #request(what: string, options: Parameters<typeof call>[2]) {
    const startedAtMs = performance.now()
    const answer = await call(this.#server, what, options)
    this.longestMs = Math.max(this.longestMs, performance.now() - startedAtMs)
    if (answer.status >= 300) this.#fault(`${what}: ${answer.status} ${answer.text}`)
    return answer
  }

  #fault(text: string): void {
    this.wrong.push(text)
    this.#goesWrong()
  }

  async #write(agent: string): Promise<void> {
    while (!this.#isOver) {
      const n = this.written.get(agent) ?? 0
      await this.#request(`POST /v1/collections/${agent}/records`, { body: { data: { n } } })
      this.written.set(agent, n + 1)
    }
  }

  /** With a key, whose validity the first shard decides. */
  async #read(): Promise<void> {
    while (!this.#isOver) await this.#request('GET /v1/agents', { key: this.#key })
  }

  async #export(): Promise<void> {
    while (!this.#isOver) {
      const { text } = await this.#request(`GET /v1/strand/export?agent=${agents[0]}`, {})
      if (!text.endsWith('\n')) this.#fault('An export was broken off')
    }
  }
}
