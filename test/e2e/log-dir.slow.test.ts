import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkedCall } from '../support/http/answers.js'
import { startCommand } from '../support/server/backup.js'
import { copyData } from '../support/server/copied-data.js'
import { runReshard } from '../support/server/reshard.js'
import { startServer, testRootKey, type TestServer } from '../support/server/server.js'

/* SERVICE_LOG_DIR: the log of writes on another disk, changed between starts, also after a crash. */

let folder: string
let logDir: string
let server: TestServer
let written = 0

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'strandfast-log-dir-')))
  logDir = join(folder, 'fast-disk')
  server = await start({ SERVICE_SHARDS: '2', SERVICE_LOG_DIR: logDir })
})
afterAll(async () => {
  await server.halt()
  rmSync(folder, { recursive: true })
})

const dataDir = () => join(folder, 'data')
const start = (env: Record<string, string> = {}) => startServer({ dataDir: dataDir(), env })
const logOf = (shard: number) => join(dataDir(), `shard-${shard}`, 'log')
const doctor = (env: Record<string, string>) =>
  startCommand(['doctor'], {
    SERVICE_DATA_DIR: dataDir(),
    SERVICE_PORT: '1',
    SERVICE_ROOT_API_KEY: testRootKey,
    ...env,
  }).ended

/** Writes records to agents of every shard, and kills the server before LMDB has them. */
async function writeAndKill(): Promise<void> {
  for (let n = 0; n < 20; n++, written++) {
    const body = { data: { marker: `written before a crash ${written}` } }
    expect((await checkedCall(server, `POST /v1/collections/notes-${n % 4}/records`, { body })).status).toBe(
      201,
    )
  }
  await server.halt('SIGKILL')
}

async function expectAll(): Promise<void> {
  const found = new Set<string>()
  for (let n = 0; n < 4; n++) {
    const { status, text } = await checkedCall(server, `GET /v1/strand/export?agent=notes-${n}`)
    expect(status).toBe(200)
    for (const marker of text.matchAll(/written before a crash \d+/g)) found.add(marker[0])
  }
  expect(found.size).toBe(written)
}

it('contains the log of each shard from the first start on', async () => {
  expect(readdirSync(logDir).sort()).toEqual(['owner', 'shard-0', 'shard-1'])
  await writeAndKill()
  const files = ['shard-0', 'shard-1'].map((name) => readFileSync(join(logDir, name, '1.log'), 'latin1'))
  expect(files.join('')).toContain(`written before a crash ${written - 1}`)
})

it('keeps records from before a crash when the next start changes or removes the folder', async () => {
  const second = join(folder, 'second-disk')
  for (const env of [{ SERVICE_LOG_DIR: second }, {}, { SERVICE_LOG_DIR: logDir }]) {
    server = await start(env)
    const wanted = 'SERVICE_LOG_DIR' in env ? join(env.SERVICE_LOG_DIR, 'shard-1') : logOf(1)
    expect(realpathSync(logOf(1))).toBe(wanted)
    await expectAll()
    await writeAndKill()
  }
  expect(readdirSync(second)).toEqual(['owner'])
})

it('is checked by doctor, with its disk', async () => {
  const { stdout, code } = await doctor({ SERVICE_LOG_DIR: logDir })
  expect(code).toBe(0)
  expect(stdout).toContain('log directory')
  expect(stdout).toContain('the log of shard-1 is intact')
  const other = await doctor({ SERVICE_LOG_DIR: dataDir() })
  expect([other.code, other.stdout]).toEqual([1, expect.stringContaining('use an empty folder')])
})

it('is refused for a copy of the data directory, because its links lead to the same logs', async () => {
  const copy = join(folder, 'copy')
  copyData(dataDir(), copy)
  // Like `cp -a`.
  for (const name of ['', 'shard-0', 'shard-1']) chmodSync(join(copy, name), 0o700)
  const { code, stderr } = await startCommand(['serve'], {
    SERVICE_DATA_DIR: copy,
    SERVICE_LOG_DIR: logDir,
    SERVICE_PORT: '0',
  }).ended
  expect([code, stderr]).toEqual([
    78,
    expect.stringContaining(`contains the logs of the data directory ${dataDir()}`),
  ])
})

it('is kept when strands move to another number of shards', async () => {
  const { status } = runReshard(dataDir(), 1, { SERVICE_LOG_DIR: logDir })
  expect(status).toBe(0)
  expect(readdirSync(logDir)).toEqual(['owner'])
  server = await start({ SERVICE_LOG_DIR: logDir })
  expect(lstatSync(logOf(0)).isSymbolicLink()).toBe(true)
  expect(existsSync(join(logDir, 'shard-0/1.log'))).toBe(true)
  await expectAll()
})
