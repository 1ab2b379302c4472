import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { type RequestListener, type Server, createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { noteAddress } from '../../../src/data/address.js'
import { openDataDirectory } from '../../../src/data/directory.js'

const built = fileURLToPath(new URL('../../../dist/program/strandfast.js', import.meta.url))

let folder: string
let server: Server | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cli-'))
})
afterEach(() => {
  server?.close()
  server?.closeAllConnections()
  server = undefined
  rmSync(folder, { recursive: true })
})

function start(args: string[], env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [built, ...args], {
    env: { PATH: process.env.PATH, SERVICE_DATA_DIR: join(folder, 'data'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function run(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ code: unknown; out: string; err: string }> {
  const child = start(args, env)
  let out = ''
  let err = ''
  child.stdout?.on('data', (chunk) => (out += String(chunk)))
  child.stderr?.on('data', (chunk) => (err += String(chunk)))
  const [code]: unknown[] = await once(child, 'close')
  return { code, out, err }
}

/** Starts the server and stops it as soon as it serves. @returns its standard error */
async function startAndStop(env: Record<string, string>): Promise<string> {
  const child = start(['serve'], env)
  let err = ''
  child.stderr?.on('data', (chunk) => (err += String(chunk)))
  child.stdout?.once('data', () => child.kill('SIGTERM'))
  const [code]: unknown[] = await once(child, 'close')
  expect(code).toBe(0)
  return err
}

/** Serves over loopback. @returns the base URL */
async function listen(listener: RequestListener): Promise<string> {
  server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  return `http://127.0.0.1:${address.port}`
}

describe('strandfast', () => {
  it('prints its commands on --help and its version on --version', async () => {
    const help = await run(['--help'])
    expect(help).toMatchObject({ code: 0, err: '' })
    for (const name of ['serve', 'check', 'doctor', 'keygen', 'export', 'verify']) {
      expect(help.out).toMatch(new RegExp(`^ {2}${name} `, 'm'))
    }
    const { version }: { version: string } = JSON.parse(
      readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
    )
    expect(await run(['--version'])).toEqual({ code: 0, out: `strandfast ${version}\n`, err: '' })
  })

  it('exits 78 with one line for an unknown command, and with its usage for none', async () => {
    const err = 'Unknown command explode: see strandfast --help\n'
    expect(await run(['explode'])).toEqual({ code: 78, out: '', err })
    expect((await run(['exprot'])).err).toContain(
      'Unknown command exprot (did you mean export?): see strandfast --help',
    )
    const none = await run([])
    expect(none).toMatchObject({ code: 78, out: '' })
    expect(none.err).toContain('Usage: strandfast COMMAND')
  })

  it.each(['serve', 'check', 'doctor', 'export'])('refuses an unknown option of %s', async (name) => {
    const refused = await run([name, '--explode'])
    expect(refused).toMatchObject({ code: 78, out: '' })
    expect(refused.err).toMatch(new RegExp(`^Unknown option \\S+: see strandfast ${name} --help\n$`))
    expect((await run([name, '--help'])).out).toContain(`Usage: strandfast ${name}`)
  })

  it.skipIf(!existsSync('/dev/full'))('exits 1 when its output cannot be written', async () => {
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [built, 'keygen'], { stdio: ['ignore', full, 'pipe'] })
    closeSync(full)
    let err = ''
    child.stderr?.on('data', (bytes: Buffer) => (err += bytes.toString()))
    expect(await once(child, 'close')).toEqual([1, null])
    expect(err).toMatch(/^The output could not be written: ENOSPC/)
  })

  it.each([
    [['write', 'x', '--data', '{}', '--data', '{}'], '--data'],
    [['export', '--out', 'a', '--agent', 'b', '--out', 'c'], '--out'],
    [['keys', 'rotate', '--url', 'http://a', '--url', 'http://b'], '--url'],
  ])('refuses an option that is given twice: %j', async (args, option) => {
    const refused = await run(args)
    expect(refused).toMatchObject({ code: 78, out: '' })
    expect(refused.err).toContain(`Expected ${option} once: `)
  })

  it.each(['backup', 'restore'])(
    'refuses a directory that begins with ~ in %s, because no shell has expanded it',
    async (name) => {
      expect(await run([name, '~/copy'])).toMatchObject({ code: 78, err: expect.stringContaining('$HOME') })
    },
  )

  it('runs keygen', async () => {
    const made = await run(['keygen', '--seed', '00'.repeat(32)])
    // The public key of the zero seed by RFC 8032.
    expect(JSON.parse(made.out)).toEqual({
      seed_hex: '00'.repeat(32),
      public_key: '3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29',
    })
  })

  it('runs verify', async () => {
    expect((await run(['verify'])).code).toBe(78)
    expect((await run(['verify', join(folder, 'none'), '--public-key', '00'.repeat(32)])).code).toBe(66)
  })
})

describe('strandfast check', () => {
  it('accepts a valid configuration, and creates no file', async () => {
    expect(await run(['check'])).toEqual({ code: 0, out: 'configuration is valid\n', err: '' })
    expect(readdirSync(folder)).toEqual([])
  })

  it('prints every fault, and exits 78', async () => {
    const checked = await run(['check'], {
      SERVICE_PORT: 'x',
      SERVICE_ROOT_API_KEY: 'short',
      SERVICE_PROT: '1',
    })
    expect(checked).toMatchObject({ code: 78, out: '' })
    expect(checked.err).toContain('SERVICE_PORT: given "x", allowed: an integer from 0 to 65535')
    expect(checked.err).toContain('SERVICE_ROOT_API_KEY: given 5 characters')
    expect(checked.err).toContain('did you mean SERVICE_PORT?')
    expect(checked.err).not.toContain('short')
  })

  it('prints a report as JSON with --json', async () => {
    expect(JSON.parse((await run(['check', '--json'])).out)).toEqual({
      valid: true,
      faults: [],
      warnings: [],
    })
    const checked = await run(['check', '--json'], { SERVICE_PORT: 'x' })
    expect(checked).toMatchObject({ code: 78, err: '' })
    expect(JSON.parse(checked.out)).toEqual({
      valid: false,
      faults: [{ name: 'SERVICE_PORT', given: '"x"', allowed: 'an integer from 0 to 65535' }],
      warnings: [],
    })
  })
})

describe('strandfast serve', () => {
  it('exits 78 for invalid settings, and creates no file', async () => {
    const refused = await run(['serve'], { SERVICE_PORT: 'x', SERVICE_ENV: 'moon' })
    expect(refused).toMatchObject({ code: 78, out: '' })
    expect(refused.err).toContain('SERVICE_PORT')
    expect(refused.err).toContain('SERVICE_ENV')
    expect(readdirSync(folder)).toEqual([])
  })

  it('exits 78 for a data directory in use', async () => {
    const dataDir = join(folder, 'data')
    const opening = openDataDirectory({ dataDir }, (count) => Buffer.alloc(count, 1))
    if (!opening.ok) throw new Error(opening.detail)
    const refused = await run(['serve'], { SERVICE_PORT: '0' })
    opening.directory.close()
    expect(refused).toMatchObject({ code: 78, out: '' })
    expect(refused.err).toContain('in use by process')
  })
})

describe('a start that cannot succeed', () => {
  it('creates no file and prints no root key while the port is in use', async () => {
    const url = await listen((_request, response) => response.end())
    const { port } = new URL(url)
    const refused = await run(['serve'], { SERVICE_PORT: port })
    expect(refused).toEqual({
      code: 1,
      out: '',
      err:
        `Port ${port} of 127.0.0.1 is in use (EADDRINUSE): stop the program that has it, or set SERVICE_PORT to ` +
        'another\n',
    })
    expect(readdirSync(folder)).toEqual([])
  })

  it('names an address that is not one of the machine', async () => {
    const refused = await run(['serve'], { SERVICE_HOST: '192.0.2.1', SERVICE_PORT: '8799' })
    expect(refused).toMatchObject({ code: 1, out: '' })
    expect(refused.err).toContain(
      '192.0.2.1 is not an address of this machine (EADDRNOTAVAIL): set SERVICE_HOST',
    )
    expect(readdirSync(folder)).toEqual([])
  })

  // Node's recursive mkdir would never return there: /proc says that the parent directory does not exist.
  it.runIf(process.platform === 'linux')(
    'exits 78 when the file system refuses to create the data directory',
    async () => {
      for (const dataDir of ['/proc/foo', '/proc/foo/bar']) {
        const refused = await run(['serve'], { SERVICE_DATA_DIR: dataDir, SERVICE_PORT: '0' })
        expect(refused).toMatchObject({ code: 78, out: '' })
        expect(refused.err).toMatch(`The data directory ${dataDir} cannot be used: ENOENT`)
      }
    },
  )
})

describe('an invalid license', () => {
  const licensed = {
    SERVICE_AUTH_ENABLED: 'true',
    SERVICE_PORT: '0',
    SERVICE_MAIL_ENABLED: 'true',
    SERVICE_MAIL_SMTP_URL: 'smtp://127.0.0.1:1',
    SERVICE_MAIL_FROM: 'no-reply@example.org',
    SERVICE_MAIL_LINK_BASE_URL: 'http://127.0.0.1:1',
  }

  it.each([
    ['is not a token', 'junk', /SERVICE_LICENSE_KEY is not a license/],
    [
      'is of another authority',
      'a.b.c',
      /SERVICE_LICENSE_KEY was not issued by the license authority [0-9a-f]{64}/,
    ],
  ])('is reported by check and by serve when it %s', async (_, key, warning) => {
    const issued = await run(['license', 'issue', '--licensee', 'Acme'])
    expect(issued.code).toBe(0)
    const env = { ...licensed, SERVICE_LICENSE_KEY: key }
    const checked = await run(['check'], env)
    expect(checked).toMatchObject({ code: 0, out: 'configuration is valid, with a warning\n' })
    expect(checked.err).toMatch(warning)
    expect(await startAndStop(env)).toMatch(warning)
    const good = await run(['check'], { ...licensed, SERVICE_LICENSE_KEY: issued.out.trim() })
    expect(good).toEqual({ code: 0, out: 'configuration is valid\n', err: '' })
  })

  it('is reported when no public key is known to check it', async () => {
    const checked = await run(['check'], { ...licensed, SERVICE_LICENSE_KEY: 'a.b.c' })
    expect(checked.err).toContain('set SERVICE_LICENSE_PUBLIC_KEY')
    expect(readdirSync(folder)).toEqual([])
  })
})

/** Test certificates and their keys. */
const tls = fileURLToPath(new URL('../../support/http/tls', import.meta.url))

describe.each(['check', 'doctor', 'serve'])('strandfast %s', (command) => {
  it.each(['node', 'uws'])('says which TLS file is wrong, for %s', async (engine) => {
    const empty = join(folder, 'empty.pem')
    writeFileSync(empty, '')
    const found = await run([command], {
      SERVICE_HTTP_ENGINE: engine,
      SERVICE_TLS_CERT_FILE: empty,
      SERVICE_TLS_KEY_FILE: join(tls, 'key.pem'),
    })
    expect(found.code).toBe(78)
    expect(found.out + found.err).toContain(`SERVICE_TLS_CERT_FILE: given "${empty}", an empty file`)
    expect(readdirSync(folder)).toEqual(['empty.pem'])
  })

  it('says if the HTTP library does not support the key', async () => {
    const [certFile, keyFile] = [join(tls, 'ed448-cert.pem'), join(tls, 'ed448-key.pem')]
    const env = {
      SERVICE_HTTP_ENGINE: 'uws',
      SERVICE_TLS_CERT_FILE: certFile,
      SERVICE_TLS_KEY_FILE: keyFile,
    }
    const found = await run([command], env)
    expect(found.code).toBe(78)
    expect(found.out + found.err).toContain(`${keyFile}", which uWebSockets.js refuses`)
    expect(readdirSync(folder)).toEqual([])
  })

  // Regression: both libraries load this key, and the server listened and failed every handshake.
  it.each(['node', 'uws'])('says if no client supports the key, for %s', async (engine) => {
    const [certFile, keyFile] = [join(tls, 'p224-cert.pem'), join(tls, 'p224-key.pem')]
    const env = {
      SERVICE_HTTP_ENGINE: engine,
      SERVICE_TLS_CERT_FILE: certFile,
      SERVICE_TLS_KEY_FILE: keyFile,
    }
    const found = await run([command], env)
    expect(found.code).toBe(78)
    expect(found.out + found.err).toContain(`${keyFile}", a key on secp224r1`)
  })
})

describe('strandfast cluster check', () => {
  it('says if a TLS file of the URL is wrong', async () => {
    const empty = join(folder, 'empty.pem')
    writeFileSync(empty, '')
    expect(await run(['cluster', 'check', `postgres://a@127.0.0.1:1/b?sslrootcert=${empty}`])).toEqual({
      code: 78,
      out: '',
      err: `URL: given sslrootcert "${empty}", an empty file, allowed: the path of a readable PEM file in sslrootcert\n`,
    })
  })
})

describe('strandfast doctor', () => {
  it('checks a machine on which no server has started, and creates no file', async () => {
    const found = await run(['doctor'], { SERVICE_PORT: '1', SERVICE_MIN_FREE_BYTES: '0' })
    expect(found.code).toBe(0)
    expect(found.out).toMatch(/^ok +node /m)
    expect(found.out).toMatch(/^ok +data directory .* will be created/m)
    expect(found.out).toMatch(/synchronised writes of 4096 bytes per second/)
    expect(found.out).toMatch(/^warn +server .* does not respond/m)
    expect(readdirSync(folder)).toEqual([])
  })

  it('fails when the settings, the data directory or the server is wrong', async () => {
    expect(await run(['doctor'], { SERVICE_PORT: 'x' })).toMatchObject({
      code: 78,
      out: expect.stringMatching(/^fail +settings +SERVICE_PORT/m),
    })
    const dataDir = join(folder, 'data')
    const opening = openDataDirectory({ dataDir, shards: 2 }, (count) => Buffer.alloc(count, 1))
    if (!opening.ok) throw new Error(opening.detail)
    const found = await run(['doctor'], { SERVICE_PORT: '1', SERVICE_SHARDS: '3' })
    opening.directory.close()
    expect(found.code).toBe(1)
    expect(found.out).toMatch(/^fail +format +2 shards/m)
    expect(found.out).toMatch(/^warn +lock +held by process \d+, but no server responds/m)
  })

  it('fails when a store, the master seed, the root key or format.json is missing, and creates none of them', async () => {
    const dataDir = join(folder, 'data')
    const missing: [name: string, finding: RegExp][] = [
      ['shard-1.tmp', /^fail +pieces +The store \S+shard-1 is missing: restore it from a backup$/m],
      [
        'master.seed',
        /^fail +pieces +The file \S+master\.seed is missing: restore it, or set SERVICE_MASTER_SEED/m,
      ],
      [
        'root.key',
        /^fail +pieces +The file \S+root\.key is missing: restore it, or the next start creates a new/m,
      ],
      ['format.json', /^fail +pieces +The directory \S+ contains shard-0 but no format\.json/m],
    ]
    for (const [name, finding] of missing) {
      const opening = openDataDirectory({ dataDir, shards: 2 }, (count) => Buffer.alloc(count, 1))
      if (!opening.ok) throw new Error(opening.detail)
      opening.directory.close()
      mkdirSync(join(dataDir, 'shard-0'), { recursive: true })
      writeFileSync(join(dataDir, 'shard-0', 'data.mdb'), '')
      const whole = await run(['doctor'], { SERVICE_PORT: '1', SERVICE_MIN_FREE_BYTES: '0' })
      expect(whole.out).toMatch(/^ok +pieces +all stores, the master seed and the root key exist$/m)
      rmSync(join(dataDir, name), { recursive: true })
      // An empty directory is not a store.
      if (name === 'shard-1.tmp') mkdirSync(join(dataDir, 'shard-1'))
      const found = await run(['doctor'], { SERVICE_PORT: '1', SERVICE_MIN_FREE_BYTES: '0' })
      expect(found.out).toMatch(finding)
      expect(found.code).toBe(1)
      expect(existsSync(join(dataDir, name))).toBe(false)
      rmSync(dataDir, { recursive: true })
    }
  })

  it('accepts a master seed and a root key from the settings', async () => {
    const dataDir = join(folder, 'data')
    const [seed, rootKey] = [Buffer.alloc(32, 7), 'r'.repeat(32)]
    const opening = openDataDirectory(
      { dataDir, shards: 1, masterSeed: seed, rootApiKey: rootKey },
      (count) => Buffer.alloc(count, 1),
    )
    if (!opening.ok) throw new Error(opening.detail)
    opening.directory.close()
    const env = { SERVICE_PORT: '1', SERVICE_MIN_FREE_BYTES: '0', SERVICE_ROOT_API_KEY: rootKey }
    const found = await run(['doctor'], { ...env, SERVICE_MASTER_SEED: seed.toString('hex') })
    expect(found.out).toMatch(/^ok +pieces/m)
    const other = await run(['doctor'], { ...env, SERVICE_MASTER_SEED: 'ab'.repeat(32) })
    expect(other.out).toMatch(/^fail +pieces +The given master seed does not match/m)
  })

  it('distinguishes a server that is alive from one that is ready', async () => {
    const url = await listen((request, response) => {
      response.statusCode = request.url === '/healthz' ? 200 : 503
      response.end()
    })
    const dataDir = join(folder, 'data')
    const opening = openDataDirectory({ dataDir, shards: 1 }, (count) => Buffer.alloc(count, 1))
    if (!opening.ok) throw new Error(opening.detail)
    noteAddress(dataDir, url)
    const found = await run(['doctor'], { SERVICE_MIN_FREE_BYTES: '0' })
    opening.directory.close()
    expect(found.code).toBe(1)
    expect(found.out).toMatch(/^fail +server .* alive and not ready: \/readyz returns 503/m)
  })
})

describe('strandfast export', () => {
  const whole =
    '{"format":"strand-export/v1","from_seq":0,"to_seq":1}\n{"h":"a"}\n{"h":"b"}\n{"chain_head":"c","records":2}\n'

  it('requests an export as its options say, and saves it', async () => {
    const requested: unknown[] = []
    const url = await listen((request, response) => {
      requested.push(request.url, request.headers.authorization)
      response.end(whole)
    })
    const out = join(folder, 'strand.ndjson')
    const args = [
      'export',
      '--url',
      `${url}/`,
      '--agent',
      'a b',
      '--from-seq',
      '0',
      '--to-seq',
      '1',
      '--out',
      out,
    ]
    const saved = await run(args, { SERVICE_ROOT_API_KEY: 'k'.repeat(32) })
    expect(saved).toMatchObject({ code: 0, out: '', err: `Saved 2 records to ${out}\n` })
    expect(readFileSync(out, 'utf8')).toBe(whole)
    expect(requested).toEqual(['/v1/strand/export?agent=a+b&from_seq=0&to_seq=1', `Bearer ${'k'.repeat(32)}`])
  })

  it('compresses a .gz file, and writes to standard output for -', async () => {
    const url = await listen((_, response) => response.end(whole))
    const out = join(folder, 'strand.ndjson.gz')
    expect((await run(['export', '--url', url, '--api-key', 'k', '--out', out])).code).toBe(0)
    expect(gunzipSync(readFileSync(out)).toString()).toBe(whole)
    expect(await run(['export', '--url', url, '--api-key', 'k', '--out', '-'])).toMatchObject({
      code: 0,
      out: whole,
    })
  })

  it('replaces a file only with --force, and a directory never', async () => {
    let requests = 0
    const url = await listen((_, response) => {
      requests++
      response.end(whole)
    })
    const out = join(folder, 'strand.ndjson')
    writeFileSync(out, 'kept')
    const args = ['export', '--url', url, '--api-key', 'k', '--out']
    const refused = await run([...args, out])
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('use --force to replace it') })
    expect([readFileSync(out, 'utf8'), requests]).toEqual(['kept', 0])
    expect((await run([...args, folder, '--force'])).err).toContain('is not a regular file')
    expect((await run([...args, out, '--force'])).code).toBe(0)
    expect(readFileSync(out, 'utf8')).toBe(whole)
    expect(readdirSync(folder)).toEqual(['strand.ndjson'])
  })

  it.each([
    ['ends before its trailer', whole.slice(0, -32)],
    ['lacks a record', whole.replace('{"h":"b"}\n', '')],
    ['ends within its last line', whole.slice(0, -1)],
    ['is empty', ''],
  ])('leaves no file when the response %s', async (_, body) => {
    const url = await listen((_request, response) => response.end(body))
    const out = join(folder, 'strand.ndjson')
    const failed = await run(['export', '--url', url, '--api-key', 'k', '--out', out])
    expect(failed.code).toBe(1)
    expect(failed.err).toContain('ended before the end')
    expect(readdirSync(folder)).toEqual([])
  })

  it('leaves no file when it fails before its file is open', async () => {
    const url = await listen((_request, response) => response.end(''))
    const args = ['export', '--url', url, '--api-key', 'k', '--out', join(folder, 'strand.ndjson')]
    const slowOpen = new URL('../../support/server/slow-open.mjs', import.meta.url).href
    expect((await run(args, { NODE_OPTIONS: `--import ${slowOpen}` })).code).toBe(1)
    expect(readdirSync(folder)).toEqual([])
  })

  it('leaves no file when the connection breaks, nor when the server refuses', async () => {
    const url = await listen((request, response) => {
      if (request.url?.includes('forbidden') === true) {
        response.statusCode = 403
        response.end('{"code":"forbidden"}')
        return
      }
      response.write(whole.slice(0, 30))
      response.destroy()
    })
    const out = join(folder, 'strand.ndjson')
    expect((await run(['export', '--url', url, '--api-key', 'k', '--out', out])).code).toBe(1)
    const refused = await run([
      'export',
      '--url',
      url,
      '--api-key',
      'k',
      '--out',
      out,
      '--agent',
      'forbidden',
    ])
    expect(refused).toMatchObject({
      code: 1,
      err: 'The export failed: The server refused the request (403 forbidden): give a key with more scopes with --api-key\n',
    })
    expect(existsSync(out)).toBe(false)
    expect(readdirSync(folder)).toEqual([])
  })

  it.each([
    ['no file', ['--url', 'http://x', '--api-key', 'k']],
    ['an invalid URL', ['--url', 'ftp://x', '--api-key', 'k', '--out', '-']],
    ['an invalid record number', ['--url', 'http://x', '--api-key', 'k', '--out', '-', '--from-seq', '-1']],
  ])('exits 78 for %s', async (_, args) => {
    expect(await run(['export', ...args])).toMatchObject({ code: 78, out: '' })
  })
})
