import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { newAgent } from '../support/http/answers.js'
import { type ClusterOfOne, makeClusterOfOne, testSeed } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { run } from '../support/server/command.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

const agents = ['one', 'two', 'three', 'four']
/** Records of each agent before the first erasure. */
const RECORDS = 60
/** How often each copy is made. */
const COPIES = 3

/** Clients that write records, and erase old and new ones alternately, until they are stopped. */
class Erasures {
  readonly #server: TestServer
  readonly #clients: Promise<void>[]
  #isStopped = false
  erased = 0

  constructor(server: TestServer) {
    this.#server = server
    this.#clients = agents.map((agent) => this.#run(agent))
  }

  async begun(): Promise<void> {
    await eventually(() => this.erased > 0)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#clients)
  }

  async #run(agent: string): Promise<void> {
    await newAgent(this.#server, agent)
    const ids: string[] = []
    while (ids.length < RECORDS) ids.push(await this.#write(agent))
    for (let isOld = true; !this.#isStopped; isOld = !isOld) {
      ids.push(await this.#write(agent))
      const id = isOld ? ids.shift() : ids.pop()
      const answer = await call(this.#server, `POST /v1/agents/${agent}/records/${id}/erase`)
      expect([answer.status, answer.body.state]).toEqual([200, 'erased'])
      this.erased += 1
    }
  }

  async #write(agent: string): Promise<string> {
    const body = { data: { text: 'a body' } }
    const answer = await call(this.#server, `POST /v1/agents/${agent}/records`, { body })
    expect(answer.status).toBe(201)
    return answer.body.record_id
  }
}

const serves = (server: TestServer) =>
  eventually(async () => (await call(server, 'GET /readyz')).status === 200)

/** Exports a strand and checks the export. */
async function exportAndVerify(server: TestServer, file: string): Promise<void> {
  const env = { SERVICE_ROOT_API_KEY: testRootKey }
  const exported = await run(['export', '--agent', 'one', '--url', server.url, '--out', file], env)
  expect(exported.status, exported.stderr).toBe(0)
  const { public_key: key } = JSON.parse(readFileSync(file, 'utf8').split('\n')[0] ?? '')
  const verified = await run(['verify', file, '--public-key', key], {})
  expect(verified.status, verified.stdout + verified.stderr).toBe(0)
}

describe.skipIf(noPostgres)('a cluster whose records are erased without a pause', () => {
  let cluster: ClusterOfOne
  let first: TestServer
  let erasures: Erasures

  const start = async (node: string) => {
    const server = await cluster.start({ env: { SERVICE_CLUSTER_NODE: node, SERVICE_LOG_LEVEL: 'info' } })
    await serves(server)
    return server
  }

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '4'])).toMatchObject({ status: 0 })
    first = await start('first')
    erasures = new Erasures(first)
    await erasures.begun()
  })

  afterAll(() => cluster?.remove())

  it('is pulled as of one moment, followed by an empty node, shown without a problem and exported', async () => {
    const second = await start('second')
    for (let nth = 0; nth < COPIES; nth++) {
      const { status, stderr } = await cluster.run(['cluster', 'pull', cluster.newPath('pulled')])
      expect(status, stderr).toBe(0)
      const shown = await cluster.run(['cluster', 'status'])
      expect(shown.stdout).not.toMatch(/lacks|does not/)
      await exportAndVerify(second, cluster.newPath('export'))
    }
    await erasures.stop()
    expect(first.stderr() + second.stderr()).not.toMatch(/cannot be followed|"level":"(error|fatal)"/)
  })
})

describe('a server whose records are erased without a pause', () => {
  let directory: string
  let server: TestServer

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'strandfast-erasures-'))
    const env = { SERVICE_MASTER_SEED: testSeed, SERVICE_SHARDS: '2' }
    server = await startServer({ dataDir: join(directory, 'data'), env })
  })

  afterAll(async () => {
    await server?.halt('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  })

  it('is backed up, examined and exported without a fault', async () => {
    const erasures = new Erasures(server)
    await erasures.begun()
    const env = { SERVICE_MASTER_SEED: testSeed, SERVICE_DATA_DIR: server.dataDir }
    for (let nth = 0; nth < COPIES; nth++) {
      const backup = await run(['backup', join(directory, `backup-${nth}`)], env)
      expect(backup.status, backup.stderr).toBe(0)
      const doctor = await run(['doctor'], { ...env, SERVICE_ROOT_API_KEY: testRootKey })
      expect(doctor.stdout).not.toMatch(/^fail/m)
      await exportAndVerify(server, join(directory, `export-${nth}`))
    }
    await erasures.stop()
  })
})
