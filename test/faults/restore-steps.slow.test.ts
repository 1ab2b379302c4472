import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { systemClock } from '../../src/base/clock.js'
import { pooledRandom } from '../../src/base/random.js'
import { openDataDirectory } from '../../src/data/directory.js'
import { ask, newAgent } from '../support/http/answers.js'
import { backUp, restore, startCommand } from '../support/server/backup.js'
import { DiskImage } from '../support/faults/disk-image.js'
import { buildDiskShim, shimMissing, type DiskShim } from '../support/faults/disk-shim.js'
import { readTrace, type DiskCall } from '../support/faults/disk-trace.js'
import { leftOut } from '../support/faults/rounds.js'
import { runSeed } from '../support/run-seed.js'
import { startServer } from '../support/server/server.js'

/*
 * One restore is watched call by call. What a kill leaves before each of its calls, and what a cut of the power may leave,
 * follows from the calls before; so each step is looked at, and none is left to chance.
 */

/** What a loss of power leaves is for chance to say: it is asked so often at each step. */
const CUTS = 2
/** After every so many steps the restore is begun again on what was left. */
const AGAIN_EVERY = 24

let directory: string
let backup: string
/** What the backup is of, by the names in a data directory. */
let files: Map<string, Buffer>
let calls: DiskCall[]

describe.skipIf(leftOut(shimMissing))('a restore that ends before any of its calls', () => {
  let shim: DiskShim
  beforeAll(async () => {
    shim = buildDiskShim()
    directory = mkdtempSync(join(tmpdir(), 'strandfast-restore-steps-'))
    backup = await makeBackup()
    files = new Map()
    const { files: named }: { files: { path: string }[] } = JSON.parse(
      readFileSync(join(backup, 'manifest.json'), 'utf8'),
    )
    for (const { path } of named) files.set(path, readFileSync(join(backup, path)))
    calls = await watchRestore(shim)
  })
  afterAll(() => {
    shim.remove()
    rmSync(directory, { recursive: true, force: true })
  })

  it('leaves all of it, or a directory that no server starts on and the next restore takes over, after a kill', async () => {
    await eachStep(1, (image, target) => image.write(target))
  })

  it('leaves all of it, or a directory that no server starts on and the next restore takes over, after a loss of power', async () => {
    const random = seededRandom(runSeed('restore steps'))
    await eachStep(CUTS, (image, target) => image.cut(target, random))
  })
})

async function makeBackup(): Promise<string> {
  const server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  try {
    for (const name of ['a', 'b', 'c']) {
      await newAgent(server, name)
      await ask(server, `POST /v1/agents/${name}/records`, { body: { data: { name } } })
    }
    const path = join(directory, 'backup')
    expect((await backUp(server.dataDir, path)).code).toBe(0)
    return path
  } finally {
    await server.stop()
  }
}

/** Restores the backup. @returns what was done to the data directory, in order */
async function watchRestore(shim: DiskShim): Promise<DiskCall[]> {
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

/** Looks at what is left of the data directory before each call, and after the last, `times` each. */
async function eachStep(times: number, leave: (image: DiskImage, target: string) => void): Promise<void> {
  const dataDir = join(directory, 'restored')
  mkdirSync(dataDir, { mode: 0o700 })
  const image = new DiskImage(dataDir)
  const seen = { nothing: 0, part: 0, whole: 0 }
  for (let look = 0; look < (calls.length + 1) * times; look++) {
    const step = Math.floor(look / times)
    rmSync(dataDir, { recursive: true })
    leave(image, dataDir)
    const left = whatIsLeft(dataDir)
    const where = `step ${step} of ${calls.length}: ${readdirSync(dataDir).join(', ')}`
    expect(left, where).not.toBe('wrong')
    if (left !== 'wrong') seen[left]++
    if (left === 'part' && look % (AGAIN_EVERY * times) === 0) {
      const { code, stderr } = await restore(backup, dataDir)
      expect([code, stderr], where).toEqual([0, expect.any(String)])
      expect(whatIsLeft(dataDir)).toBe('whole')
    }
    if (look % times === times - 1) image.replay(calls.slice(step, step + 1))
  }
  rmSync(dataDir, { recursive: true })
  for (const count of Object.values(seen)) expect(count, JSON.stringify(seen)).toBeGreaterThan(0)
}

/** `wrong`: what a server would start on, and is not what the backup holds. */
function whatIsLeft(dataDir: string): 'nothing' | 'part' | 'whole' | 'wrong' {
  const kept = [...files.keys()].every(
    (path) => existsSync(join(dataDir, path)) && isAsRestored(path, readFileSync(join(dataDir, path))),
  )
  if (kept) return 'whole'
  if (readdirSync(dataDir).every((name) => name === 'lock')) return 'nothing'
  const opening = openDataDirectory({ dataDir }, pooledRandom(), systemClock)
  if (opening.ok) opening.directory.close()
  return !opening.ok && opening.detail.includes('was cut off') ? 'part' : 'wrong'
}

/** Every file is that of the backup, but that format.json has an era of tokens, without which old ones would be good. */
function isAsRestored(path: string, bytes: Buffer): boolean {
  const before = files.get(path)
  if (before === undefined || path !== 'format.json') return before?.equals(bytes) === true
  const { token_era: era, ...format } = JSON.parse(bytes.toString())
  return era > 0 && JSON.stringify(format) === JSON.stringify(JSON.parse(before.toString()))
}
