import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { systemClock } from '../../src/base/clock.js'
import { pooledRandom } from '../../src/base/random.js'
import { openDataDirectory } from '../../src/data/directory.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { backUp, restore, startCommand } from '../support/server/backup.js'
import { DiskImage } from '../support/faults/disk-image.js'
import { buildDiskShim, shimMissing, type DiskShim } from '../support/faults/disk-shim.js'
import { readTrace, type DiskCall } from '../support/faults/disk-trace.js'
import { leftOut } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'
import { startServer } from '../support/server/server.js'

/*
 * The calls of one restore are traced. The state that a kill or a loss of power before each call may leave is
 * computed from the earlier calls, so that every step is checked.
 */

/** The state after a loss of power is random, so several are checked at each step. */
const CUTS = 2
/** After each interval of so many steps, the restore is repeated on the remaining state. */
const AGAIN_EVERY = 24

let directory: string
let backup: string
/** The files of the backup, by their paths in a data directory. */
let files: Map<string, Buffer>
let calls: DiskCall[]

describe.skipIf(leftOut(shimMissing))('a restore that is interrupted before any of its calls', () => {
  let shim: DiskShim
  beforeAll(async () => {
    shim = buildDiskShim()
    directory = mkdtempSync(join(tmpdir(), 'strandfast-restore-steps-'))
    backup = await makeBackup()
    files = new Map()
    const { files: listed }: { files: { path: string }[] } = JSON.parse(
      readFileSync(join(backup, 'manifest.json'), 'utf8'),
    )
    for (const { path } of listed) files.set(path, readFileSync(join(backup, path)))
    calls = await traceRestore(shim)
  })
  afterAll(() => {
    shim.remove()
    rmSync(directory, { recursive: true, force: true })
  })

  it('is complete after a kill, or leaves a directory that a server refuses and the next restore completes', async () => {
    await eachStep(1, (image, target) => image.writeAfterKill(target))
  })

  it('is complete after a loss of power, or leaves a directory that a server refuses and the next restore completes', async () => {
    const random = seededRandom(runSeed('restore steps'))
    await eachStep(CUTS, (image, target) => image.writeAfterPowerLoss(target, random))
  })
})

async function makeBackup(): Promise<string> {
  const server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  try {
    for (const name of ['a', 'b', 'c']) {
      await newAgent(server, name)
      await checkedCall(server, `POST /v1/agents/${name}/records`, { body: { data: { name } } })
    }
    const path = join(directory, 'backup')
    expect((await backUp(server.dataDir, path)).code).toBe(0)
    return path
  } finally {
    await server.stop()
  }
}

/** Restores the backup. @returns the calls that changed the data directory, in order */
async function traceRestore(shim: DiskShim): Promise<DiskCall[]> {
  const dataDir = join(directory, 'restored')
  mkdirSync(dataDir, { mode: 0o700 })
  const trace = join(directory, 'trace')
  const settings = { SHIM_TRACE: trace, SERVICE_DATA_DIR: dataDir }
  const { code, stderr } = await startCommand(['restore', backup], shim.under(dataDir, settings)).ended
  expect([code, stderr]).toEqual([0, expect.any(String)])
  const seen = readTrace(trace)
  rmSync(dataDir, { recursive: true })
  return seen
}

/** Checks the data directory `times` times before each call and after the last. */
async function eachStep(times: number, leave: (image: DiskImage, target: string) => void): Promise<void> {
  const dataDir = join(directory, 'restored')
  mkdirSync(dataDir, { mode: 0o700 })
  const image = new DiskImage(dataDir)
  const seen = { nothing: 0, part: 0, whole: 0 }
  for (let look = 0; look < (calls.length + 1) * times; look++) {
    const step = Math.floor(look / times)
    rmSync(dataDir, { recursive: true })
    leave(image, dataDir)
    const left = stateOf(dataDir)
    const where = `step ${step} of ${calls.length}: ${readdirSync(dataDir).join(', ')}`
    expect(left, where).not.toBe('wrong')
    if (left !== 'wrong') seen[left]++
    if (left === 'part' && look % (AGAIN_EVERY * times) === 0) {
      const { code, stderr } = await restore(backup, dataDir)
      expect([code, stderr], where).toEqual([0, expect.any(String)])
      expect(stateOf(dataDir)).toBe('whole')
    }
    if (look % times === times - 1) image.replay(calls.slice(step, step + 1))
  }
  rmSync(dataDir, { recursive: true })
  for (const count of Object.values(seen)) expect(count, JSON.stringify(seen)).toBeGreaterThan(0)
}

/** `wrong` means that a server would start although the content is not that of the backup. */
function stateOf(dataDir: string): 'nothing' | 'part' | 'whole' | 'wrong' {
  const isComplete = [...files.keys()].every(
    (path) => existsSync(join(dataDir, path)) && isAsRestored(path, readFileSync(join(dataDir, path))),
  )
  if (isComplete) return 'whole'
  if (readdirSync(dataDir).every((name) => name === 'lock')) return 'nothing'
  const opening = openDataDirectory({ dataDir }, pooledRandom(), systemClock)
  if (opening.ok) opening.directory.close()
  return !opening.ok && opening.detail.includes('was interrupted') ? 'part' : 'wrong'
}

/**
 * Whether a file is that of the backup. Only format.json differs: it has a token era, which makes earlier
 * tokens invalid.
 */
function isAsRestored(path: string, bytes: Buffer): boolean {
  const before = files.get(path)
  if (before === undefined || path !== 'format.json') return before?.equals(bytes) === true
  const { token_era: era, ...format } = JSON.parse(bytes.toString())
  return era > 0 && JSON.stringify(format) === JSON.stringify(JSON.parse(before.toString()))
}
