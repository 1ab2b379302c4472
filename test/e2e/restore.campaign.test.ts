import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { between, seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { openEnvironment } from '../../workers/store/open-environment.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { backUp, restore, startCommand } from '../support/server/backup.js'
import { eventually } from '../support/eventually.js'
import { call, startServer } from '../support/server/server.js'

const SHARDS = 2
const RECORDS = 300

let directory: string
let backup: string
let bare: string
let seed: string

/** Backups of the directory of a stopped server, with and without the secrets. */
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-restore-'))
  const dataDir = join(directory, 'data')
  const server = await startServer({ dataDir, env: { SERVICE_SHARDS: String(SHARDS) } })
  for (const name of ['a', 'b', 'c', 'd']) {
    await newAgent(server, name)
    const lines = Array.from({ length: RECORDS }, (_none, n) =>
      JSON.stringify({ n, marker: `marker-${name}` }),
    )
    const headers = { 'content-type': 'application/x-ndjson' }
    expect(
      (await checkedCall(server, `POST /v1/ingest/${name}`, { raw: lines.join('\n'), headers })).status,
    ).toBe(200)
  }
  const { body } = await checkedCall(server, 'POST /v1/agents/a/query', { body: { type: 'latest' } })
  await checkedCall(server, `DELETE /v1/agents/a/records/${body.records[0].record_id}`)
  await server.halt()
  backup = join(directory, 'backup')
  bare = join(directory, 'bare')
  for (const ended of [await backUp(dataDir, backup), await backUp(dataDir, bare, '--no-secrets')]) {
    expect([ended.code, ended.stderr]).toEqual([0, expect.not.stringContaining('failed')])
  }
  seed = readFileSync(join(dataDir, 'master.seed'), 'utf8').trim()
})

afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A changed copy of the backup. */
function changed(change: (path: string) => void, of = backup): string {
  const path = mkdtempSync(join(directory, 'changed-'))
  cpSync(of, path, { recursive: true })
  change(path)
  return path
}

function changeManifest(path: string, change: (manifest: Manifest) => void): void {
  const file = join(path, 'manifest.json')
  const manifest: Manifest = JSON.parse(readFileSync(file, 'utf8'))
  change(manifest)
  writeFileSync(file, JSON.stringify(manifest))
}

interface Manifest {
  format: string
  source: { created_at_ms: number; master_seed_fingerprint: string }
  shards: { agents: number; records: number; last_hlc: string }[]
  files: { path: string; bytes: number; sha256: string }[]
  heads_root: string
}

/** Updates the manifest to the current files, like an attacker who changes both. */
function updateManifest(path: string): void {
  changeManifest(path, ({ files }) => {
    for (const file of files) {
      const bytes = readFileSync(join(path, file.path))
      file.bytes = bytes.length
      file.sha256 = createHash('sha256').update(bytes).digest('hex')
    }
  })
}

function flip(file: string, at: number, bit = 0): void {
  const bytes = readFileSync(file)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
  writeFileSync(file, bytes)
}

/** Tries to restore an invalid backup, and checks that no directory is created. @returns the reason */
async function refusal(source: string, code = 1, env: Record<string, string> = {}): Promise<string> {
  const dataDir = join(mkdtempSync(join(directory, 'target-')), 'data')
  const ended = await restore(source, dataDir, env)
  expect([ended.code, ended.stdout], ended.stderr).toEqual([code, ''])
  expect(existsSync(dataDir)).toBe(false)
  return ended.stderr
}

const everyFile = () => ['format.json', 'master.seed', 'shard-0/data.mdb', 'shard-1/data.mdb']

describe('strandfast restore refuses, and leaves no files of', { timeout: 180_000 }, () => {
  it('a backup with a bit flipped in any file', async () => {
    const random = seededRandom(31)
    for (const name of [...everyFile(), ...everyFile()]) {
      const source = changed((path) => {
        const file = join(path, name)
        flip(file, between(random, 0, readFileSync(file).length - 1), between(random, 0, 7))
      })
      expect(await refusal(source)).toMatch(/does not match the manifest|master seed/)
    }
  })

  it('a backup with a missing, shorter or longer file', async () => {
    for (const name of everyFile()) {
      expect(await refusal(changed((path) => rmSync(join(path, name))))).toContain('is missing')
    }
    const store = 'shard-1/data.mdb'
    const cut = changed((path) => {
      writeFileSync(join(path, store), readFileSync(join(path, store)).subarray(0, -4_096))
    })
    expect(await refusal(cut)).toMatch(/has \d+ bytes, not \d+/)
  })

  it('a backup with a link, a pipe or a device instead of a file, without reading it', async () => {
    const outside = join(directory, 'outside')
    writeFileSync(outside, '{}')
    const inPlaceOf = (name: string, put: (path: string) => void) =>
      changed((path) => {
        rmSync(join(path, name), { recursive: true })
        put(join(path, name))
      })
    for (const name of ['format.json', 'master.seed', 'shard-1/data.mdb']) {
      for (const to of ['/dev/zero', outside, join(backup, name)]) {
        const linked = inPlaceOf(name, (path) => symlinkSync(to, path))
        // The manifest has the length of the link's target.
        changeManifest(linked, ({ files }) => {
          for (const file of files) if (file.path === name) file.bytes = statSync(join(linked, name)).size
        })
        expect(await refusal(linked)).toContain('to be a regular file of the backup, not a link')
      }
      const piped = inPlaceOf(name, (path) => execFileSync('mkfifo', [path]))
      expect(await refusal(piped)).toContain('to be a regular file of the backup, not a link')
    }
    const folder = inPlaceOf('shard-1', (path) => symlinkSync(join(backup, 'shard-1'), path))
    expect(await refusal(folder)).toContain('to be a regular file of the backup, not a link')
    const manifest = inPlaceOf('manifest.json', (path) => symlinkSync('/dev/zero', path))
    expect(await refusal(manifest)).toContain('cannot be read')
  })

  it('a backup whose master seed is far too long, even if the manifest agrees', async () => {
    const grown = changed((path) => writeFileSync(join(path, 'master.seed'), 'x'.repeat(100_000)))
    updateManifest(grown)
    expect(await refusal(grown)).toContain('is longer than')
  })

  it('a backup without a manifest, or with an invalid one', async () => {
    expect(await refusal(changed((path) => rmSync(join(path, 'manifest.json'))))).toContain(
      'it is not a backup',
    )
    expect(await refusal(join(directory, 'missing'))).toContain('it is not a backup')
    const broken = changed((path) => writeFileSync(join(path, 'manifest.json'), '{"format":'))
    expect(await refusal(broken)).toContain('is not a backup manifest')
    const changes: [(manifest: Manifest) => void, string][] = [
      [
        (manifest) => void (manifest.format = 'strandfast-backup/v2'),
        'is not a backup manifest that this version can read',
      ],
      [(manifest) => void manifest.files.shift(), 'does not name shard-0/data.mdb'],
      [
        (manifest) => void (manifest.files[1] = { ...manifest.files[1]!, path: '../../etc/passwd' }),
        'does not name shard-1/data.mdb',
      ],
      [
        (manifest) => void manifest.files.push({ ...manifest.files[0]!, path: '../format.json' }),
        'which is unknown or named twice',
      ],
      [(manifest) => void manifest.files.push(manifest.files[0]!), 'named twice'],
      [(manifest) => void manifest.shards.pop(), 'which is unknown or named twice'],
      [(manifest) => void (manifest.shards[0]!.records += 1), 'The strands do not match the manifest'],
      [
        (manifest) => void (manifest.shards[0]!.last_hlc = '000000000001-0000'),
        'The strands do not match the manifest',
      ],
      [(manifest) => void (manifest.heads_root = '0'.repeat(64)), 'The strands do not match the manifest'],
      [(manifest) => void (manifest.source.created_at_ms += 1), 'belongs to another data directory'],
      [
        (manifest) => void (manifest.source.master_seed_fingerprint = 'a'.repeat(64)),
        'does not contain the master seed',
      ],
    ]
    for (const [change, expected] of changes) {
      expect(await refusal(changed((path) => changeManifest(path, change)))).toContain(expected)
    }
  })

  it('a backup whose records were changed together with the manifest', async () => {
    const damaged = changed((path) => {
      const file = join(path, 'shard-0/data.mdb')
      const at = readFileSync(file).indexOf('marker-')
      expect(at).toBeGreaterThan(0)
      flip(file, at)
      updateManifest(path)
    })
    expect(await refusal(damaged)).toContain('a stored record matches its checksum')
    for (const shard of [0, 1]) {
      const environment = openEnvironment(join(backup, `shard-${shard}`), 'read')
      const mutated = [...environment.mutations.getKeys({})].length > 0
      await environment.root.close()
      rmSync(join(backup, `shard-${shard}`, 'lock.mdb'))
      if (!mutated) continue
      const path = changed(() => {})
      const store = openEnvironment(join(path, `shard-${shard}`), 'write')
      for (const key of Array.from(store.mutations.getKeys({}))) store.mutations.put(key, Buffer.of(0))
      await store.root.close()
      updateManifest(path)
      expect(await refusal(path)).toContain('The row of the mutation does not match the record')
    }
  })

  it('a backup without its master seed, or with a wrong one', async () => {
    expect(await refusal(bare, 78)).toContain('set its master seed by SERVICE_MASTER_SEED')
    const wrong = { SERVICE_MASTER_SEED: 'ab'.repeat(32) }
    for (const source of [backup, bare]) {
      expect(await refusal(source, 78, wrong)).toContain('The given master seed does not match the backup')
    }
  })

  it('a backup with two shards swapped', async () => {
    const swapped = changed((path) => {
      const [one, other] = [0, 1].map((shard) => join(path, `shard-${shard}/data.mdb`))
      const bytes = readFileSync(one ?? '')
      cpSync(other ?? '', one ?? '')
      writeFileSync(other ?? '', bytes)
      updateManifest(path)
    })
    expect(await refusal(swapped)).toContain('The strands do not match the manifest')
  })
})

describe('strandfast restore', { timeout: 180_000 }, () => {
  it('restores a backup without secrets if the master seed is given, and a server continues on it', async () => {
    const dataDir = join(directory, 'of-bare')
    const env = { SERVICE_MASTER_SEED: seed }
    expect((await restore(bare, dataDir, env)).code).toBe(0)
    const files = ['format.json', 'lock', 'restored.json', 'shard-0', 'shard-1']
    expect(readdirSync(dataDir).sort()).toEqual(files)
    const {
      created_at_ms: madeAtMs,
      heads_root: headsRoot,
      version,
    } = JSON.parse(readFileSync(join(bare, 'manifest.json'), 'utf8'))
    const server = await startServer({ dataDir, env })
    expect((await call(server, 'POST /v1/agents/a/records', { body: { data: { n: 1 } } })).status).toBe(201)
    expect((await call(server, 'GET /v1/agents/b/status')).body.record_count).toBe(RECORDS)
    expect(existsSync(join(dataDir, 'restored.json'))).toBe(false)
    const { text } = await call(server, 'GET /v1/strand/export?agent=server::audit')
    const [restoredLine = ''] = text.split('\n').filter((line) => line.includes('type sys/restored'))
    expect(JSON.parse(JSON.parse(restoredLine).body)).toEqual({
      restored_at_ms: expect.any(Number),
      backup_made_at_ms: madeAtMs,
      backup_version: version,
      heads_root: headsRoot,
    })
    await server.stop()
  })

  it('accepts an empty directory, and no other', async () => {
    const target = join(directory, 'mount')
    mkdirSync(join(target, 'lost+found'), { recursive: true })
    const damaged = changed((path) => flip(join(path, 'shard-1/data.mdb'), 9_000))
    expect((await restore(damaged, target)).code).toBe(1)
    expect(readdirSync(target).sort()).toEqual(['lock', 'lost+found'])
    expect((await restore(backup, target)).code).toBe(0)
    const before = readdirSync(target)
    const again = await restore(backup, target)
    expect([again.code, again.stderr]).toEqual([78, expect.stringContaining('it holds format.json')])
    expect(readdirSync(target)).toEqual(before)
    const foreign = join(directory, 'foreign')
    mkdirSync(foreign)
    writeFileSync(join(foreign, 'thesis.txt'), 'years of work')
    const refused = await restore(backup, foreign)
    expect([refused.code, refused.stderr]).toEqual([78, expect.stringContaining('it holds thesis.txt')])
    expect(readdirSync(foreign)).toEqual(['thesis.txt'])
  })

  it.runIf(process.geteuid?.() === 0)('refuses a directory of another user', async () => {
    const dataDir = mkdtempSync(join(directory, 'foreign-'))
    chownSync(dataDir, 12_345, 12_345)
    const ended = await restore(backup, dataDir)
    expect([ended.code, ended.stderr]).toEqual([78, expect.stringContaining('belongs to user 12345')])
    expect(readdirSync(dataDir)).toEqual([])
  })

  it('leaves no files when it is interrupted', async () => {
    const dataDir = join(directory, 'interrupted')
    const { process: child, ended } = startCommand(['restore', backup], { SERVICE_DATA_DIR: dataDir })
    await eventually(() => existsSync(join(dataDir, 'format.json.restoring')))
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 1, stderr: expect.stringContaining('Interrupted') })
    expect(existsSync(dataDir)).toBe(false)
  })

  it('leaves, when it is killed, a directory on which no server starts and which the next restore replaces', async () => {
    const dataDir = join(directory, 'killed')
    const { process: child, ended } = startCommand(['restore', backup], { SERVICE_DATA_DIR: dataDir })
    await eventually(() => existsSync(join(dataDir, 'format.json.restoring')))
    child.kill('SIGKILL')
    await ended
    await expect(startServer({ dataDir })).rejects.toThrow('was interrupted: run strandfast restore again')
    expect((await backUp(dataDir, join(directory, 'of-cut-off'))).code).toBe(78)
    expect((await restore(backup, dataDir)).code).toBe(0)
    const server = await startServer({ dataDir })
    expect((await call(server, 'GET /v1/agents/d/status')).body.record_count).toBe(RECORDS)
    await server.stop()
  })
})

describe('strandfast backup', { timeout: 180_000 }, () => {
  const data = () => join(directory, 'data')

  it('refuses a target that is not empty or within the data directory, and a missing data directory', async () => {
    for (const [dataDir, target, expected] of [
      [data(), backup, 'to be absent or empty'],
      [data(), join(data(), 'backup'), 'outside of the data directory'],
      [join(directory, 'missing'), join(directory, 'new'), 'is not a data directory'],
    ] as const) {
      const before = existsSync(target) ? readdirSync(target) : undefined
      const ended = await backUp(dataDir, target)
      expect([ended.code, ended.stderr]).toEqual([78, expect.stringContaining(expected)])
      expect(existsSync(target) ? readdirSync(target) : undefined).toEqual(before)
    }
  })

  it('reports damaged data, and makes no backup of it', async () => {
    const damaged = join(directory, 'damaged')
    cpSync(data(), damaged, { recursive: true })
    const file = join(damaged, 'shard-0/data.mdb')
    // Every occurrence is changed, because old versions of a rewritten page remain in the file unused.
    const bytes = readFileSync(file)
    for (let at = bytes.indexOf('marker-'); at >= 0; at = bytes.indexOf('marker-', at + 1)) flip(file, at)
    const target = join(directory, 'of-damaged')
    const { code, stderr } = await backUp(damaged, target)
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/shard 0, .*a stored record matches its checksum/),
    ])
    expect(existsSync(target)).toBe(false)
  })

  it('prints its usage', async () => {
    for (const name of ['backup', 'restore']) {
      const help = await startCommand([name, '--help'], {}).ended
      expect([help.code, help.stdout]).toEqual([0, expect.stringContaining(`Usage: strandfast ${name} DIR`)])
      for (const args of [[], ['one', 'two'], ['--nonsense', 'one']]) {
        expect((await startCommand([name, ...args], {}).ended).code).toBe(78)
      }
    }
  })
})
