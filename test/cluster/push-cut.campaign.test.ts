import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inherited } from '../../scripts/crash-loop/inherited.mjs'
import { eventually } from '../support/eventually.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { type ClusterOfOne, makeClusterOfOne, testSeed } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { copyData } from '../support/server/copied-data.js'
import { startServer } from '../support/server/server.js'

const entry = join(import.meta.dirname, '../../dist/program/strandfast.js')

describe.skipIf(noPostgres)('an interrupted push', () => {
  let cluster: ClusterOfOne
  let dataDir: string

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    dataDir = cluster.newPath('data')
    const env = { SERVICE_MASTER_SEED: testSeed, SERVICE_SHARDS: '4' }
    const server = await startServer({ dataDir, env })
    const lines = Array.from({ length: 20_000 }, (_none, n) => JSON.stringify({ n, text: `number ${n}` }))
    await newAgent(server, 'many')
    const headers = { 'content-type': 'application/x-ndjson' }
    const sent = await checkedCall(server, 'POST /v1/ingest/many', { raw: lines.join('\n'), headers })
    expect(sent.status).toBe(200)
    // The log has records that the stores do not have.
    await server.halt('SIGKILL')
  })

  afterAll(() => cluster?.remove())

  /** Runs the push, and kills it when it has reached a moment or has ended. */
  const cutOff = async (env: Record<string, string>, isThere: () => Promise<boolean>) => {
    const child = spawn(process.execPath, [entry, 'cluster', 'push'], {
      env: { ...inherited, ...cluster.env, ...env },
      stdio: 'ignore',
    })
    const ended = once(child, 'exit')
    await eventually(async () => child.exitCode !== null || (await isThere()))
    child.kill('SIGKILL')
    await ended
  }
  /** Whether a table of a database has at least so many rows. */
  const has = async (url: string, table: string, rows: number) => {
    const database = new Client({ connectionString: url })
    await database.connect()
    try {
      const { rowCount } = await database.query(`SELECT 1 FROM strandfast_${table}`)
      return (rowCount ?? 0) >= rows
    } catch {
      // The table does not exist yet.
      return false
    } finally {
      await database.end()
    }
  }
  const moments: [string, (at: { url: string; copy: string }) => Promise<boolean>][] = [
    ['the table of the cluster exists', ({ url }) => has(url, 'cluster', 0)],
    ['the cluster has its row', ({ url }) => has(url, 'cluster', 1)],
    ['some segments are written', ({ url }) => has(url, 'segments', 6)],
    ['a part of a checkpoint is written', ({ url }) => has(url, 'checkpoints', 1)],
    ['most checkpoints are written', ({ url }) => has(url, 'checkpoints', 6)],
    ['the directory belongs to a node', async ({ copy }) => formatOf(copy).includes('"cluster"')],
  ]
  const formatOf = (path: string) => readFileSync(join(path, 'format.json'), 'utf8')

  let roots = ''
  let rounds = 0

  it.each(moments)(
    'is completed by a second push when %s, and nothing is served before that',
    async (moment, isThere) => {
      const name = `cut_${(rounds += 1)}`
      await cluster.postgres.query(`CREATE DATABASE ${name}`)
      const copy = cluster.newPath('copy')
      copyData(dataDir, copy)
      const url = cluster.postgres.url.replace(/postgres$/, name)
      const env = { SERVICE_CLUSTER_URL: url, SERVICE_DATA_DIR: copy, SERVICE_PORT: '0' }
      await cutOff(env, () => isThere({ url, copy }))
      const early = await cluster.run(['cluster', 'status'], env)
      const isWhole = early.stdout !== '' && !early.stdout.includes('The cluster is incomplete')
      if (!isWhole) expect(await cluster.run(['serve'], env), moment).toMatchObject({ status: 78 })
      const { status, stderr } = await cluster.run(['cluster', 'push'], env)
      expect([status === 0 || stderr.includes('holds a cluster already'), stderr], moment).toEqual([
        true,
        expect.anything(),
      ])
      const { stdout } = await cluster.run(['cluster', 'pull', cluster.newPath('pulled')], env)
      const root = /heads root +([0-9a-f]{64})/.exec(stdout)?.[1] ?? 'none'
      roots ||= root
      expect(root, moment).toBe(roots)
      const server = await cluster.start({ dataDir: copy, env })
      const { body } = await checkedCall(server, 'GET /v1/agents/many/head')
      expect(body.seq).toBe(20_000)
      expect(server.stderr()).not.toContain('storeBuilt')
      await server.halt()
      expect(JSON.parse(formatOf(copy)).format).toBe(3)
    },
  )
})
