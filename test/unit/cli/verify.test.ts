import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { keygenCommand } from '../../../src/cli/keygen.js'
import { splitLines } from '../../../src/cli/split-lines.js'
import { verifyCommand } from '../../../src/cli/verify.js'

const text = readFileSync(new URL('../../vectors/export.ndjson', import.meta.url), 'utf8')
const records: { keys: { seed: string; public_key: string }[]; strand: string } = JSON.parse(
  readFileSync(new URL('../../vectors/records.json', import.meta.url), 'utf8'),
)
const key = records.keys[0]?.public_key ?? ''

let directory = ''
let out = ''
let stderr = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-verify-'))
  out = ''
  stderr = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => ((out += String(chunk)), true))
  vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => ((stderr += String(chunk)), true))
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(directory, { recursive: true })
})

function fileOf(content: string | Buffer, name = 'export.ndjson'): string {
  const file = join(directory, name)
  writeFileSync(file, content)
  return file
}

describe('strandfast verify', () => {
  it('exits 0 and prints what it checked when the export is valid', async () => {
    expect(await verifyCommand([fileOf(text), '--public-key', key])).toBe(0)
    expect(out).toContain('VERIFIED 12 records of weather, seq 0 to 11')
    expect(out).toContain(`strand      ${records.strand}`)
    expect(out).not.toContain('PARTIAL')
  })

  it('accepts a key in capitals, a gzipped file of any name, and a last line without LF', async () => {
    expect(
      await verifyCommand([fileOf(gzipSync(text), 'export.gz'), '--public-key', key.toUpperCase()]),
    ).toBe(0)
    expect(await verifyCommand([fileOf(gzipSync(text)), '--public-key', key])).toBe(0)
    expect(await verifyCommand([fileOf(text, 'plain.gz'), '--public-key', key])).toBe(0)
    expect(await verifyCommand([fileOf(text.trimEnd()), '--public-key', key])).toBe(0)
  })

  it('ignores a leading byte order mark and trailing blank lines, but nothing else', async () => {
    expect(await verifyCommand([fileOf(`\ufeff${text}\n \r\n\t\n`), '--public-key', key])).toBe(0)
    out = ''
    for (const wrong of [`\n${text}`, text.replace('\n', '\n\n'), `${text}\n${text}`, `${text}\ufeff`])
      expect(await verifyCommand([fileOf(wrong), '--public-key', key])).toBe(1)
    expect(out).not.toMatch(/^VERIFIED/m)
  })

  it('reports an empty file', async () => {
    expect(await verifyCommand([fileOf(''), '--public-key', key])).toBe(1)
    expect(out).toContain('The export is empty')
  })

  it('exits 1 and prints the first invalid record and why it is invalid', async () => {
    expect(await verifyCommand([fileOf(text.replace('21.5', '21.6')), '--public-key', key])).toBe(1)
    expect(out).toBe('NOT VERIFIED: record 1, line 3: The body is not the one committed to\n')
  })

  it('exits 1 for a key that signed no record', async () => {
    expect(await verifyCommand([fileOf(text), '--public-key', '7'.repeat(64)])).toBe(1)
    expect(out).toContain('No record is signed by the key given')
  })

  it('exits 66 for a missing file and a directory, without a verdict', async () => {
    const right = fileOf(text)
    const none = join(directory, 'none')
    const missing = [[none], [`${none}.gz`], [directory], [right, '--checkpoint', none]]
    for (const args of missing) {
      stderr = ''
      expect(await verifyCommand([...args, '--public-key', key])).toBe(66)
      expect(stderr).toMatch(/^Nothing was verified: E(NOENT|ISDIR): /)
    }
    expect(out).toBe('')
  })

  it('exits 1 for a truncated gzip file, and one that is not UTF-8', async () => {
    expect(
      await verifyCommand([fileOf(gzipSync(text).subarray(0, 500), 'cut.gz'), '--public-key', key]),
    ).toBe(1)
    expect(await verifyCommand([fileOf(Buffer.from([0xff, 0x0a])), '--public-key', key])).toBe(1)
    expect(out.match(/NOT VERIFIED: the export cannot be read/g)).toHaveLength(2)
  })

  it.each([
    [[]],
    [['file']],
    [['file', '--public-key', 'xyz']],
    [['a', 'b', '--public-key', key]],
    [['file', '--kay', key]],
    [['file', '--public-key', key, '--public-key', key]],
  ])('exits 78 for %j with one line that refers to --help', async (args) => {
    expect(await verifyCommand(args)).toBe(78)
    expect(stderr).toMatch(/^.+: see strandfast verify --help\n$/)
    expect(out).toBe('')
  })
})

describe('splitting lines', () => {
  it('splits at LF only, wherever the chunks end', async () => {
    const source = Buffer.from('a\u2028b\r\n\n{"é":"🌦"}\nlast')
    for (let size = 1; size <= source.length; size += 1) {
      const chunks = (async function* () {
        for (let at = 0; at < source.length; at += size) yield source.subarray(at, at + size)
      })()
      const lines: string[] = []
      for await (const line of splitLines(chunks)) lines.push(line)
      expect(lines).toStrictEqual(['a\u2028b\r', '', '{"é":"🌦"}', 'last'])
    }
  })

  it('throws for an endless line', async () => {
    const chunks = (async function* () {
      for (;;) yield Buffer.alloc(1_048_576, 0x61)
    })()
    await expect(splitLines(chunks).next()).rejects.toThrow('longer than')
  })
})

describe('strandfast keygen', () => {
  it('prints the public key of a given seed', async () => {
    const [pair] = records.keys
    expect(await keygenCommand(['--seed', pair?.seed ?? ''])).toBe(0)
    expect(JSON.parse(out)).toStrictEqual({ seed_hex: pair?.seed, public_key: pair?.public_key })
  })

  it('prints a new seed each time', async () => {
    expect([await keygenCommand([]), await keygenCommand([])]).toStrictEqual([0, 0])
    const [one, two] = out.trim().split('\n')
    expect(JSON.parse(one ?? '').seed_hex).toMatch(/^[0-9a-f]{64}$/)
    expect(one).not.toBe(two)
  })

  it('exits 78 for a seed of another length', async () => {
    expect(await keygenCommand(['--seed', 'abc'])).toBe(78)
    expect(stderr).toMatch(/^.+: see strandfast keygen --help\n$/)
  })
})
