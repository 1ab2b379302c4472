import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkLicense } from '../../../src/auth/license.js'
import { openDataDirectory } from '../../../src/data/directory.js'
import { authorityPublicKey, openAuthority } from '../../../src/data/license-authority.js'

const built = fileURLToPath(new URL('../../../dist/program/strandfast.js', import.meta.url))
const seedFile = 'license-authority.seed'
const dayMs = 86_400_000

let folder: string
let dataDir: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'license-'))
  dataDir = join(folder, 'nested', 'data')
})
afterEach(() => rmSync(folder, { recursive: true }))

async function license(...args: string[]): Promise<{ code: unknown; out: string; err: string }> {
  const child = spawn(process.execPath, [built, 'license', ...args], {
    env: { PATH: process.env.PATH, SERVICE_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  child.stderr.on('data', (chunk) => (err += String(chunk)))
  const [code]: unknown[] = await once(child, 'close')
  return { code, out, err }
}

function publicKey(): string {
  const key = authorityPublicKey(dataDir)
  if (key === undefined) throw new Error('Expected an authority')
  return key
}

describe('strandfast license issue', () => {
  it('prints the license alone, which is valid for the authority of the data directory', async () => {
    const issued = await license('issue', '--licensee', 'Acme Ltd')
    expect(issued.code).toBe(0)
    expect(issued.out).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(issued.err).toContain(publicKey())
    const checked = await checkLicense(issued.out.trim(), publicKey(), Date.now())
    expect(checked).toMatchObject({ ok: true, license: { licensee: 'Acme Ltd', features: ['auth'] } })
    if (!checked.ok) throw new Error('Expected a valid license')
    const days = (checked.license.expiresAtMs - Date.now()) / dayMs
    expect(Math.round(days)).toBe(365)
  })

  it('issues a license for the given number of days', async () => {
    const { out } = await license('issue', '--licensee', 'Acme', '--days', '2')
    const nowMs = Date.now()
    expect(await checkLicense(out.trim(), publicKey(), nowMs + dayMs)).toMatchObject({ ok: true })
    expect(await checkLicense(out.trim(), publicKey(), nowMs + 2 * dayMs + 1000)).toEqual({
      ok: false,
      reason: 'expired',
    })
  })

  it('creates the authority once, readable by its owner only', async () => {
    const first = await license('issue', '--licensee', 'Acme')
    const key = publicKey()
    expect(readdirSync(dataDir)).toEqual([seedFile])
    expect(statSync(join(dataDir, seedFile)).mode & 0o777).toBe(0o600)
    expect(statSync(dataDir).mode & 0o777).toBe(0o700)
    await license('issue', '--licensee', 'Acme')
    expect(publicKey()).toBe(key)
    const seed = readFileSync(join(dataDir, seedFile), 'utf8').trim()
    expect(first.out + first.err).not.toContain(seed)
  })

  it('works before the first start and while a server uses the data directory', async () => {
    await license('issue', '--licensee', 'Acme')
    const key = publicKey()
    const opening = openDataDirectory({ dataDir }, (count) => Buffer.alloc(count, 1))
    if (!opening.ok) throw new Error(opening.detail)
    const issued = await license('issue', '--licensee', 'Acme')
    opening.directory.close()
    expect(issued.code).toBe(0)
    expect(publicKey()).toBe(key)
  })

  it('refuses a damaged authority, and does not change it', async () => {
    openAuthority(dataDir, (count) => Buffer.alloc(count, 1))
    writeFileSync(join(dataDir, seedFile), 'damaged')
    const refused = await license('issue', '--licensee', 'Acme')
    expect(refused).toMatchObject({ code: 78, out: '' })
    expect(refused.err).toContain(seedFile)
    expect(readFileSync(join(dataDir, seedFile), 'utf8')).toBe('damaged')
    expect(authorityPublicKey(dataDir)).toBeUndefined()
  })

  it.each([
    [[]],
    [['revoke', '--licensee', 'Acme']],
    [['issue']],
    [['issue', '--licensee', ' ']],
    [['issue', '--licensee', 'Acme', '--days', '0']],
    [['issue', '--licensee', 'Acme', '--days', '36501']],
    [['issue', '--licensee', 'Acme', '--days', '1.5']],
    [['issue', '--licensee', 'Acme', '--explode']],
  ])('exits 78 for %j with one line that refers to --help, and creates no file', async (args) => {
    const refused = await license(...args)
    expect(refused).toMatchObject({ code: 78, out: '' })
    expect(refused.err).toMatch(/^.+: see strandfast license --help\n$/)
    expect(readdirSync(folder)).toEqual([])
  })

  it.each([[['--help']], [['issue', '--help']]])('prints its usage on %j', async (args) => {
    expect(await license(...args)).toMatchObject({
      code: 0,
      out: expect.stringContaining('Usage: strandfast license issue'),
      err: '',
    })
  })
})

describe('openAuthority', () => {
  it('uses the authority that another process has created in the meantime', () => {
    const other = Buffer.alloc(32, 2)
    const reading = openAuthority(dataDir, (count) => {
      openAuthority(dataDir, () => other)
      return Buffer.alloc(count, 1)
    })
    expect(reading).toEqual({ ok: true, seed: other })
    expect(readdirSync(dataDir)).toEqual([seedFile])
  })
})
