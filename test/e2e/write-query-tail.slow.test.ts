// @run by two fronts
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../support/server/free-port.js'
import { startServer, type TestServer } from '../support/server/server.js'

const program = join(import.meta.dirname, '../../dist/program/strandfast.js')

let port: string
let server: TestServer
const options = () => ({ SERVICE_PORT: port, SERVICE_SHARDS: '1' })
beforeAll(async () => {
  port = String(await freePort())
  server = await startServer({ env: options() })
})
afterAll(() => server.stop())

function start(args: string[]): ChildProcess {
  const env = {
    PATH: process.env['PATH'],
    SERVICE_ROOT_API_KEY: server.rootKey,
    SERVICE_DATA_DIR: server.dataDir,
  }
  return spawn(process.execPath, [program, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
}

async function run(args: string[], input: string | Buffer = ''): Promise<[number, string, string]> {
  const child = start(args)
  let [out, err] = ['', '']
  child.stdout?.on('data', (chunk) => (out += String(chunk)))
  child.stderr?.on('data', (chunk) => (err += String(chunk)))
  child.stdin?.end(input)
  const [code]: unknown[] = await once(child, 'close')
  return [Number(code), out, err]
}

async function bodiesOf(args: string[]): Promise<unknown[]> {
  const [code, out] = await run(['query', ...args])
  expect(code).toBe(0)
  return out
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { payload }: { payload: unknown } = JSON.parse(line)
      return payload
    })
}

describe('strandfast write', () => {
  it('creates the collection and writes each line of standard input, in order', async () => {
    const lines = Array.from(
      { length: 2_500 },
      (_none, number) => `{"number":${number},"parity":${number % 2}}\n`,
    )
    const [code, out, err] = await run(['write', 'numbers'], lines.join(''))
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(
      /^Wrote 2500 records to numbers \(seq 1 to 2500, chain head (sha256:)?[0-9a-f]{64}\)\n$/,
    )
  })

  it('detects gzip by its first bytes, and ignores a byte order mark', async () => {
    for (const input of ['\ufeff{"a":1}\r\n{"a":2}', gzipSync('\ufeff{"a":1}\n{"a":2}\n')]) {
      const [code, out, err] = await run(['write', 'packed'], input)
      expect([code, err, out]).toEqual([0, '', expect.stringMatching(/^Wrote 2 records to packed/)])
    }
    expect(await bodiesOf(['packed', '--oldest'])).toEqual([{ a: 1 }, { a: 2 }, { a: 1 }, { a: 2 }])
    const [code, , err] = await run(['write', 'packed'], gzipSync('{"a":1}\n').subarray(0, 12))
    expect([code, err]).toEqual([1, expect.stringMatching(/^Stopped: /)])
  })

  it('writes the record of --data with its type, and prints the answer with --json', async () => {
    const args = ['write', 'single', '--data', '{"a":"b"}', '--type', 'note', '--json']
    const [code, out, err] = await run(args)
    expect([code, err]).toEqual([0, expect.stringMatching(/^Wrote 1 record to single \(seq 1, /)])
    expect(JSON.parse(out)).toMatchObject({ seq: 1 })
    expect(await bodiesOf(['single', '--type', 'note'])).toEqual([{ a: 'b' }])
  })

  it('reports each line that is refused, by the command or by the server, and writes the others', async () => {
    const big = JSON.stringify({ text: 'x'.repeat(300_000) })
    const input = `{"good":1}\nnot json\n[1]\n{"large":9007199254740993}\n${big}\n\n{"good":2}`
    const [code, out, err] = await run(['write', 'mixed'], input)
    expect([code, out]).toEqual([
      1,
      expect.stringMatching(/^Wrote 2 records to mixed \(seq 1 to 2, chain head \S+\), refused 4$/m),
    ])
    expect(err.split('\n').map((line) => /^Line \d/.exec(line)?.[0])).toEqual([
      'Line 2',
      'Line 3',
      'Line 4',
      'Line 5',
      undefined,
    ])
    expect(await bodiesOf(['mixed', '--oldest'])).toEqual([{ good: 1 }, { good: 2 }])
    // A program may wait for the answer to each line before it continues (docs/PIPELINES.md, rsyslog).
    const [, answers] = await run(['write', 'mixed', '--json'], input)
    const each: { seq?: number; line?: number }[] = answers
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text))
    expect(each.map(({ seq, line }) => line ?? seq).toSorted()).toEqual([2, 3, 3, 4, 4, 5])
  })

  it('prints one line if the key is wrong, and exits 78 on wrong usage', async () => {
    const refused = await run([
      'write',
      'x',
      '--data',
      '{}',
      '--api-key',
      'wrong-key-0123456789abcdefghijklmnop',
    ])
    expect(refused).toEqual([
      1,
      'Wrote 0 records to x\n',
      expect.stringMatching(/^Stopped: .* \(401 unauthorized\)/),
    ])
    expect(await run(['write'])).toEqual([78, '', 'Expected one NAME: see strandfast write --help\n'])
  })
})

describe('strandfast query', () => {
  it('prints the given number of records from several pages, newest or oldest first', async () => {
    expect(await bodiesOf(['numbers', '--limit', '1'])).toEqual([{ number: 2_499, parity: 1 }])
    const all = await bodiesOf(['numbers', '--limit', '2400', '--oldest'])
    expect(all.length).toBe(2_400)
    expect(all.at(-1)).toEqual({ number: 2_399, parity: 1 })
  })

  it('prints only records that match all conditions', async () => {
    const args = ['numbers', '--where', 'number>=7', '--where', 'parity=0', '--oldest', '--limit', '2']
    expect(await bodiesOf(args)).toEqual([
      { number: 8, parity: 0 },
      { number: 10, parity: 0 },
    ])
    const [code, out] = await run(['query', 'numbers', '--to', '2001-01-01T00:00:00Z'])
    expect([code, out]).toEqual([0, ''])
  })

  it('warns once for all pages if a condition compares a number with a text', async () => {
    const [code, out, err] = await run(['query', 'numbers', '--where', '/number="7"'])
    expect([code, out]).toEqual([0, ''])
    expect(err).toMatch(/^warning: \/where\/0 compares \/number with text.*\n$/)
  })

  it('prints one line for an error', async () => {
    const [code, out, err] = await run(['query', 'unknown'])
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^The query failed: .* \(404 agent_not_found\): check the name.*\n$/)
    for (const wrong of [
      ['--where', 'a b'],
      ['--limit', '0'],
      ['--limit', 'x'],
    ]) {
      expect(await run(['query', 'numbers', ...wrong])).toEqual([
        78,
        '',
        expect.stringMatching(/^Expected .*\n$/),
      ])
    }
  })
})

describe('strandfast tail', () => {
  it('prints records as they are written, reconnects after a restart of the server, and ends with Ctrl-C', async () => {
    await run(['write', 'followed', '--data', '{"n":1}'])
    const child = start(['tail', 'followed', '--since', '0'])
    const { stdout, stderr } = child
    if (stdout === null || stderr === null) throw new Error('Expected pipes')
    const lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
    const messages = createInterface({ input: stderr })[Symbol.asyncIterator]()
    const next = async () => {
      const { value } = await lines.next()
      const { agent, payload }: { agent: string; payload: unknown } = JSON.parse(String(value))
      return [agent, payload]
    }
    expect(await next()).toEqual(['followed', { n: 1 }])
    await run(['write', 'followed', '--data', '{"n":2}'])
    expect(await next()).toEqual(['followed', { n: 2 }])
    await server.halt()
    expect((await messages.next()).value).toMatch(/^The connection was lost, reconnecting: /)
    server = await startServer({ dataDir: server.dataDir, env: options() })
    await run(['write', 'followed', '--data', '{"n":3}'])
    expect(await next()).toEqual(['followed', { n: 3 }])
    expect((await messages.next()).value).toBe('Reconnected')
    child.kill('SIGINT')
    expect(await once(child, 'close')).toEqual([0, null])
  })

  it('ends with one line when the server refuses', async () => {
    const [code, out, err] = await run(['tail', 'unknown'])
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^The stream ended: .* \(404 agent_not_found\).*\n$/)
    expect((await run(['tail', '--filter', 'x']))[0]).toBe(78)
  })

  it('ends without an error when its output pipe is closed', async () => {
    const child = start(['tail', 'numbers', '--since', '0'])
    let err = ''
    child.stderr?.on('data', (chunk) => (err += String(chunk)))
    child.stdout?.once('data', () => child.stdout?.destroy())
    expect(await once(child, 'close')).toEqual([0, null])
    expect(err).toBe('')
  })
})
