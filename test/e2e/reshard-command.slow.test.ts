import { mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask } from '../support/http/answers.js'
import { runReshard } from '../support/server/reshard.js'
import { startServer, type TestServer } from '../support/server/server.js'

const marker = 'a body that can be found in the file'
let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  for (const n of [1, 2, 3, 4]) {
    const route = `POST /v1/collections/notes-${n}/records`
    expect((await ask(server, route, { body: { data: { marker, n } } })).status).toBe(201)
  }
})
afterAll(() => server.stop())

const dataFile = (shard: number) => join(server.dataDir, `shard-${shard}`, 'data.mdb')
const format = () => readFileSync(join(server.dataDir, 'format.json'), 'utf8')
const startAgain = async (env: Record<string, string> = {}) => {
  server = await startServer({ dataDir: server.dataDir, env })
}

describe('strandfast reshard', () => {
  it('is refused while a server has the directory, and harms nothing', async () => {
    const before = format()
    const { status, stderr } = runReshard(server.dataDir, 3)
    expect([status, stderr]).toEqual([78, expect.stringContaining(`in use by process ${server.process.pid}`)])
    expect(format()).toBe(before)
    expect(readdirSync(server.dataDir)).not.toContain('reshard')
    expect((await ask(server, 'GET /readyz')).status).toBe(200)
    await server.halt()
  })

  it('does nothing where there are as many shards already', () => {
    const before = format()
    const { status, stdout } = runReshard(server.dataDir, 2)
    expect([status, stdout]).toEqual([0, expect.stringContaining('has 2 shards already')])
    expect(format()).toBe(before)
  })

  it.each([['0'], ['17'], ['2.5'], ['1e1'], ['two'], ['']])('is not for %j shards', (shards) => {
    const { status, stderr } = runReshard(server.dataDir, shards)
    expect([status, stderr]).toEqual([78, expect.stringContaining('from 1 to 16')])
  })

  it('is refused where there is no data directory, and makes none', () => {
    const path = mkdtempSync(join(tmpdir(), 'strandfast-none-'))
    expect(runReshard(path, 2).status).toBe(78)
    expect(readdirSync(path)).toEqual([])
    expect(runReshard(join(path, 'absent'), 2).status).toBe(78)
    rmSync(path, { recursive: true })
  })

  it('says how much space a second copy needs where there is less', () => {
    const { length } = readFileSync(dataFile(0))
    // A file with a hole: as large as no disk.
    truncateSync(dataFile(0), 2 ** 42)
    const { status, stderr } = runReshard(server.dataDir, 3)
    truncateSync(dataFile(0), length)
    expect(status).toBe(1)
    expect(stderr).toMatch(/Expected \d{7,} MiB of free space in .* for a second copy, got \d+ MiB/)
    expect(readdirSync(server.dataDir)).not.toContain('reshard')
  })

  it('is refused where a record is damaged, and changes nothing', async () => {
    const before = format()
    const shard = [0, 1].find((one) => readFileSync(dataFile(one)).includes(marker)) ?? 0
    const whole = readFileSync(dataFile(shard))
    const damaged = Buffer.from(whole)
    for (let at = damaged.indexOf(marker); at !== -1; at = damaged.indexOf(marker, at + 1)) damaged[at] = 0x41
    writeFileSync(dataFile(shard), damaged)
    const { status, stderr } = runReshard(server.dataDir, 3)
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(
        new RegExp(`nothing has changed: The stored data is damaged at shard ${shard}, block \\d+`),
      ),
    ])
    expect(format()).toBe(before)
    expect(readdirSync(server.dataDir)).not.toContain('reshard')
    writeFileSync(dataFile(shard), whole)
    await startAgain()
    expect((await ask(server, 'GET /v1/agents/notes-1/head')).status).toBe(200)
    await server.halt()
  })

  it('tells of a setting that the next start would be refused by', async () => {
    const { status, stderr } = runReshard(server.dataDir, 3, { SERVICE_SHARDS: '2' })
    expect([status, stderr]).toEqual([
      0,
      expect.stringContaining('SERVICE_SHARDS is 2: unset it, or set it to 3'),
    ])
    await expect(startAgain({ SERVICE_SHARDS: '2' })).rejects.toThrow('strandfast reshard --shards 2')
    await startAgain({ SERVICE_SHARDS: '3' })
    for (const n of [1, 2, 3, 4]) {
      const { body } = await ask(server, `POST /v1/agents/notes-${n}/query`, {
        body: { type: 'latest', limit: 1 },
      })
      expect(body.records[0].payload).toEqual({ marker, n })
    }
  })

  it('takes no erased body along', async () => {
    const { body } = await ask(server, 'POST /v1/agents', { body: { name: 'forgetful', zone: 'free' } })
    expect(body.agent_id).toBe('forgetful')
    const secret = 'what nobody is to find again '.repeat(10)
    const route = 'POST /v1/agents/forgetful/records'
    const { id } = (await ask(server, route, { body: { data: { secret } } })).body
    expect((await ask(server, `POST /v1/agents/forgetful/records/${id}/erase`)).status).toBe(200)
    // Before it has written over the old page, as likely as not: then the reshard does.
    await server.halt('SIGKILL')
    expect(runReshard(server.dataDir, 2).status).toBe(0)
    for (const shard of [0, 1])
      expect(readFileSync(dataFile(shard)).includes(secret.slice(0, 40))).toBe(false)
    await startAgain()
    const view = await ask(server, `GET /v1/agents/forgetful/records/${id}`)
    expect(view.body).toMatchObject({ erased: true, payload: null })
  })
})
