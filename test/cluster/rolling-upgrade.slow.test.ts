import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildOf, formerCommit } from '../support/cluster/former-build.js'
import type { PlantedBuild } from '../support/cluster/rounds/planted-build.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

const names = ['a', 'b', 'c']
/** Enough for each shard to have some. */
const agents = Array.from({ length: 24 }, (_none, n) => `agent-${n}`)
const leaseSecs = '2'
/** After so many heartbeats a linked node gets its share of the shards. */
const READY_HEARTBEATS = 20
/** Pause of a client that was refused, milliseconds. */
const REFUSED_MS = 50
/** Longer than any request may take, milliseconds: a write waits ten seconds for the database. */
const HANGS_MS = 15_000

const commit = formerCommit()

/** One writer for each agent, which goes from node to node. */
class Writers {
  readonly #servers: ReadonlyMap<string, TestServer>
  readonly #writers: Promise<void>[]
  /** Hashes of acknowledged records. */
  readonly acknowledged: string[] = []
  /** Answers other than 201 and 503, and requests without an answer. */
  readonly breaches: string[] = []
  #isStopped = false

  constructor(servers: ReadonlyMap<string, TestServer>) {
    this.#servers = servers
    this.#writers = agents.map((agent, nth) => this.#run(agent, nth))
  }

  /** Resolves when each agent has more records. */
  async continue(): Promise<void> {
    const { length } = this.acknowledged
    await eventually(() => this.acknowledged.length > length + 2 * agents.length)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#writers)
  }

  async #run(agent: string, nth: number): Promise<void> {
    for (let n = nth; !this.#isStopped; n++) {
      const server = this.#servers.get(names[n % names.length] ?? '')
      const isDone = server !== undefined && (await this.#write(server, agent))
      if (!isDone) await pause(REFUSED_MS)
    }
  }

  async #write({ url, rootKey, process }: TestServer, agent: string): Promise<boolean> {
    try {
      const answer = await fetch(`${url}/v1/collections/${agent}/records`, {
        method: 'POST',
        headers: { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ data: { text: agent } }),
        signal: AbortSignal.timeout(HANGS_MS),
      })
      const text = await answer.text()
      if (answer.status === 201) this.acknowledged.push(JSON.parse(text).content_hash)
      else if (answer.status !== 503) this.breaches.push(`${answer.status} ${text}`)
      return answer.status === 201
    } catch (error) {
      const isHanging = error instanceof Error && error.name === 'TimeoutError'
      // A node that was sent a signal accepts no more connections.
      if (isHanging || !process.killed) this.breaches.push(String(error))
      return false
    }
  }
}

describe.skipIf(noPostgres || commit === undefined)('a cluster of the former build', () => {
  let cluster: ClusterOfOne
  let former: PlantedBuild | undefined
  const servers = new Map<string, TestServer>()

  const start = async (name: string, program?: string) => {
    const more = {
      SERVICE_CLUSTER_NODE: name,
      SERVICE_CLUSTER_LEASE_SECS: leaseSecs,
      SERVICE_LOG_LEVEL: 'info',
      SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
    }
    const dataDir = servers.get(name)?.dataDir ?? cluster.newPath(name)
    const env = { ...cluster.env, ...more }
    servers.set(name, await startServer({ dataDir, env, ...(program !== undefined && { program }) }))
  }
  const server = (name: string) => {
    const found = servers.get(name)
    if (found === undefined) throw new Error(`The node ${name} has not started`)
    return found
  }
  const answers = async (name: string) => (await call(server(name), 'GET /readyz')).status === 200
  const members = async (name: string) => (await call(server(name), 'GET /v1/server')).body.cluster.members

  const isSettled = async (name: string) => {
    const rows = 'SELECT 1 FROM strandfast_nodes WHERE node = $1 AND beat > $2'
    return (await cluster.postgres.query(rows, [name, READY_HEARTBEATS])).length > 0
  }
  const status = async () =>
    (await cluster.run(['cluster', 'status'], { SERVICE_CLUSTER_LEASE_SECS: leaseSecs })).stdout

  beforeAll(async () => {
    former = buildOf(commit ?? '')
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '6'])).toMatchObject({ status: 0 })
    for (const name of names) await start(name, former.program)
    for (const name of names) await eventually(() => answers(name))
    await eventually(async () =>
      (await members('a')).every((member: { owned_shards: number[] }) => member.owned_shards.length > 0),
    )
  })

  afterAll(async () => {
    for (const { process } of servers.values()) process.kill('SIGKILL')
    await cluster?.remove()
    former?.remove()
  })

  it('is upgraded node by node under load, and no write is lost or left without an answer', async () => {
    const writers = new Writers(servers)
    await writers.continue()
    for (const name of names) {
      expect(await server(name).halt()).toBe(0)
      await start(name)
      await writers.continue()
      if (name === names.at(-1)) continue
      // The version may be the same: then only the digests of the builds differ.
      await eventually(async () => /different builds.*\+[0-9a-f]{12}/.test(await status()))
      await eventually(() => isSettled(name))
      await writers.continue()
      expect(await answers(name)).toBe(false)
    }
    for (const name of names) await eventually(() => answers(name))
    await writers.stop()
    expect(writers.breaches).toEqual([])
    const found = await Promise.all(
      names.map(async (name, nth) => {
        const own = writers.acknowledged.filter((_hash, at) => at % names.length === nth)
        for (const hash of own) expect((await call(server(name), `GET /v1/records/${hash}`)).status).toBe(200)
        return own.length
      }),
    )
    expect(found.reduce((sum, count) => sum + count, 0)).toBe(writers.acknowledged.length)
    expect(await status()).not.toContain('different builds')
  })
})
