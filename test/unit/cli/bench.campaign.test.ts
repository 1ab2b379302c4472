import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { startServer } from '../../support/server/server.js'

const built = fileURLToPath(new URL('../../../dist/program/strandfast.js', import.meta.url))

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bench-command-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

interface Running {
  process: ChildProcess
  out(): string
  err(): string
}

function start(args: string[], env: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, [built, 'bench', ...args], {
    env: { PATH: process.env['PATH'], SERVICE_DATA_DIR: join(folder, 'data'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  child.stderr.on('data', (chunk) => (err += String(chunk)))
  return { process: child, out: () => out, err: () => err }
}

async function run(args: string[], env: Record<string, string> = {}) {
  const running = start(args, env)
  const [code]: unknown[] = await once(running.process, 'close')
  return { code, out: running.out(), err: running.err() }
}

/** Processes whose environment names the folder. */
function processesOf(path: string): string[] {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && environmentOf(pid).includes(path))
}

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    // It has ended.
    return ''
  }
}

describe('strandfast bench --url', () => {
  it('measures a running server, again too, where a range exempts this address', async () => {
    const server = await startServer({
      env: { SERVICE_RATE_LIMIT_RPS: '100', SERVICE_RATE_LIMIT_EXEMPT: '10.0.0.0/8,127.0.0.0/8' },
    })
    const { url, rootKey } = server
    const asked = ['--url', url, '--key', rootKey, '--seconds', '1']
    const json = await run([...asked, '--json'])
    const text = await run(asked)
    await server.stop()
    expect([json.code, json.err]).toEqual([0, ''])
    const report: { url: string; results: { per_second: number }[] } = JSON.parse(json.out)
    expect(report.url).toBe(url)
    expect(report.results.map(({ per_second }) => per_second > 0)).toEqual([true, true, true])
    expect(text).toMatchObject({
      code: 0,
      out: expect.stringContaining('single durable writes, 64 connections'),
    })
  })

  it('says what to do where the server limits the rate, refuses the key or is not there', async () => {
    const server = await startServer({ env: { SERVICE_RATE_LIMIT_RPS: '100' } })
    const { url, rootKey } = server
    const limited = await run(['--url', url, '--key', rootKey])
    const refused = await run(['--url', url, '--key', 'x'.repeat(32)])
    await server.stop()
    const nowhere = await run(['--url', url, '--key', rootKey])
    const saying = (err: RegExp) => ({ code: 1, out: '', err: expect.stringMatching(err) })
    expect(limited).toEqual(
      saying(/^Not measured: The server limits the rate of this address .*SERVICE_RATE_LIMIT_EXEMPT/),
    )
    expect(refused).toEqual(saying(/^Not measured: .* \(401 \w+\)/))
    expect(nowhere).toEqual(saying(/^Not measured: No server answers at /))
    expect((await run(['--key', rootKey])).code).toBe(78)
    expect((await run(['--url', url, '--dir', folder])).code).toBe(78)
  })
})

describe('strandfast bench', () => {
  it('measures writes, ingest and reads beside what the machine can do, and leaves nothing behind', async () => {
    const { code, out, err } = await run(['--seconds', '2', '--json', '--dir', folder])
    expect(err).toBe('')
    expect(code).toBe(0)
    const report = JSON.parse(out)
    expect(report).toMatchObject({ node: process.version, seconds: 2, signing: 'record' })
    expect(
      report.results.map(({ name, unit }: { name: string; unit: string }) => `${name}: ${unit}`),
    ).toEqual([
      'single durable writes, 64 connections: records/s',
      'NDJSON ingest, 8 uploads of 250 lines: records/s',
      'get by hash, 64 connections: reads/s',
    ])
    for (const { per_second, p50_ms, p99_ms } of report.results) {
      expect(per_second).toBeGreaterThan(0)
      expect(p50_ms).toBeGreaterThan(0)
      expect(p99_ms).toBeGreaterThanOrEqual(p50_ms)
    }
    for (const ceiling of Object.values(report.ceilings)) expect(ceiling).toBeGreaterThan(0)
    expect(readdirSync(folder)).toEqual([])
  })

  it('works beside the data directory without making or touching one', async () => {
    const running = start(['--seconds', '2'])
    await eventually(() => running.err().includes('Measuring single durable writes'))
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^strandfast-bench-/)])
    const [code]: unknown[] = await once(running.process, 'close')
    expect(code).toBe(0)
    expect(running.out()).toMatch(/^single durable writes, 64 connections +[\d,]+ records\/s +p50 [\d.]+ ms/m)
    expect(running.out()).toMatch(/^Ed25519 signatures of one core +[\d,]+ signatures\/s$/m)
    expect(existsSync(join(folder, 'data'))).toBe(false)
  })

  it('ends its server and removes its directory when it is interrupted', async () => {
    mkdirSync(join(folder, 'data'))
    const running = start(['--seconds', '60'])
    await eventually(() => running.err().includes('Measuring single durable writes'))
    const [name = ''] = readdirSync(folder).filter((entry) => entry.startsWith('strandfast-bench-'))
    expect(processesOf(join(folder, name))).toHaveLength(1)
    running.process.kill('SIGINT')
    const [code]: unknown[] = await once(running.process, 'close')
    expect(code).toBe(1)
    expect(readdirSync(folder)).toEqual(['data'])
    await eventually(() => processesOf(join(folder, name)).length === 0)
  })

  it.each(['0', '61', 'x', '1.5'])('refuses %s seconds', async (seconds) => {
    const refused = await run(['--seconds', seconds])
    expect(refused).toMatchObject({ code: 78, out: '' })
    expect(refused.err).toContain('Expected a number from 1 to 60 after --seconds')
  })

  it('refuses a directory that is none, and settings that are wrong', async () => {
    expect(await run(['--dir', join(folder, 'none')])).toMatchObject({ code: 78, out: '' })
    const wrong = await run([], { SERVICE_SIGNING: 'never' })
    expect(wrong).toMatchObject({ code: 78, out: '' })
    expect(wrong.err).toContain('SERVICE_SIGNING')
  })

  it('ends with 1 and says why where nothing can be made', async () => {
    const failed = await run(['--dir', '/proc/self'])
    expect(failed).toMatchObject({ code: 1, out: '' })
    expect(failed.err).toContain('Not measured')
  })
})
