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
let told = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-verify-'))
  out = ''
  told = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => ((out += String(chunk)), true))
  vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => ((told += String(chunk)), true))
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
  it('exits 0 and says what it checked when the export is right', async () => {
    expect(await verifyCommand([fileOf(text), '--key', key])).toBe(0)
    expect(out).toContain('VERIFIED 12 records of weather, seq 0 to 11')
    expect(out).toContain(`strand      ${records.strand}`)
    expect(out).not.toContain('PARTIAL')
  })

  it('takes a key in capitals, gzip by whatever name, and a last line without LF', async () => {
    expect(await verifyCommand([fileOf(gzipSync(text), 'export.gz'), '--key', key.toUpperCase()])).toBe(0)
    expect(await verifyCommand([fileOf(gzipSync(text)), '--key', key])).toBe(0)
    expect(await verifyCommand([fileOf(text, 'plain.gz'), '--key', key])).toBe(0)
    expect(await verifyCommand([fileOf(text.trimEnd()), '--key', key])).toBe(0)
  })

  it('passes over a byte order mark and blank lines at the end, and over nothing else', async () => {
    expect(await verifyCommand([fileOf(`\ufeff${text}\n \r\n\t\n`), '--key', key])).toBe(0)
    out = ''
    for (const wrong of [`\n${text}`, text.replace('\n', '\n\n'), `${text}\n${text}`, `${text}\ufeff`])
      expect(await verifyCommand([fileOf(wrong), '--key', key])).toBe(1)
    expect(out).not.toMatch(/^VERIFIED/m)
  })

  it('says of a file with nothing in it that it is empty', async () => {
    expect(await verifyCommand([fileOf(''), '--key', key])).toBe(1)
    expect(out).toContain('The export is empty')
  })

  it('exits 1 and names the first record that is wrong, and why', async () => {
    expect(await verifyCommand([fileOf(text.replace('21.5', '21.6')), '--key', key])).toBe(1)
    expect(out).toBe('NOT VERIFIED: record 1, line 3: The body is not the one committed to\n')
  })

  it('exits 1 for a key that signed nothing', async () => {
    expect(await verifyCommand([fileOf(text), '--key', '7'.repeat(64)])).toBe(1)
    expect(out).toContain('No record is signed by the key given')
  })

  it('exits 66 for a file that is missing or a folder, and says nothing of an export', async () => {
    const right = fileOf(text)
    const none = join(directory, 'none')
    const missing = [[none], [`${none}.gz`], [directory], [right, '--checkpoint', none]]
    for (const args of missing) {
      told = ''
      expect(await verifyCommand([...args, '--key', key])).toBe(66)
      expect(told).toMatch(/^Nothing was verified: E(NOENT|ISDIR): /)
    }
    expect(out).toBe('')
  })

  it('exits 1 for a file that is cut within its gzip, or not UTF-8', async () => {
    expect(await verifyCommand([fileOf(gzipSync(text).subarray(0, 500), 'cut.gz'), '--key', key])).toBe(1)
    expect(await verifyCommand([fileOf(Buffer.from([0xff, 0x0a])), '--key', key])).toBe(1)
    expect(out.match(/NOT VERIFIED: the export cannot be read/g)).toHaveLength(2)
  })

  it.each([
    [[]],
    [['file']],
    [['file', '--key', 'xyz']],
    [['a', 'b', '--key', key]],
    [['file', '--kay', key]],
    [['file', '--key', key, '--key', key]],
  ])('exits 78 with one line that says where the usage is for %j', async (args) => {
    expect(await verifyCommand(args)).toBe(78)
    expect(told).toMatch(/^.+: strandfast verify --help shows the usage\n$/)
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

  it('throws for a line without end', async () => {
    const chunks = (async function* () {
      for (;;) yield Buffer.alloc(1_048_576, 0x61)
    })()
    await expect(splitLines(chunks).next()).rejects.toThrow('longer than')
  })
})

describe('strandfast keygen', () => {
  it('prints the public key of the seed given', async () => {
    const [pair] = records.keys
    expect(await keygenCommand(['--seed', pair?.seed ?? ''])).toBe(0)
    expect(JSON.parse(out)).toStrictEqual({ seed_hex: pair?.seed, public_key: pair?.public_key })
  })

  it('prints another new seed each time', async () => {
    expect([await keygenCommand([]), await keygenCommand([])]).toStrictEqual([0, 0])
    const [one, two] = out.trim().split('\n')
    expect(JSON.parse(one ?? '').seed_hex).toMatch(/^[0-9a-f]{64}$/)
    expect(one).not.toBe(two)
  })

  it('exits 78 for a seed of another length', async () => {
    expect(await keygenCommand(['--seed', 'abc'])).toBe(78)
    expect(told).toMatch(/^.+: strandfast keygen --help shows the usage\n$/)
  })
})
