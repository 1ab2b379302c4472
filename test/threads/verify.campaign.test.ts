import { spawn, spawnSync } from 'node:child_process'
import {
  createReadStream,
  createWriteStream,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type * as VerifySegments from '../../src/cli/verify-segments.js'
import { checkpointOrigin, signCheckpoint } from '../../src/strand/checkpoint.js'
import { recordHash } from '../../src/strand/hash.js'
import type { KeyPair } from '../../src/strand/keys.js'
import { treeRoot } from '../../src/strand/merkle.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { laterKeys, longExportKeys, longExportLines } from '../unit/strand/long-export.js'

// Threads cannot load TypeScript, so they run from the build.
const dist = new URL('../../dist/', import.meta.url)
const { verifySegments }: typeof VerifySegments = await import(
  new URL('src/cli/verify-segments.js', dist).href
)
const main = fileURLToPath(new URL('program/strandfast.js', dist))

const { publicKey: trustedKey } = longExportKeys
const RECORDS = 12_000

let directory = ''
let file = ''
let lines: string[] = []
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-verify-threads-'))
  file = join(directory, 'export.ndjson')
  lines = [...longExportLines(RECORDS)]
  writeFileSync(file, `${lines.join('\n')}\n`)
})
afterAll(() => rmSync(directory, { recursive: true }))

/** Runs the command. `peak` is its maximum resident memory, bytes. */
async function verify(
  args: string[],
  input?: string,
): Promise<{ code: unknown; out: string; err: string; peak: number }> {
  const script = `process.argv = [process.execPath, 'strandfast', 'verify', ...process.argv.slice(1)]
    process.on('exit', () => process.stderr.write('peak ' + process.resourceUsage().maxRSS))
    await import(${JSON.stringify(pathToFileURL(main).href)})`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, '--', ...args])
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  child.stderr.on('data', (chunk) => (err += String(chunk)))
  const closed = once(child, 'close')
  if (input === undefined) child.stdin.end()
  else await pipeline(createReadStream(input), child.stdin)
  const [code]: unknown[] = await closed
  return { code, out, err, peak: Number(/peak (\d+)$/.exec(err)?.[1]) * 1024 }
}

describe('verifying an export of several segments', () => {
  it('exits with 0 for a file, a gzipped file and standard input, with the same output', async () => {
    const zipped = join(directory, 'export.ndjson.gz')
    writeFileSync(zipped, gzipSync(readFileSync(file), { level: 1 }))
    const whole = await verify([file, '--public-key', trustedKey])
    expect(whole).toMatchObject({
      code: 0,
      out: expect.stringContaining(`VERIFIED ${RECORDS} records of long`),
    })
    expect(whole.out).toContain('signatures  21 checked; 11979 records sealed by them')
    expect(await verify([zipped, '--public-key', trustedKey])).toMatchObject({ code: 0, out: whole.out })
    expect(await verify(['-', '--public-key', trustedKey], file)).toMatchObject({ code: 0, out: whole.out })
  })

  it('reports for --fast what it has not checked', async () => {
    const { code, out } = await verify([file, '--public-key', trustedKey, '--fast'])
    expect(code).toBe(0)
    expect(out).toContain('signatures  2 checked, 19 not; 11979 records sealed by them')
    expect(out).toContain('FAST: ')
  })

  it('names the first invalid line, even if another thread finds a later one', async () => {
    const damaged = [...lines]
    for (const line of [9_000, 11_000, 2_500])
      damaged[line] = (lines[line] ?? '').replace(/"body":"\d+"/, '"body":"7"')
    const broken = join(directory, 'broken.ndjson')
    writeFileSync(broken, damaged.join('\n'))
    expect(await verify([broken, '--public-key', trustedKey])).toMatchObject({
      code: 1,
      out: 'NOT VERIFIED: record 2499, line 2501: The body is not the one committed to\n',
    })
  })

  it('names a fault that precedes unreadable data, and otherwise the unreadable data', async () => {
    const text = readFileSync(file)
    const cut = gzipSync(text, { level: 1 }).subarray(0, -20_000)
    const unreadable = join(directory, 'cut.ndjson.gz')
    writeFileSync(unreadable, cut)
    const { code, out } = await verify([unreadable, '--public-key', trustedKey])
    expect(code).toBe(1)
    expect(out).toContain('NOT VERIFIED: the export cannot be read: ')
    const wrong = Buffer.from(text)
    wrong.write('"body":"9"', wrong.indexOf('"body":"3"'))
    writeFileSync(unreadable, gzipSync(wrong, { level: 1 }).subarray(0, -20_000))
    expect((await verify([unreadable, '--public-key', trustedKey])).out).toContain('record 3, line 5: ')
    const notUtf8 = Buffer.from(text)
    notUtf8[notUtf8.indexOf('"body":"9000"') + 9] = 0xff
    expect(() => new TextDecoder('utf-8', { fatal: true }).decode(notUtf8)).toThrow()
    await expect(verifySegments(Readable.from([notUtf8]), { trustedKey })).rejects.toThrow(
      'a line is not UTF-8',
    )
  })

  // A result that was sent while the threads were ended was an uncaught error, and the command printed no verdict.
  it('ends its threads while results arrive', () => {
    const script = `import { readFileSync } from 'node:fs'
      import { SegmentPool } from ${JSON.stringify(new URL('src/cli/verify-segments.js', dist).href)}
      import { readFirstLine } from ${JSON.stringify(new URL('src/proof/export-check.js', dist).href)}
      const [first, ...lines] = readFileSync(process.argv[1], 'utf8').split('\\n', 11)
      const options = { trustedKey: process.argv[2] }
      const segment = { manifest: readFirstLine(first, {}), bytes: Buffer.from(lines.join('\\n')), options }
      const pool = new SegmentPool()
      await pool.check(segment)
      pool.check(segment).catch(() => {})
      // The result arrives while this thread is busy.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
      await pool.close()`
    const args = ['--input-type=module', '-e', script, '--', file, trustedKey]
    expect(spawnSync(process.execPath, args, { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  })

  it('comes to the verdict of a check line by line, whatever is wrong with the file', async () => {
    const tampering = fc.record({
      line: fc.integer({ min: 1, max: lines.length - 1 }),
      kind: fc.constantFrom('leave out', 'repeat', 'change', 'insert'),
      at: fc.nat({ max: 600 }),
    })
    const run = fc.asyncProperty(tampering, fc.boolean(), async ({ line, kind, at }, fast) => {
      const text = lines[line] ?? ''
      const index = at % text.length
      const changed =
        text.slice(0, index) + String.fromCharCode(text.charCodeAt(index) ^ 1) + text.slice(index + 1)
      const put =
        { 'leave out': [], repeat: [text, text], change: [changed], insert: ['{}', text] }[kind] ?? []
      const damaged = lines.toSpliced(line, 1, ...put)
      const expected = await verifyExport(damaged, { publicKey: trustedKey, fast })
      const found = await verifySegments(Readable.from([Buffer.from(damaged.join('\n'))]), {
        trustedKey,
        fast,
      })
      expect(found).toStrictEqual(expected)
    })
    await fc.assert(run, { numRuns: 4 })
  })

  it('needs no more memory for four times the records', async () => {
    const peaks: number[] = []
    for (const count of [30_000, 120_000]) {
      const long = join(directory, `long-${count}.ndjson`)
      await pipeline(withLineFeeds(longExportLines(count)), createWriteStream(long))
      const { code, peak } = await verify([long, '--public-key', trustedKey, '--fast'])
      expect(code).toBe(0)
      peaks.push(peak)
      rmSync(long)
    }
    const [few = 0, many = 0] = peaks
    expect(few).toBeGreaterThan(1_000_000)
    // The larger file is longer by 60 MB.
    expect(many / few).toBeLessThan(1.3)
  })
})

describe('comparing an export of several segments with a checkpoint', () => {
  // Each rotation is in another segment.
  const rotations = [4_000, 8_000]
  const hashes: string[] = []
  let rotated = ''
  beforeAll(() => {
    const whole = [...longExportLines(RECORDS, undefined, rotations)]
    for (const line of whole.slice(1, -1)) hashes.push(recordHash(JSON.parse(line).h))
    rotated = join(directory, 'rotated.ndjson')
    writeFileSync(rotated, `${whole.join('\n')}\n`)
  })

  function noteFile(size: number, keys: KeyPair): string {
    const leaves = hashes.slice(0, size).map((hash) => Buffer.from(hash, 'hex'))
    const rootHex = Buffer.from(
      treeRoot(size, { leaves: (start, end) => leaves.slice(start, end) }),
    ).toString('hex')
    const note = join(directory, 'kept.note')
    writeFileSync(note, signCheckpoint({ origin: checkpointOrigin(hashes[0] ?? ''), size, rootHex }, keys))
    return note
  }

  it('accepts a checkpoint from before two rotations by each later key, also with --fast', async () => {
    for (const keys of [longExportKeys, laterKeys(0), laterKeys(1)]) {
      for (const more of [[], ['--fast']]) {
        const note = noteFile(3_000, keys)
        const { code, out } = await verify([
          rotated,
          '--public-key',
          trustedKey,
          '--checkpoint',
          note,
          ...more,
        ])
        expect([code, out]).toEqual([
          0,
          expect.stringContaining('compared    with the checkpoint of 3000 records'),
        ])
        expect(out).toContain('(after 2 rotations)')
      }
    }
  })

  it('refuses a checkpoint by a key that was rotated away in another segment', async () => {
    const note = noteFile(7_000, longExportKeys)
    expect(await verify([rotated, '--public-key', trustedKey, '--checkpoint', note])).toMatchObject({
      code: 1,
      out: 'NOT VERIFIED: The checkpoint is signed by a key that was rotated away before the strand had 7000 records\n',
    })
  })
})

function* withLineFeeds(source: Iterable<string>): Generator<string> {
  for (const line of source) yield `${line}\n`
}
