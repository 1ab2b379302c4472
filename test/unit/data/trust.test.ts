import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { distrust } from '../../../src/data/trust.js'
import { startCommand } from '../../support/server/backup.js'

const FOREIGN = 12_345
/** Only root can change the owner of a file. */
const isRoot = process.geteuid?.() === 0

let folder: string
let dataDir: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trust-'))
  dataDir = join(folder, 'data')
  mkdirSync(join(dataDir, 'shard-0'), { recursive: true, mode: 0o700 })
  for (const name of ['format.json', 'lock', 'master.seed', 'root.key', 'license-authority.seed'])
    writeFileSync(join(dataDir, name), 'x', { mode: 0o600 })
  writeFileSync(join(dataDir, 'shard-0/data.mdb'), 'x')
})
afterEach(() => rmSync(folder, { recursive: true }))

describe.runIf(process.platform !== 'win32')('a data directory', () => {
  it('is trusted if only its user can write to it, or if it does not exist', () => {
    chmodSync(dataDir, 0o755)
    chmodSync(join(dataDir, 'shard-0/data.mdb'), 0o664)
    // A file that the server never reads.
    writeFileSync(join(dataDir, 'notes'), 'x', { mode: 0o600 })
    chmodSync(join(dataDir, 'notes'), 0o666)
    expect(distrust(dataDir)).toBeUndefined()
    expect(distrust(join(folder, 'none'))).toBeUndefined()
  })

  it.each(['', 'master.seed', 'root.key', 'license-authority.seed', 'format.json', 'lock', 'shard-0'])(
    'is not trusted if other users can write to "%s"',
    (name) => {
      const path = join(dataDir, name)
      for (const mode of [0o720, 0o702]) {
        chmodSync(path, mode)
        expect(distrust(dataDir)).toContain(`chmod go-w ${path}`)
      }
    },
  )

  it('is not trusted if a secret is a device', () => {
    rmSync(join(dataDir, 'root.key'))
    symlinkSync('/dev/zero', join(dataDir, 'root.key'))
    expect(distrust(dataDir)).toBe(`Expected ${join(dataDir, 'root.key')} to be a file`)
  })

  it.runIf(isRoot).each(['', 'master.seed', 'root.key', 'format.json', 'shard-0', 'shard-0/data.mdb'])(
    'is not trusted if "%s" belongs to another user',
    (name) => {
      chownSync(join(dataDir, name), FOREIGN, FOREIGN)
      expect(distrust(dataDir)).toContain('belongs to user 12345, and this process is user 0')
    },
  )
})

describe.runIf(isRoot)('a data directory that another user planted', { timeout: 120_000 }, () => {
  it.each([
    ['serve'],
    ['backup', '/nowhere/at/all'],
    ['reshard', '--shards', '2'],
    ['license', 'issue', '--licensee', 'Me'],
    ['doctor'],
  ])('is refused by strandfast %s', async (...args) => {
    for (const name of ['', 'master.seed', 'root.key']) chownSync(join(dataDir, name), FOREIGN, FOREIGN)
    const ended = await startCommand(args, { SERVICE_DATA_DIR: dataDir, SERVICE_PORT: '0' }).ended
    expect([ended.code, ended.stdout + ended.stderr]).toEqual([
      78,
      expect.stringContaining('belongs to user 12345'),
    ])
    expect(ended.stderr).not.toContain('root key')
  })
})
