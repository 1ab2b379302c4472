import { createHash } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { newAgent } from '../support/http/answers.js'
import { type ClusterOfOne, makeClusterOfOne, testSeed } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { exportOf as lineExport, importTo, richStrand } from '../support/shard/imports.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

const agents = ['one', 'two', 'three']
const records = 'POST /v1/collections'

describe.skipIf(noPostgres)('a node of a cluster', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '2'])).toMatchObject({ status: 0 })
  })

  afterAll(() => cluster?.remove())
  afterEach(() => cluster.killNodes())

  const write = (server: TestServer, agent: string, text: string) =>
    call(server, `${records}/${agent}/records`, { body: { data: { text } } })
  const exportOf = async (server: TestServer, agent: string, name: string) => {
    const { url, rootKey } = server
    const file = cluster.newPath(name)
    const args = ['export', '--agent', agent, '--url', url, '--out', file]
    expect(await cluster.run(args, { SERVICE_ROOT_API_KEY: rootKey })).toMatchObject({ status: 0 })
    return file
  }
  /** The hash of the record in a line (docs/FORMAT.md, Header). */
  const hashOf = (line: string) => {
    const { h } = JSON.parse(line)
    return createHash('sha256').update(`\0${h}`).digest('hex')
  }
  /** The lines that contain records. */
  const linesOf = (file: string) =>
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('{"h"'))

  it('has every answered write after it was killed and has lost its directory', async () => {
    const first = await cluster.start()
    const answered = new Map<string, string>()
    const writer = async (agent: string) => {
      for (let n = 0; !first.process.killed; n++) {
        const answer = await write(first, agent, `${agent} ${n}`).catch(() => undefined)
        if (answer?.status === 201) answered.set(answer.body.content_hash, agent)
      }
    }
    const writers = [...agents, ...agents].map(writer)
    await eventually(() => answered.size > 300)
    const killed = first.halt('SIGKILL')
    await Promise.all([killed, ...writers])
    rmSync(first.dataDir, { recursive: true })
    const second = await cluster.start({ dataDir: first.dataDir })
    for (const agent of agents) {
      const file = await exportOf(second, agent, agent)
      const there = new Set(linesOf(file).map(hashOf))
      const own = [...answered].filter(([, of]) => of === agent).map(([hash]) => hash)
      expect(own.filter((hash) => !there.has(hash))).toEqual([])
      const { public_key: key } = JSON.parse(readFileSync(file, 'utf8').split('\n')[0] ?? '')
      const verified = await cluster.run(['verify', file, '--public-key', key])
      expect(verified).toMatchObject({ status: 0 })
    }
    expect(await second.halt()).toBe(0)
  })

  it('is pulled and pushed to another database with the same strands', async () => {
    const [one, two] = [cluster.newPath('pulled'), cluster.newPath('pulled')]
    const first = await cluster.run(['cluster', 'pull', one])
    expect(first).toMatchObject({ status: 0, stdout: expect.stringContaining('heads root') })
    const server = await cluster.start()
    const before = linesOf(await exportOf(server, 'one', 'before'))
    await server.halt()
    await cluster.postgres.query('CREATE DATABASE elsewhere')
    const env = {
      SERVICE_CLUSTER_URL: cluster.env['SERVICE_CLUSTER_URL']?.replace(/postgres$/, 'elsewhere') ?? '',
    }
    const pushed = await cluster.run(['cluster', 'push', '--data-dir', one], env)
    expect(pushed).toMatchObject({ status: 0 })
    const second = await cluster.run(['cluster', 'pull', two], env)
    const rootOf = ({ stdout }: { stdout: string }) => /heads root +([0-9a-f]{64})/.exec(stdout)?.[1]
    expect(rootOf(second)).toBe(rootOf(first))
    const there = await cluster.start({ dataDir: one, env })
    expect(linesOf(await exportOf(there, 'one', 'there'))).toEqual(before)
    await write(there, 'one', 'continues')
    await there.halt('SIGKILL')
    rmSync(one, { recursive: true })
    const again = await cluster.start({ dataDir: one, env })
    expect(linesOf(await exportOf(again, 'one', 'again')).slice(0, before.length)).toEqual(before)
    await again.halt()
  })

  it('restores everything that a strand can contain, own or imported, from its log and from a push', async () => {
    const own = { SERVICE_MASTER_SEED: testSeed }
    const alone = await startServer({ dataDir: cluster.newPath('alone'), env: own })
    await newAgent(alone, 'other')
    await richStrand(alone, 'imported', 'other')
    const lines = await lineExport(alone, 'imported')
    await alone.halt()
    const server = await cluster.start()
    await newAgent(server, 'other')
    // The import waits for the seed to which the key was rotated.
    expect((await importTo(server, lines, { query: '?hold=true' })).body.imported).toBe(
      lines.match(/^\{"h"/gm)?.length,
    )
    await richStrand(server, 'rich', 'other')
    const linesAt = async (node: TestServer) => {
      const texts = await Promise.all(['imported', 'rich'].map((agent) => lineExport(node, agent)))
      // The first line contains the time of the export.
      return texts.map((text) => text.split('\n').slice(1, 40))
    }
    const before = await linesAt(server)
    await server.halt('SIGKILL')
    const pulled = cluster.newPath('pulled')
    expect(await cluster.run(['cluster', 'pull', pulled])).toMatchObject({ status: 0 })
    await cluster.postgres.query('CREATE DATABASE rich')
    const env = { SERVICE_CLUSTER_URL: cluster.postgres.url.replace(/postgres$/, 'rich') }
    expect(await cluster.run(['cluster', 'push', '--data-dir', pulled], env)).toMatchObject({ status: 0 })
    const again = await cluster.start({ env })
    expect(await linesAt(again)).toEqual(before)
    await again.halt()
  })

  it('has erased bodies nowhere: in no row, no store and no rebuilt store', async () => {
    // Some bodies were written by a single server, before the cluster was created.
    const dataDir = cluster.newPath('erasing')
    const alone = await startServer({ dataDir, env: { SERVICE_MASTER_SEED: testSeed, SERVICE_SHARDS: '2' } })
    await newAgent(alone, 'erasing')
    const [early, secret] = ['an early body to forget', 'a body that is to be forgotten']
    const { body: first } = await write(alone, 'erasing', early)
    await write(alone, 'erasing', 'an early body that stays')
    await alone.halt()
    await cluster.postgres.query('CREATE DATABASE erasing')
    const env = { SERVICE_CLUSTER_URL: cluster.postgres.url.replace(/postgres$/, 'erasing') }
    expect(await cluster.run(['cluster', 'push', '--data-dir', dataDir], env)).toMatchObject({ status: 0 })
    const server = await cluster.start({ dataDir, env })
    const { body } = await write(server, 'erasing', secret)
    await write(server, 'erasing', 'a body that stays')
    const segmentsWith = async (text: string) => {
      const database = new Client({ connectionString: env.SERVICE_CLUSTER_URL })
      await database.connect()
      const like = 'SELECT 1 FROM strandfast_segments WHERE position($1::bytea IN blocks) > 0'
      const { rowCount } = await database.query(like, [Buffer.from(text)])
      await database.end()
      return rowCount
    }
    const all = () =>
      Promise.all([early, 'an early body that stays', secret, 'a body that stays'].map(segmentsWith))
    expect(await all()).toEqual([1, 1, 1, 1])
    for (const { record_id: id } of [first, body]) {
      const erased = await call(server, `POST /v1/agents/erasing/records/${id}/erase`)
      expect([erased.status, erased.body.state]).toEqual([200, 'erased'])
    }
    expect(await all()).toEqual([0, 1, 0, 1])
    const stores = ['shard-0', 'shard-1'].map((name) => join(server.dataDir, name, 'data.mdb'))
    const hasEither = (store: string) => [early, secret].some((text) => readFileSync(store).includes(text))
    await eventually(() => !stores.some(hasEither))
    await server.halt('SIGKILL')
    rmSync(server.dataDir, { recursive: true })
    const again = await cluster.start({ dataDir, env })
    const file = await exportOf(again, 'erasing', 'erasing')
    expect(readFileSync(file, 'utf8')).not.toContain(secret)
    expect(readFileSync(file, 'utf8')).toContain('a body that stays')
    expect(stores.some(hasEither)).toBe(false)
    expect(readFileSync(file, 'utf8')).toContain('an early body that stays')
    await again.halt()
  })
})
