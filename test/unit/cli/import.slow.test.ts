import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { freePort } from '../../support/server/free-port.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SignedStrand } from '../../client/signed-strand.js'
import { checkedCall, headOf } from '../../support/http/answers.js'
import { startServer, testRootKey, type TestServer } from '../../support/server/server.js'

const entry = join(import.meta.dirname, '../../../dist/program/strandfast.js')

let server: TestServer
let folder = ''

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '1' } })
  folder = mkdtempSync(join(tmpdir(), 'strandfast-import-'))
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function run(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ code: unknown; out: string; err: string }> {
  const child = spawn(process.execPath, [entry, 'import', ...args], {
    env: { PATH: process.env['PATH'], SERVICE_ROOT_API_KEY: testRootKey, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()))
  const [code] = await once(child, 'close')
  return { code, out, err }
}

/** Writes a file. @returns its path */
function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const seedFile = (byte: number) => file(`seed-${byte}`, `${Buffer.alloc(32, byte).toString('hex')}\n`)

describe('strandfast import', () => {
  it('sends files, gzipped ones too, and prints the result of each', async () => {
    const own = new SignedStrand('plain', 11).append().append()
    const path = file('plain.ndjson', own.exportText())
    const args = ['--url', server.url, '--seed-file', seedFile(11)]
    const first = await run([path, ...args])
    const { body } = await checkedCall(server, 'GET /v1/agents/plain/head')
    const result = `record count 3, chain head ${body.chain_head}\n`
    const out = `Imported 3 records of plain, skipped 0; ${result}`
    expect(first).toEqual({ code: 0, out, err: '' })
    const edited = `\ufeff${own.exportText()}\n \r\n`
    for (const content of [gzipSync(own.exportText()), edited, gzipSync(edited)]) {
      const again = await run([file('again.ndjson', content), ...args])
      expect(again.out).toBe(`Imported 0 records of plain, skipped 3; ${result}`)
    }
  })

  it('does not let an agent accept writes before the last of its files is imported', async () => {
    const own = new SignedStrand('pieces', 12).append()
    const first = file('1.ndjson', own.exportText())
    const second = file('2.ndjson', own.append().exportText(2))
    const { code, out } = await run([first, second, '--url', server.url, '--seed-file', seedFile(12)])
    expect(code).toBe(0)
    const [one = '', two = ''] = out.split('\n')
    expect(one).toMatch(/^Imported 2 records of pieces, .*; the agent does not accept writes yet$/)
    expect(two).toMatch(/^Imported 1 records of pieces, skipped 0; record count 3, chain head [0-9a-f]{64}$/)
    const third = file('3.ndjson', own.append().exportText(3))
    const late = await run([third, '--url', server.url, '--seed-file', seedFile(12)])
    expect([late.code, late.err]).toEqual([1, expect.stringContaining('(409 import_conflict)')])
  })

  it('exits 1 at the first file that is refused, and prints why', async () => {
    const bad = new SignedStrand('bad', 13).append({ type: 'sys/other' }).append()
    const fine = new SignedStrand('fine', 14)
    const files = [file('bad.ndjson', bad.exportText()), file('fine.ndjson', fine.exportText())]
    const { code, out, err } = await run([...files, '--url', server.url])
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(
      /bad\.ndjson was not imported: Line 3, record 1: The system record has the unknown type sys\/other \(422 import_rejected\)/,
    )
    expect(await headOf(server, 'fine')).toBeUndefined()
  })

  it('prints why a long file is refused although the server has read only its beginning', async () => {
    const bad = new SignedStrand('long', 15).append({ type: 'sys/other' })
    const [manifest = '', genesis = '', second = ''] = bad.exportText().split('\n')
    const text = `${[manifest, genesis, second].join('\n')}\n${`${second}\n`.repeat(40_000)}`
    const { code, err } = await run([file('long.ndjson', text), '--url', server.url])
    expect(code).toBe(1)
    expect(err).toMatch(/not imported: Line 3, record 1: .* \(422 import_rejected\)$/m)
  })

  it('sends nothing when one of the files is not an export', async () => {
    const fine = file('fine.ndjson', new SignedStrand('fine', 14).exportText())
    const others = [
      [file('none.ndjson', 'x\n'), 1],
      [file('none.ndjson.gz', 'x\n'), 1],
      [join(folder, 'absent'), 66],
    ] as const
    for (const [other, expected] of others) {
      const { code, out } = await run([fine, other, '--url', server.url])
      expect([code, out]).toEqual([expected, ''])
    }
    expect(await headOf(server, 'fine')).toBeUndefined()
  })

  it('exits 1 when no server responds, and when the key is wrong', async () => {
    const fine = file('fine.ndjson', new SignedStrand('fine', 14).exportText())
    const port = await freePort()
    const unreachable = await run([fine, '--url', `http://127.0.0.1:${port}`])
    expect([unreachable.code, unreachable.err]).toEqual([
      1,
      `${fine} was not imported: No server responds at http://127.0.0.1:${port} (ECONNREFUSED): start one with strandfast serve, ` +
        'or give its address with --url\n',
    ])
    const forbidden = await run([fine, '--url', server.url, '--api-key', 'x'.repeat(32)])
    expect(forbidden.code).toBe(1)
    expect(forbidden.err).toContain('unauthorized')
  })

  it('exits 78 on wrong usage, and 0 on --help', async () => {
    for (const args of [
      [],
      ['x', '--url', 'ftp://x'],
      ['x', '--what'],
      ['x', '--seed-file', join(folder, 'no')],
    ]) {
      const { code, err } = await run(args)
      expect([args, code]).toEqual([args, 78])
      expect(err).toMatch(/^.+: see strandfast import --help\n$/)
    }
    const bad = await run(['x', '--url', server.url, '--seed-file', file('short', 'abc')])
    expect([bad.code, bad.err]).toEqual([78, expect.stringContaining('64 hex digits')])
    const help = await run(['--help'])
    expect([help.code, help.err]).toEqual([0, ''])
    expect(help.out).toContain('Usage: strandfast import')
  })
})
