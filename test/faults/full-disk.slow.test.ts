import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  rmdirSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { eventually } from '../support/eventually.js'
import { isCaughtUp, numbersOf, openStream } from '../support/http/events.js'
import { leftOut } from '../support/faults/rounds.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/* A separate disk that is small enough to be filled: a tmpfs, which only root may mount. */

const DISK_BYTES = 24 * 1_048_576
const MARK_BYTES = 4 * 1_048_576
const PAGE_BYTES = 4_096

const missing =
  process.platform !== 'linux' || process.getuid?.() !== 0 ? 'no root to mount a small disk' : undefined

let disk: string
let server: TestServer
/** Numbers whose writes were acknowledged, and those whose writes had an unknown outcome. */
let answered: number[]
let unsure: number[]

beforeEach(() => {
  answered = []
  unsure = []
  if (missing !== undefined) return
  disk = mkdtempSync(join(tmpdir(), 'strandfast-disk-'))
  run('mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=0700`, 'tmpfs', disk)
})

afterEach(async () => {
  if (missing !== undefined) return
  await server.halt('SIGKILL')
  run('umount', disk)
  rmdirSync(disk)
})

function run(command: string, ...parameters: string[]): void {
  const { status, stderr } = spawnSync(command, parameters, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`)
}

async function start(env: Record<string, string> = {}): Promise<void> {
  server = await startServer({
    dataDir: join(disk, 'data'),
    env: { SERVICE_SHARDS: '2', SERVICE_MIN_FREE_BYTES: String(MARK_BYTES), ...env },
  })
}

/** Fills the disk until only `bytes` bytes are free. */
function fillDiskBut(bytes: number): void {
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(join(disk, 'ballast'), Buffer.alloc(Math.max(0, bavail * bsize - bytes)))
}

function freeDisk(): void {
  rmSync(join(disk, 'ballast'))
}

/** Removes the zeros after the last page of a store, as if it were restored from a backup. */
function dropPreallocated(file: string): void {
  const bytes = readFileSync(file)
  let used = bytes.length
  while (bytes[used - 1] === 0) used--
  truncateSync(file, Math.ceil(used / PAGE_BYTES) * PAGE_BYTES)
}

function addressFile(): string {
  return join(disk, 'data/address')
}

/** Writes record `n`. @returns the status; 0 if the process ended */
async function write(n: number, bytes = 0): Promise<number> {
  unsure.push(n)
  try {
    const { status } = await call(server, 'POST /v1/collections/full/records', {
      body: { data: { n, pad: 'x'.repeat(bytes) } },
    })
    if (status === 201) answered.push(n)
    // Any other refusal means that nothing was written.
    if (![0, 500, 503].includes(status)) unsure.pop()
    return status
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return 0
  }
}

async function numbers(): Promise<number[]> {
  const { text } = await call(server, 'GET /v1/strand/export?agent=full')
  const lines = text.trimEnd().split('\n')
  expect(await verifyExport(lines)).toMatchObject({ ok: true })
  return lines.slice(2, -1).map((line): number => JSON.parse(JSON.parse(line).body).n)
}

/** Expects all acknowledged records once, in order, and no refused ones. */
async function expectAll(): Promise<void> {
  const found = await numbers()
  expect(found).toEqual([...new Set(found)].toSorted((a, b) => a - b))
  expect(answered.filter((n) => !found.includes(n))).toEqual([])
  expect(found.filter((n) => !answered.includes(n) && !unsure.includes(n))).toEqual([])
}

async function statusOf(path: string): Promise<number> {
  return (await call(server, `GET ${path}`, { key: null })).status
}

describe.skipIf(leftOut(missing))('a disk that fills up', () => {
  it('makes the server read-only below the limit of free space, until there is space again', async () => {
    await start()
    expect(await write(0)).toBe(201)
    const stream = await openStream(server, '/v1/agents/full/stream?since=0')
    await stream.until(isCaughtUp)
    fillDiskBut(MARK_BYTES / 2)
    let n = 1
    await eventually(async () => (await write(n++)) === 507)
    expect(await statusOf('/readyz')).toBe(503)
    expect(await statusOf('/healthz')).toBe(200)
    const refusal = await call(server, 'POST /v1/collections/full/records', { body: { data: { n: -1 } } })
    expect({ status: refusal.status, code: refusal.body.code }).toEqual({ status: 507, code: 'storage_full' })
    await expectAll()
    await stream.until((events) => numbersOf(events).length === answered.length)
    await (await openStream(server, '/v1/stream?since=0')).until(isCaughtUp)
    await server.halt()
    await start()
    expect(await write(n++)).toBe(507)
    await expectAll()
    freeDisk()
    await eventually(async () => (await write(n++)) === 201)
    expect(await statusOf('/readyz')).toBe(200)
    await expectAll()
  })

  it('loses no record even if a server fills it to the last byte, and service resumes when there is space', async () => {
    // Without the server log, which would continue to write: each failed commit aborts exports.
    const careless = { SERVICE_MIN_FREE_BYTES: '0', SERVICE_LOG_INTERVAL_SECS: '0' }
    await start(careless)
    expect(await write(0)).toBe(201)
    fillDiskBut(65_536)
    let n = 1
    let status = 201
    while (status === 201) status = await write(n++, 8_192)
    expect([0, 500, 503, 507]).toContain(status)
    // Answers must stay right, even after several reopenings of the store.
    for (let tries = 0; tries < 10; tries++) await write(n++, 8_192)
    if (server.process.exitCode !== null || server.process.signalCode !== null) await start(careless)
    await eventually(async () => (await statusOf('/readyz')) === 200)
    await expectAll()
    await server.halt()
    await start(careless)
    await expectAll()
    freeDisk()
    await eventually(async () => (await write(n++)) === 201)
    await expectAll()
    await server.halt()
    await start()
    await expectAll()
  })

  it('allows a server to start read-only, which can write once there is space', async () => {
    // Without the default agent, which a start creates if it is missing.
    await start({ SERVICE_AGENT_ID: 'other' })
    expect(await write(0)).toBe(201)
    expect(await server.halt()).toBe(0)
    for (const shard of [0, 1]) dropPreallocated(join(disk, `data/shard-${shard}/data.mdb`))
    fillDiskBut(0)
    for (const agent of ['other', 'later']) {
      await start({ SERVICE_AGENT_ID: agent })
      expect(await statusOf('/readyz')).toBe(503)
      expect(await write(1)).toBe(507)
      await expectAll()
      // The address file must never be empty.
      expect([existsSync(addressFile()), existsSync(`${addressFile()}.tmp`)]).toEqual([false, false])
      if (agent === 'other') expect(await server.halt()).toBe(0)
    }
    freeDisk()
    await eventually(async () => (await statusOf('/readyz')) === 200)
    await eventually(async () => (await call(server, 'GET /v1/agents/later/status')).status === 200)
    await eventually(async () => existsSync(addressFile()))
    expect(readFileSync(addressFile(), 'utf8')).toBe(`${server.url}\n`)
    expect(await write(1)).toBe(201)
  })

  it('is detected before LMDB writes: writes return 507 and no thread ends, however little space is left', async () => {
    await start({ SERVICE_MIN_FREE_BYTES: '0', SERVICE_LOG_INTERVAL_SECS: '0' })
    let n = 0
    const refused: number[] = []
    for (const left of [0, 4_096, 65_536, 1_048_576, 3_000_000]) {
      fillDiskBut(left)
      let status = 201
      while (status === 201) status = await write(n++, 100_000)
      refused.push(status)
      freeDisk()
      await eventually(async () => (await write(n++)) === 201)
    }
    expect(refused).toEqual([507, 507, 507, 507, 507])
    expect(server.stderr()).not.toMatch(/writ(e|ing) |thread/i)
    await expectAll()
  })
})
