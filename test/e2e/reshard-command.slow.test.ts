import { mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall } from '../support/http/answers.js'
import { runReshard } from '../support/server/reshard.js'
import { startServer, type TestServer } from '../support/server/server.js'

const marker = 'a body that can be found in the file'
let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  for (const n of [1, 2, 3, 4]) {
    const route = `POST /v1/collections/notes-${n}/records`
    expect((await checkedCall(server, route, { body: { data: { marker, n } } })).status).toBe(201)
  }
})
afterAll(() => server.stop())

const dataFile = (shard: number) => join(server.dataDir, `shard-${shard}`, 'data.mdb')
const format = () => readFileSync(join(server.dataDir, 'format.json'), 'utf8')
const startAgain = async (env: Record<string, string> = {}) => {
  server = await startServer({ dataDir: server.dataDir, env })
}

describe('strandfast reshard', () => {
  it('is refused while a server uses the directory, and changes nothing', async () => {
    const before = format()
    const { status, stderr } = runReshard(server.dataDir, 3)
    expect([status, stderr]).toEqual([78, expect.stringContaining(`in use by process ${server.process.pid}`)])
    expect(format()).toBe(before)
    expect(readdirSync(server.dataDir)).not.toContain('reshard')
    expect((await checkedCall(server, 'GET /readyz')).status).toBe(200)
    await server.halt()
  })

  it('does nothing if the directory has this number of shards already', () => {
    const before = format()
    const { status, stdout } = runReshard(server.dataDir, 2)
    expect([status, stdout]).toEqual([0, expect.stringContaining('has 2 shards already')])
    expect(format()).toBe(before)
  })

  it.each([['0'], ['17'], ['2.5'], ['1e1'], ['two'], ['']])('is refused for %j shards', (shards) => {
    const { status, stderr } = runReshard(server.dataDir, shards)
    expect([status, stderr]).toEqual([78, expect.stringContaining('from 1 to 16')])
  })

  it('is refused without a data directory, and creates none', () => {
    const path = mkdtempSync(join(tmpdir(), 'strandfast-none-'))
    expect(runReshard(path, 2).status).toBe(78)
    expect(readdirSync(path)).toEqual([])
    expect(runReshard(join(path, 'absent'), 2).status).toBe(78)
    rmSync(path, { recursive: true })
  })

  it('prints how much free space a second copy needs if there is less', () => {
    const { length } = readFileSync(dataFile(0))
    // A sparse file that is larger than any disk.
    truncateSync(dataFile(0), 2 ** 42)
    const { status, stderr } = runReshard(server.dataDir, 3)
    truncateSync(dataFile(0), length)
    expect(status).toBe(1)
    expect(stderr).toMatch(/Not enough free space in .* for a second copy: \d{7,} MiB needed, \d+ MiB free/)
    expect(readdirSync(server.dataDir)).not.toContain('reshard')
  })

  it('is refused if a record is damaged, and changes nothing', async () => {
    const before = format()
    const shard = [0, 1].find((number) => readFileSync(dataFile(number)).includes(marker)) ?? 0
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
    expect((await checkedCall(server, 'GET /v1/agents/notes-1/head')).status).toBe(200)
    await server.halt()
  })

  it('warns about a setting with which the next start would fail', async () => {
    const { status, stderr } = runReshard(server.dataDir, 3, { SERVICE_SHARDS: '2' })
    expect([status, stderr]).toEqual([
      0,
      expect.stringContaining('SERVICE_SHARDS is 2: unset it or set it to 3'),
    ])
    await expect(startAgain({ SERVICE_SHARDS: '2' })).rejects.toThrow('strandfast reshard --shards 2')
    await startAgain({ SERVICE_SHARDS: '3' })
    for (const n of [1, 2, 3, 4]) {
      const { body } = await checkedCall(server, `POST /v1/agents/notes-${n}/query`, {
        body: { type: 'latest', limit: 1 },
      })
      expect(body.records[0].payload).toEqual({ marker, n })
    }
  })

  it('does not copy erased bodies', async () => {
    const { body } = await checkedCall(server, 'POST /v1/agents', {
      body: { name: 'forgetful', zone: 'free' },
    })
    expect(body.agent_id).toBe('forgetful')
    const secret = 'a body that is erased '.repeat(10)
    const route = 'POST /v1/agents/forgetful/records'
    const { id } = (await checkedCall(server, route, { body: { data: { secret } } })).body
    expect((await checkedCall(server, `POST /v1/agents/forgetful/records/${id}/erase`)).status).toBe(200)
    // The server may not have overwritten the old page yet; then the reshard must not copy it.
    await server.halt('SIGKILL')
    expect(runReshard(server.dataDir, 2).status).toBe(0)
    for (const shard of [0, 1])
      expect(readFileSync(dataFile(shard)).includes(secret.slice(0, 40))).toBe(false)
    await startAgain()
    const view = await checkedCall(server, `GET /v1/agents/forgetful/records/${id}`)
    expect(view.body).toMatchObject({ erased: true, payload: null })
  })
})
