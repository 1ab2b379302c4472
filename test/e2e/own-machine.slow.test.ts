import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDataDirectory } from '../../src/data/directory.js'
import { freePort } from '../support/server/free-port.js'

/*
 * Commands on the server's own machine, which find its address and root key in its data directory only. The
 * server was started with flags only.
 */

const program = join(import.meta.dirname, '../../dist/program/strandfast.js')

let folder: string
let dataDir: string
let server: ChildProcess
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'own-machine-'))
  dataDir = join(folder, 'data')
  const flags = ['--data-dir', dataDir, '--port=0', '--shards', '1', '--log-level', 'warn']
  server = start(['serve', ...flags], { SERVICE_DATA_DIR: join(folder, 'other') })
  const { stdout } = server
  if (stdout === null) throw new Error('Expected standard output')
  await once(stdout, 'data')
})
afterAll(async () => {
  server.kill('SIGTERM')
  await once(server, 'close')
  rmSync(folder, { recursive: true })
})

function start(args: string[], env: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function run(args: string[], env: Record<string, string> = {}): Promise<[number, string, string]> {
  const child = start(args, env)
  let [out, err] = ['', '']
  child.stdout?.on('data', (chunk) => (out += String(chunk)))
  child.stderr?.on('data', (chunk) => (err += String(chunk)))
  const [code]: unknown[] = await once(child, 'close')
  return [Number(code), out, err]
}

/** Runs a command whose output pipe is closed before the command writes. */
async function runUnread(args: string[]): Promise<[number, string]> {
  const child = start(args, { SERVICE_DATA_DIR: dataDir })
  child.stdout?.destroy()
  let err = ''
  child.stderr?.on('data', (chunk) => (err += String(chunk)))
  const [code]: unknown[] = await once(child, 'close')
  return [Number(code), err]
}

describe('a server that was started by flags', () => {
  it('uses the data directory of the flag, not that of the environment', () => {
    expect(existsSync(join(dataDir, 'format.json'))).toBe(true)
    expect(existsSync(join(folder, 'other'))).toBe(false)
    expect(readFileSync(join(dataDir, 'address'), 'utf8')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\n$/)
  })
})

describe('a command that has the data directory', () => {
  it('finds the address and the root key there', async () => {
    const out = join(folder, 'default.ndjson')
    const saved = await run(['export', '--data-dir', dataDir, '--out', out])
    expect(saved).toEqual([0, '', `Saved 1 records to ${out}\n`])
    // The key is accepted; only a backup can restore the default agent.
    const [code, , refused] = await run(['import', out], { SERVICE_DATA_DIR: dataDir })
    expect([code, refused]).toEqual([1, expect.stringContaining('(403 forbidden)')])
    const [, examined] = await run(['doctor', '--data-dir', dataDir, '--min-free-bytes', '0'])
    expect(examined).toMatch(/^ok +server +http:\/\/127\.0\.0\.1:\d+ is alive and ready$/m)
  })

  it('backs up, restores and reshards the directory of --data-dir', async () => {
    const [backup, restored] = [join(folder, 'backup'), join(folder, 'restored')]
    const made = await run(['backup', backup, '--data-dir', dataDir])
    expect([made[0], made[1]]).toEqual([0, expect.stringMatching(/^Backed up \d+ records of \d+ agents to /)])
    expect(await run(['restore', backup, '--data-dir', restored])).toEqual([
      0,
      expect.stringMatching(/^Restored \d+ records of \d+ agents to \S+restored, as of /),
      '',
    ])
    const moved = await run(['reshard', '--shards', '2', '--data-dir', restored])
    expect([moved[0], moved[1]]).toEqual([
      0,
      expect.stringMatching(/^Moved \d+ agents with \d+ records to 2 shards/),
    ])
    expect((await run(['license', 'issue', '--licensee', 'Acme', '--data-dir', restored]))[0]).toBe(0)
    expect(existsSync(join(restored, 'license-authority.seed'))).toBe(true)
    expect(existsSync(join(folder, 'data', 'license-authority.seed'))).toBe(false)
  })

  it('sends the root key to no other address', async () => {
    const credentials: unknown[] = []
    const other = createServer((request, response) => {
      credentials.push(request.headers.authorization)
      response.writeHead(401, { 'content-type': 'application/problem+json' })
      response.end('{"code":"unauthorized","detail":"Expected a credential"}')
    }).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const address = other.address()
    const port = typeof address === 'object' ? address?.port : 0
    const result = await run([
      'export',
      '--data-dir',
      dataDir,
      '--url',
      `http://127.0.0.1:${port}`,
      '--out',
      '-',
    ])
    other.close()
    expect(credentials).toEqual([undefined])
    expect(result).toEqual([
      1,
      '',
      'The export failed: Expected a credential (401 unauthorized): give the root key with --api-key or SERVICE_ROOT_API_KEY, or ' +
        'use --data-dir on the machine of the server\n',
    ])
  })

  it('does not send the root key after a kill of the server, even if another process listens on its port', async () => {
    const left = join(folder, 'left')
    const killed = start(['serve', '--data-dir', left, '--port=0', '--shards', '1'])
    if (killed.stdout === null) throw new Error('Expected standard output')
    await once(killed.stdout, 'data')
    const port = new URL(readFileSync(join(left, 'address'), 'utf8')).port
    killed.kill('SIGKILL')
    await once(killed, 'close')
    const credentials: unknown[] = []
    const impostor = createServer((request, response) => {
      credentials.push(request.headers.authorization)
      response.writeHead(401).end()
    }).listen(Number(port), '127.0.0.1')
    await once(impostor, 'listening')
    const env = { SERVICE_PORT: port, SERVICE_ROOT_API_KEY: 'k'.repeat(32), SERVICE_DATA_DIR: left }
    const notRunning = `No server runs with the data directory ${left}: start one with strandfast serve, or give the address of one with --url\n`
    for (const args of [
      ['export', '--out', '-'],
      ['query', 'notes'],
      ['write', 'notes'],
      ['tail'],
      ['agents'],
    ])
      expect(await run(args, env)).toEqual([1, '', notRunning])
    expect(await run(['witness', '--state', join(folder, 'note')], env)).toEqual([75, '', notRunning])
    const [, examined] = await run(['doctor', '--min-free-bytes', '0'], env)
    impostor.close()
    expect(examined).toMatch(/^fail +server +http:\S+\/healthz returns 401: is it another program\?$/m)
    expect(credentials).toEqual([undefined])
  })

  it('calls no other server if there is no data directory, or its server does not accept requests', async () => {
    const other = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const address = other.address()
    const env = { SERVICE_PORT: String(typeof address === 'object' ? address?.port : 0) }
    let requests = 0
    other.on('request', () => requests++)
    const missing = join(folder, 'missing')
    expect(await run(['agents', '--data-dir', missing], env)).toEqual([
      1,
      '',
      expect.stringContaining(`There is no data directory ${missing}: `),
    ])
    const used = join(folder, 'used')
    const opening = openDataDirectory({ dataDir: used, shards: 1 }, (count) => Buffer.alloc(count, 1))
    if (!opening.ok) throw new Error(opening.detail)
    expect(await run(['agents', '--data-dir', used], env)).toEqual([
      1,
      '',
      expect.stringContaining(`The server of the data directory ${used} does not accept requests yet: `),
    ])
    expect(requests).toBe(0)
    opening.directory.close()
    const [, examined] = await run(['doctor', '--data-dir', used, '--min-free-bytes', '0'], env)
    other.close()
    expect(examined).toMatch(
      /^warn +server +another server responds at .*: No server runs with the data directory/m,
    )
  })

  it.each([[['export', '--out', '-']], [['doctor', '--min-free-bytes', '0']], [['serve', '--help']]])(
    'ends without an error when its output pipe is closed: %j',
    async (args) => {
      expect(await runUnread(args)).toEqual([0, ''])
    },
  )
})

describe('the first start', () => {
  it('prints what to do next and the rate limit; a later start in a pipe does not', async () => {
    const args = [
      'serve',
      '--data-dir',
      join(folder, 'first'),
      '--port',
      '0',
      '--shards',
      '1',
      '--host',
      '0.0.0.0',
    ]
    const hints: string[] = []
    for (let starts = 0; starts < 2; starts++) {
      const child = start(args)
      let err = ''
      child.stderr?.on('data', (chunk) => (err += String(chunk)))
      child.stdout?.once('data', () => child.kill('SIGTERM'))
      await once(child, 'close')
      hints.push(...err.split('\n').filter((line) => /^(next|limit): /.test(line)))
    }
    expect(hints).toEqual([
      expect.stringMatching(
        /^next: http:\/\/127\.0\.0\.1:\d+\/ in a browser shows the records, \/docs every operation; a first record: node \S+strandfast\.js write hello --data '\{"text":"world"\}' --data-dir first$/,
      ),
      'limit: 100 requests per second from one client address; a request can write many records ' +
        '(SERVICE_RATE_LIMIT_RPS, SERVICE_RATE_LIMIT_EXEMPT)',
    ])
  })
})

describe('the flags of settings', () => {
  it('are named in errors, with the most similar flag for an unknown one', async () => {
    expect(await run(['check', '--port', 'x', '--rate-limit-rps', '5'])).toEqual([
      78,
      '',
      '--port: given "x", allowed: an integer from 0 to 65535\n',
    ])
    expect(await run(['serve', '--prot', '1'])).toEqual([
      78,
      '',
      'Unknown option --prot (did you mean --port?): see strandfast serve --help\n',
    ])
  })

  it('do not exist for secrets, which other users could see', async () => {
    const refused = await run(['serve', '--root-api-key', 'k'.repeat(32)])
    expect(refused).toEqual([78, '', expect.stringContaining('set SERVICE_ROOT_API_KEY instead')])
    expect((await run(['serve', '--help']))[1]).not.toContain('--root-api-key')
  })

  it('take precedence over the environment', async () => {
    const env = { SERVICE_PORT: 'x', SERVICE_LOG_LEVEL: 'loud' }
    expect(await run(['check', '--port', '1', '--log-level=warn'], env)).toEqual([
      0,
      'configuration is valid\n',
      '',
    ])
  })
})

describe('progress', () => {
  // script of util-linux runs a command in a terminal.
  it.runIf(existsSync('/usr/bin/script'))('is shown on a terminal, but not written to a pipe', async () => {
    const stopped = join(folder, 'idle')
    const opening = openDataDirectory({ dataDir: stopped, shards: 2 }, (count) => Buffer.alloc(count, 1))
    if (!opening.ok) throw new Error(opening.detail)
    opening.directory.close()
    const args = ['doctor', '--data-dir', stopped, '--port', '0', '--min-free-bytes', '0']
    const shown = 'checked 2 of 2 stores (100 %)'
    expect((await run(args)).join('')).not.toContain('examined')
    const terminal = spawn('script', ['-qec', [process.execPath, program, ...args].join(' '), '/dev/null'], {
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let out = ''
    terminal.stdout.on('data', (chunk) => (out += String(chunk)))
    await once(terminal, 'close')
    expect(out).toContain(shown)
  })
})

describe('a server that stops', () => {
  it('removes the file with its address', async () => {
    const stopped = start(['serve', '--data-dir', join(folder, 'stopped'), '--port', '0', '--shards', '1'])
    await once(stopped.stdout ?? stopped, 'data')
    expect(existsSync(join(folder, 'stopped', 'address'))).toBe(true)
    stopped.kill('SIGTERM')
    await once(stopped, 'close')
    expect(existsSync(join(folder, 'stopped', 'address'))).toBe(false)
    const port = await freePort()
    const result = await run(['export', '--data-dir', join(folder, 'stopped'), '--out', '-'], {
      SERVICE_PORT: String(port),
    })
    expect(result).toEqual([
      1,
      '',
      expect.stringContaining(`No server runs with the data directory ${join(folder, 'stopped')}: `),
    ])
  })
})

describe('a server that does not respond', () => {
  const tls = join(import.meta.dirname, '../support/http/tls')
  const files = { cert: readFileSync(join(tls, 'cert.pem')), key: readFileSync(join(tls, 'key.pem')) }
  const secure = createSecureServer(files)
  const silent = createTcpServer()
  const urls = { refusing: '', secure: '', silent: '', unknown: 'http://strandfast.invalid' }

  beforeAll(async () => {
    const ports = await Promise.all(
      [secure, silent].map(async (one) => {
        await once(one.listen(0, '127.0.0.1'), 'listening')
        const address = one.address()
        return typeof address === 'object' ? address?.port : 0
      }),
    )
    urls.refusing = `http://127.0.0.1:${await freePort()}`
    urls.secure = `https://127.0.0.1:${ports[0]}`
    urls.silent = `http://127.0.0.1:${ports[1]}`
  })
  afterAll(() => {
    secure.close()
    silent.close()
  })

  const causes = [
    ['refusing', /ECONNREFUSED/],
    ['secure', /self-signed certificate/],
    ['unknown', /ENOTFOUND|EAI_AGAIN/],
  ] as const

  it.each(causes)('is reported with the cause while a command tries again: %s', async (name, cause) => {
    const child = start(['agents', '--url', urls[name], '--api-key', 'k'.repeat(32)])
    const [line]: unknown[] = await once(child.stderr ?? child, 'data')
    child.kill('SIGTERM')
    await once(child, 'close')
    expect(String(line)).toMatch(/^warning: .*; still trying\n$/)
    expect(String(line)).toMatch(cause)
  })

  // An address for documentation (RFC 5737): networks drop packets to it, or refuse them.
  it.each([
    ['agents'],
    ['export', '--out', '-'],
    ['keys', 'rotate'],
    ['witness', '--state', 'note'],
    ['tail'],
  ])('is reported while %s connects', async (...args) => {
    const child = start([...args, '--url', 'http://192.0.2.1', '--api-key', 'k'.repeat(32)])
    const [line]: unknown[] = await once(child.stderr ?? child, 'data')
    child.kill('SIGKILL')
    await once(child, 'close')
    expect(String(line)).toMatch(
      /No connection yet to http:\/\/192\.0\.2\.1; still trying|E[A-Z]{5,}|[Tt]imeout/,
    )
  })

  it('is not reported if it only responds slowly', async () => {
    const child = start(['agents', '--url', urls.silent, '--api-key', 'k'.repeat(32)])
    let err = ''
    child.stderr?.on('data', (chunk) => (err += String(chunk)))
    // The second connection is the one that finds out whether the server accepts any.
    await once(silent, 'connection')
    const [socket]: Socket[] = await once(silent, 'connection')
    if (socket !== undefined) await once(socket, 'close')
    child.kill('SIGTERM')
    await once(child, 'close')
    expect(err).toBe('')
  })

  it.each(causes)('is reported with the cause by a command that tries once: %s', async (name, cause) => {
    for (const args of [
      ['export', '--out', '-'],
      ['keys', 'rotate'],
      ['witness', '--state', join(folder, 'note')],
    ]) {
      const [code, out, err] = await run([...args, '--url', urls[name], '--api-key', 'k'.repeat(32)])
      expect([[1, 75].includes(code), out]).toEqual([true, ''])
      expect(err).toMatch(cause)
      expect(err).not.toContain('fetch failed')
    }
  })
})
