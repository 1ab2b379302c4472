import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type DataDirectory,
  type DataDirectorySettings,
  freeBytes,
  openDataDirectory,
} from '../../../src/data/directory.js'
import { fingerprintOf } from '../../../src/data/derived-keys.js'

let folder: string
let dataDir: string
const opened: DataDirectory[] = []
const children: ChildProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'data-directory-'))
  dataDir = join(folder, 'nested', 'data')
})
afterEach(async () => {
  for (const directory of opened.splice(0)) directory.close()
  for (const child of children.splice(0)) await end(child)
  rmSync(folder, { recursive: true })
})

/** Different bytes for each call, the same in each run. */
function countingBytes(): (count: number) => Uint8Array {
  let next = 1
  return (count) => Buffer.alloc(count, next++)
}

function open(
  settings: Omit<DataDirectorySettings, 'dataDir'> = {},
  random = countingBytes(),
): DataDirectory {
  const opening = openDataDirectory({ dataDir, ...settings }, random, () => 1_700_000_000_000)
  if (!opening.ok) throw new Error(opening.detail)
  opened.push(opening.directory)
  return opening.directory
}

function close(directory: DataDirectory): void {
  opened.splice(opened.indexOf(directory), 1)
  directory.close()
}

function refusal(settings: Omit<DataDirectorySettings, 'dataDir'> = {}): string {
  const opening = openDataDirectory({ dataDir, ...settings }, countingBytes())
  if (!opening.ok) return opening.detail
  opened.push(opening.directory)
  throw new Error('Expected the data directory to be refused')
}

/**
 * Starts a process that opens the data directory and holds it until it is killed. @returns the process and
 * the result of opening
 */
async function openInChild(): Promise<{ child: ChildProcess; output: string }> {
  const built = fileURLToPath(new URL('../../../dist/src/data/directory.js', import.meta.url))
  const program = `
    const { openDataDirectory } = await import(${JSON.stringify(built)})
    const opening = openDataDirectory({ dataDir: ${JSON.stringify(dataDir)} }, (count) => Buffer.alloc(count, 7))
    process.stdout.write(opening.ok ? 'opened' : opening.detail)
    if (opening.ok) setInterval(() => {}, 60_000)
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const [output]: unknown[] = await once(child.stdout, 'data')
  return { child, output: String(output) }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

describe('the first start', () => {
  it('creates the directory, its secrets and its format, readable only by the owner', () => {
    const directory = open({ shards: 3 })
    const stores = ['shard-0.tmp', 'shard-1.tmp', 'shard-2.tmp']
    const files = ['format.json', 'lock', 'master.seed', 'root.key']
    expect(readdirSync(dataDir).sort()).toEqual([...files, ...stores])
    expect(statSync(dataDir).mode & 0o777).toBe(0o700)
    for (const name of files) expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600)
    for (const name of stores) expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o700)
    expect(JSON.parse(readFileSync(join(dataDir, 'format.json'), 'utf8'))).toEqual({
      format: 2,
      shards: 3,
      created_at_ms: 1_700_000_000_000,
      master_seed_fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(directory.path).toBe(dataDir)
    expect(directory.shards).toBe(3)
    expect(directory.masterSeed).toEqual(Buffer.alloc(32, 1))
    expect(readFileSync(join(dataDir, 'master.seed'), 'utf8').trim()).toBe('01'.repeat(32))
  })

  it('creates a root key and returns it once', () => {
    const first = open()
    const key = `sf_root_${Buffer.alloc(32, 2).toString('base64url')}`
    expect(first.rootKeyCreated).toBe(key)
    expect(first.rootKeyDigest).toEqual(createHash('sha256').update(key).digest())
    close(first)
    const second = open()
    expect(second.rootKeyCreated).toBeUndefined()
    expect(second.rootKeyDigest).toEqual(first.rootKeyDigest)
    expect(second.masterSeed).toEqual(first.masterSeed)
  })

  it('stores no secret that is set', () => {
    const directory = open({ masterSeed: Buffer.alloc(32, 9), rootApiKey: 'k'.repeat(32) })
    expect(directory.rootKeyCreated).toBeUndefined()
    expect(directory.rootKeyDigest).toEqual(createHash('sha256').update('k'.repeat(32)).digest())
    expect(readdirSync(dataDir).sort()).toEqual(['format.json', 'lock', 'shard-0.tmp', 'shard-1.tmp'])
    expect(readFileSync(join(dataDir, 'format.json'), 'utf8')).not.toContain('09'.repeat(32))
  })

  it('creates between 1 and 16 shards by default', () => {
    const { shards } = open()
    expect(shards).toBeGreaterThanOrEqual(1)
    expect(shards).toBeLessThanOrEqual(16)
  })

  it('refuses a directory with foreign files and leaves it unchanged', () => {
    mkdirSync(dataDir, { recursive: true })
    writeFileSync(join(dataDir, 'thesis.doc'), 'x')
    expect(refusal()).toContain('thesis.doc')
    expect(existsSync(join(dataDir, 'master.seed'))).toBe(false)
  })

  it('reports a directory that cannot be created', () => {
    mkdirSync(join(folder, 'nested'))
    writeFileSync(dataDir, 'a file')
    expect(refusal()).toMatch(/cannot be used: EEXIST/)
  })
})

describe('an interrupted first start', () => {
  const files = ['master.seed', 'root.key', 'format.json']

  it.each([0, 1, 2])('is completed after %i of its files', (kept) => {
    const first = open({ shards: 2 })
    close(first)
    for (const name of files.slice(kept)) rmSync(join(dataDir, name))
    writeFileSync(join(dataDir, `${files[kept]}.tmp`), 'half')
    const other = (count: number) => Buffer.alloc(count, 0xee)
    const second = open({ shards: 2 }, other)
    expect(second.masterSeed).toEqual(kept > 0 ? first.masterSeed : Buffer.alloc(32, 0xee))
    // The key was on disk but may never have been shown.
    expect(second.rootKeyCreated).toBe(
      kept > 1 ? first.rootKeyCreated : `sf_root_${Buffer.alloc(32, 0xee).toString('base64url')}`,
    )
    const names = ['format.json', 'lock', 'master.seed', 'root.key']
    expect(readdirSync(dataDir).sort()).toEqual([...names, 'shard-0.tmp', 'shard-1.tmp'])
  })
})

describe('a later start', () => {
  it('uses the number of shards of the directory by default', () => {
    close(open({ shards: 5 }))
    expect(open().shards).toBe(5)
  })

  it('refuses another number of shards and names the command to change it', () => {
    close(open({ shards: 5 }))
    expect(refusal({ shards: 4 })).toContain('strandfast reshard --shards 4')
  })

  it('refuses an unknown format and names it', () => {
    close(open())
    writeFileSync(join(dataDir, 'format.json'), '{"format": 4, "shards": "many"}')
    expect(refusal()).toContain('has format 4')
  })

  it('refuses a directory of format 1, names the last commit that reads it, and changes nothing', () => {
    close(open())
    const file = join(dataDir, 'format.json')
    const former = readFileSync(file, 'utf8').replace('"format": 2', '"format": 1')
    writeFileSync(file, former)
    expect(refusal()).toMatch(/has format 1 .* commit [0-9a-f]{8} .* upgrade it/)
    expect(readFileSync(file, 'utf8')).toBe(former)
  })

  it.each(['', '{', '[]', 'null', '{"format":2}', '{"format":2,"shards":0,"created_at_ms":1}'])(
    'refuses a damaged format.json: %s',
    (text) => {
      close(open())
      writeFileSync(join(dataDir, 'format.json'), text)
      expect(refusal()).toContain('damaged')
    },
  )

  it('refuses a master seed that does not match', () => {
    close(open({ masterSeed: Buffer.alloc(32, 9) }))
    expect(refusal({ masterSeed: Buffer.alloc(32, 8) })).toContain('does not match')
    expect(open({ masterSeed: Buffer.alloc(32, 9) }).masterSeed).toEqual(Buffer.alloc(32, 9))
  })

  it('refuses a missing or changed master.seed and creates no new one', () => {
    close(open())
    writeFileSync(join(dataDir, 'master.seed'), '02'.repeat(32))
    expect(refusal()).toContain('master.seed')
    rmSync(join(dataDir, 'master.seed'))
    expect(refusal()).toContain('missing')
    expect(existsSync(join(dataDir, 'master.seed'))).toBe(false)
  })

  it('refuses a directory with a missing store and creates no empty one', () => {
    close(open({ shards: 2 }))
    for (const name of ['shard-0', 'shard-1']) {
      renameSync(join(dataDir, `${name}.tmp`), join(dataDir, name))
      writeFileSync(join(dataDir, name, 'data.mdb'), '')
    }
    close(open())
    rmSync(join(dataDir, 'shard-1', 'data.mdb'))
    expect(refusal()).toContain('shard-1 is missing')
    rmSync(join(dataDir, 'shard-1'), { recursive: true })
    expect(refusal()).toContain('shard-1 is missing')
  })

  it('creates a new root key when root.key was removed', () => {
    close(open())
    rmSync(join(dataDir, 'root.key'))
    expect(open().rootKeyCreated).toMatch(/^sf_root_/)
  })

  it('refuses a root.key that is too short', () => {
    close(open())
    writeFileSync(join(dataDir, 'root.key'), 'short')
    expect(refusal()).toContain('root.key')
  })
})

describe('the directory of a node of a cluster', () => {
  const masterSeed = Buffer.alloc(32, 7)
  const origin = {
    id: 'c1'.repeat(16),
    shards: 2,
    layout: 0,
    seedFingerprint: fingerprintOf(masterSeed),
    createdAtMs: 1_700_000_000_000,
    tokenEra: 5,
    revision: 2,
  }
  const rootApiKey = 'k'.repeat(32)

  it('stores its cluster and opens while the row of the cluster is unchanged', () => {
    const directory = open({ masterSeed, rootApiKey, origin })
    expect(directory).toMatchObject({ cluster: origin.id, shards: 2, tokenEra: 5 })
    close(directory)
    expect(open({ masterSeed, rootApiKey, origin: { ...origin, revision: 3 } })).toMatchObject({ shards: 2 })
  })

  it.each([
    ['shards', { shards: 3 }, 'shards 3 in the database and 2 in the directory'],
    ['layout', { layout: 1 }, 'layout 1 in the database and 0 in the directory'],
    ['token era', { tokenEra: 0 }, 'token era 0 in the database and 5 in the directory'],
    ['creation time', { createdAtMs: 1 }, 'created at 1 in the database and 1700000000000 in the directory'],
    ['revision', { revision: 1 }, 'revision 1 in the database and 2 in the directory'],
  ])('is refused if the row of its cluster has another %s', (_name, other, message) => {
    close(open({ masterSeed, rootApiKey, origin }))
    expect(refusal({ masterSeed, rootApiKey, origin: { ...origin, ...other } })).toContain(message)
    open({ masterSeed, rootApiKey, origin })
  })
})

describe('the lock', () => {
  it('refuses a second holder in the same process until it is closed', () => {
    const first = open()
    expect(refusal()).toContain(`in use by process ${process.pid}`)
    close(first)
    open()
  })

  it('is free again after a refused start', () => {
    close(open({ shards: 5 }))
    expect(refusal({ shards: 4 })).toContain('reshard')
    expect(open().shards).toBe(5)
  })

  it('refuses a second process', async () => {
    open()
    const { output } = await openInChild()
    expect(output).toContain(`in use by process ${process.pid}`)
  })

  it('is free after its holder was killed', async () => {
    const { child, output } = await openInChild()
    expect(output).toBe('opened')
    expect(refusal()).toContain(`in use by process ${child.pid}`)
    await end(child)
    expect(open().masterSeed).toEqual(Buffer.alloc(32, 7))
  })
})

it('returns the free space of a disk', () => {
  expect(freeBytes(folder)).toBeGreaterThan(0)
})
