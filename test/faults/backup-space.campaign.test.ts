import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  rmdirSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startCommand } from '../support/server/backup.js'
import { eventually } from '../support/eventually.js'
import { leftOut } from '../support/faults/rounds.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/* Separate disks, which only root may mount: one for the data, one for the backup. */

const MEBIBYTE = 1_048_576
const DISK_BYTES = 224 * MEBIBYTE
const MARK_BYTES = 16 * MEBIBYTE
const LINES = 140_000

const missing =
  process.platform !== 'linux' || process.getuid?.() !== 0 ? 'no root to mount a small disk' : undefined

let directory: string
let source: string
let target: string
let server: TestServer

beforeEach(async () => {
  if (missing !== undefined) return
  directory = mkdtempSync(join(tmpdir(), 'strandfast-space-'))
  ;[source, target] = [mounted('source'), mounted('target')]
  server = await startServer({
    dataDir: join(source, 'data'),
    env: { SERVICE_SHARDS: '2', SERVICE_MIN_FREE_BYTES: String(MARK_BYTES) },
  })
  const line = JSON.stringify({ text: 'x'.repeat(400) })
  const raw = `${line}\n`.repeat(LINES)
  const type = { 'content-type': 'application/x-ndjson' }
  const ingested = await call(server, 'POST /v1/ingest/big?signing=group', { raw, headers: type })
  expect(ingested.body).toMatchObject({ accepted: LINES })
})

afterEach(async () => {
  if (missing !== undefined) return
  await server.halt('SIGKILL')
  for (const disk of [source, target]) run('umount', disk)
  for (const disk of [source, target, directory]) rmdirSync(disk)
})

function mounted(name: string): string {
  const disk = join(directory, name)
  mkdirSync(disk)
  run('mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=0700`, 'tmpfs', disk)
  return disk
}

function run(command: string, ...parameters: string[]): void {
  const { status, stderr } = spawnSync(command, parameters, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`)
}

/** Fills a disk until only `bytes` bytes are free. */
function fillDiskBut(disk: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(join(disk, 'ballast'), Buffer.alloc(Math.max(0, bavail * bsize - bytes)))
}

function backup(to: string) {
  const env = { SERVICE_DATA_DIR: server.dataDir, SERVICE_MIN_FREE_BYTES: String(MARK_BYTES) }
  return startCommand(['backup', to], env).ended
}

async function expectWriting(): Promise<void> {
  const { status } = await call(server, 'POST /v1/collections/a/records', { body: { data: {} } })
  expect(status).toBe(201)
}

describe.skipIf(leftOut(missing))('a backup', () => {
  it('is refused before anything is copied when there is not enough free space', async () => {
    fillDiskBut(target, 40 * MEBIBYTE)
    const small = await backup(join(target, 'copy'))
    expect(small.stderr).toMatch(
      /^The backup failed: The copy at \S+ needs \d+ MiB of free space, but only \d+ MiB are free\n$/m,
    )
    expect(small.code).toBe(1)
    expect(existsSync(join(target, 'copy'))).toBe(false)
    // On the disk of the data, the backup must leave the free space that the server needs.
    fillDiskBut(source, 100 * MEBIBYTE)
    const beside = await backup(join(source, 'copy'))
    expect(beside.stderr).toContain('of free space, but only')
    expect(beside.code).toBe(1)
    expect(existsSync(join(source, 'copy'))).toBe(false)
  })

  it('is cancelled by the server when the disk of the data runs low during it, and writes still succeed', async () => {
    const to = ['shard-0', 'shard-1'].map((name) => join(target, name))
    for (const path of to) mkdirSync(path)
    // Leaves little space, because the copy is too fast to fill a disk during it.
    fillDiskBut(source, 26 * MEBIBYTE)
    const socket = connect(join(server.dataDir, 'control.sock'))
    let output = ''
    socket.on('data', (bytes: Buffer) => (output += bytes.toString()))
    socket.write(`${JSON.stringify({ copy_to: to })}\n`)
    await eventually(() => readdirSync(to[0] ?? '').length > 0)
    writeFileSync(join(source, 'more'), Buffer.alloc(8 * MEBIBYTE))
    await eventually(() => /"(?:failed|copied)":/.test(output))
    expect(output).toContain('"failed":"The copy was stopped, so that the server can continue to write: ')
    socket.destroy()
    await expectWriting()
    expect((await backup(join(target, 'later'))).stderr).toContain('The copy was stopped')
    for (const name of ['ballast', 'more']) rmSync(join(source, name))
    await eventually(async () => (await backup(join(target, 'later'))).code === 0)
  })
})
