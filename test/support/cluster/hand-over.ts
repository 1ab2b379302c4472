import { eventually } from '../eventually.js'
import { isCaughtUp, numbersOf, openStream } from '../http/events.js'
import { makeClusterOfOne, type ClusterOfOne } from '../postgres/cluster-of-one.js'
import { call, type TestServer } from '../server/server.js'

/** Names that lie in all shards. */
const agents = Array.from({ length: 8 }, (_none, n) => `agent-${n}`)

/** What a cluster showed while its shards moved. */
export interface HandOverFound {
  /** Answers that should not be: nothing where all is well. */
  wrong: string[]
  /** The longest that anybody waited for an answer, milliseconds. */
  longestMs: number
}

/**
 * Two nodes share three shards under load. One of them is stopped in order, and starts again: its shards move to the other one and
 * back, which writers, readers, exports and a stream at the other one should not notice.
 * @param program in place of the built one
 */
export async function handOver(program?: string): Promise<HandOverFound> {
  const cluster = await makeClusterOfOne()
  try {
    await cluster.run(['cluster', 'init', '--shards', '3'])
    return await moves(cluster, program)
  } catch (error) {
    return { wrong: [String(error)], longestMs: Infinity }
  } finally {
    await cluster.remove()
  }
}

async function moves(cluster: ClusterOfOne, program: string | undefined): Promise<HandOverFound> {
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
  const made = await call(first, 'POST /v1/admin/api-keys', {
    body: { name: 'one', scopes: ['records:read'] },
  })
  const { key } = made.body
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
    // It has its share by itself.
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

/** What was answered to writers and readers at a node, while it is asked without a pause. */
class Load {
  readonly #server: TestServer
  readonly #key: string
  readonly #running: Promise<unknown>
  #isOver = false
  /** Numbers that were written, by their agents. */
  readonly written = new Map<string, number>(agents.map((agent) => [agent, 0]))
  /** Answers that should not be. */
  readonly wrong: string[] = []
  /** Resolves with the first of them. */
  readonly wentWrong: Promise<void>
  #goesWrong: () => void = () => {}
  longestMs = 0

  constructor(server: TestServer, key: string) {
    this.#server = server
    this.#key = key
    this.wentWrong = new Promise((resolve) => (this.#goesWrong = resolve))
    this.#running = Promise.all([...agents.map((agent) => this.#write(agent)), this.#read(), this.#export()])
  }

  /** Resolves when each agent has so many records more. */
  async progress(count: number): Promise<void> {
    const until = new Map([...this.written].map(([agent, n]) => [agent, n + count]))
    await eventually(() => [...this.written].every(([agent, n]) => n >= (until.get(agent) ?? 0)))
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #ask(what: string, options: Parameters<typeof call>[2]) {
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
      await this.#ask(`POST /v1/collections/${agent}/records`, { body: { data: { n } } })
      this.written.set(agent, n + 1)
    }
  }

  /** With a key, of which the first shard says whether it is in force. */
  async #read(): Promise<void> {
    while (!this.#isOver) await this.#ask('GET /v1/agents', { key: this.#key })
  }

  async #export(): Promise<void> {
    while (!this.#isOver) {
      const { text } = await this.#ask(`GET /v1/strand/export?agent=${agents[0]}`, {})
      if (!text.endsWith('\n')) this.#fault('An export was broken off')
    }
  }
}
