import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FileLog, type LogPosition } from '../../../../workers/store/log/file-log.js'
import {
  contentOf,
  decodeSegment,
  encodeSegment,
  segmentBytes,
} from '../../../../workers/store/log/segment.js'

let directory: string
let log: FileLog

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-log-'))
  log = FileLog.open(directory, undefined)
})

afterEach(async () => {
  await log.close()
  rmSync(directory, { recursive: true, force: true })
})

const SECTOR = 512

function content(n: number, bytes = 700): Buffer {
  return Buffer.alloc(bytes, `content ${n} `)
}

/**
 * Opens the log again at a position, as a start does.
 * @returns the digests of the contents that it reads from there
 */
function reopen(from: LogPosition): string[] {
  log.close()
  log = FileLog.open(directory, from)
  return Array.from(log.read(), (segment) => digest(segment.content))
}

function digest(bytes: Buffer): string {
  return hash('sha256', bytes)
}

function digests(...contents: readonly Buffer[]): string[] {
  return contents.map(digest)
}

/** Appends a segment and waits until it is on disk. */
function append(content: Buffer): void {
  log.append(contentOf(content))
  log.syncNow()
}

/**
 * Calls `work` while this process cannot open a file.
 * @returns the number of descriptors that were taken for that
 */
function withoutDescriptors(work: () => void): number {
  const own = ['--pid', String(process.pid)]
  const [soft] = execFileSync('prlimit', [...own, '--nofile', '--noheadings', '--raw', '-o', 'SOFT,HARD'])
    .toString()
    .split(/\s+/)
  const taken: number[] = []
  execFileSync('prlimit', [...own, `--nofile=${readdirSync('/proc/self/fd').length + 64}:`])
  try {
    expect(() => {
      for (;;) taken.push(openSync('/dev/null', 'r'))
    }).toThrow('EMFILE')
    work()
  } finally {
    for (const fd of taken) closeSync(fd)
    execFileSync('prlimit', [...own, `--nofile=${soft}:`])
  }
  return taken.length
}

/** The number of open descriptors of files of the log. */
function openFiles(): number {
  return readdirSync('/proc/self/fd').filter((fd) => pathOf(fd).startsWith(directory)).length
}

/** The path of a descriptor of this process; empty if it was that of the listing itself. */
function pathOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}

function start(): LogPosition {
  expect([...log.read()]).toEqual([])
  return log.end
}

function file(no = 1): string {
  return join(directory, `${no}.log`)
}

/** Changes a byte of a file. */
function flip(at: number, no = 1): void {
  const bytes = readFileSync(file(no))
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(file(no), bytes)
}

describe('a log of segments', () => {
  it('returns the segments that were appended after the given position, over several openings', () => {
    const from = start()
    append(content(1))
    const middle = log.end
    append(content(2, 5_000))
    append(content(3, 0))
    const { end } = log
    expect(reopen(from)).toEqual(digests(content(1), content(2, 5_000), content(3, 0)))
    expect(log.end).toEqual(end)
    append(content(4))
    expect(reopen(middle)).toEqual(digests(content(2, 5_000), content(3, 0), content(4)))
    expect(reopen(log.end)).toEqual([])
  })

  it('returns segments in the same pages that were written alternately past the cache and through it', () => {
    const from = start()
    const contents: Buffer[] = []
    for (let n = 1; n <= 60; n++) {
      contents.push(content(n, 300 + 97 * n))
      log.append(contentOf(contents.at(-1) ?? Buffer.alloc(0)))
      // A segment after one that is not on disk yet goes through the cache.
      if (n % 3 > 0) log.syncNow()
    }
    log.syncNow()
    expect(reopen(from)).toEqual(digests(...contents))
  })

  it('ends before a segment that is torn in any sector, and continues there', () => {
    const from = start()
    append(content(1))
    const { offset, number } = log.end
    append(content(2, 2_000))
    const whole = readFileSync(file())
    for (let at = offset; at < offset + segmentBytes(2_000); at += SECTOR) {
      const torn = Buffer.from(whole)
      torn.fill(0, at, at + SECTOR)
      writeFileSync(file(), torn)
      expect(reopen(from)).toEqual(digests(content(1)))
      expect(log.end).toMatchObject({ offset, number })
    }
    append(content(3))
    expect(reopen(from)).toEqual(digests(content(1), content(3)))
  })

  it('reports damage when any bit of a segment that was on disk has flipped', () => {
    const from = start()
    append(content(1))
    const { offset } = log.end
    append(content(2))
    append(content(3))
    for (const at of [0, 31, 32, 36, 43, 55, 63, 64, 95, 96, 96 + 699]) {
      flip(offset + at)
      expect(() => reopen(from), `byte ${at}`).toThrow(`The log is damaged at byte ${offset} of ${file()}`)
      flip(offset + at)
    }
    // The padding after the content does not count.
    flip(offset + 96 + 700)
    expect(reopen(from)).toHaveLength(3)
  })

  it('ignores segments from an earlier use of the file', () => {
    let from = start()
    const contents: Buffer[] = []
    // Many times through all files, as if everything were flushed after each fifth segment.
    for (let n = 1; n <= 150; n++) {
      contents.push(content(n, 20_000 + (n % 7) * 1_000))
      append(contents.at(-1) ?? Buffer.alloc(0))
      if (n % 5 > 0) continue
      expect(reopen(from)).toEqual(digests(...contents))
      from = log.end
      log.release(from)
      contents.length = 0
    }
    expect(readdirSync(directory).length).toBeLessThanOrEqual(3)
  })

  it('reports damage when two segments are swapped', () => {
    const from = start()
    append(content(1))
    const first = readFileSync(file()).subarray(0, log.end.offset)
    const swapped = readFileSync(file())
    append(content(2))
    const second = readFileSync(file()).subarray(first.length, log.end.offset)
    second.copy(swapped, 0)
    first.copy(swapped, second.length)
    append(content(3))
    readFileSync(file()).copy(swapped, log.end.offset - segmentBytes(700), log.end.offset - segmentBytes(700))
    writeFileSync(file(), swapped)
    expect(() => reopen(from)).toThrow('The log is damaged at byte 0')
  })

  it('continues in other files, and puts a long segment into a separate one', () => {
    const from = start()
    const contents = [content(1, 200_000), content(2, 200_000), content(3, 40_000_000), content(4)]
    for (const one of contents) append(one)
    expect(reopen(from)).toEqual(digests(...contents))
    expect(readdirSync(directory)).toHaveLength(4)
    expect(statSync(file(1)).size).toBe(262_144)
    expect(statSync(file(2)).size).toBe(524_288)
  })

  it('names a missing file', () => {
    const from = start()
    append(content(1, 200_000))
    append(content(2, 200_000))
    rmSync(file(2))
    expect(() => reopen(from)).toThrow(`The file after ${file(1)} is missing`)
    rmSync(file(1))
    expect(() => reopen(from)).toThrow(`The file ${file(1)} is missing`)
  })

  it('contains none of its content in any file after a wipe, and can be continued', () => {
    start()
    const secret = Buffer.from('a secret text')
    for (let n = 0; n < 30; n++) append(Buffer.concat([secret, content(n, 100_000)]))
    const { end } = log
    log.release(end)
    log.wipe()
    for (const name of readdirSync(directory)) {
      expect(readFileSync(join(directory, name)).every((byte) => byte === 0)).toBe(true)
    }
    append(content(31))
    expect(reopen(end)).toEqual(digests(content(31)))
    // The next wipe also removes the segments of an earlier process.
    append(secret)
    const last = log.end
    expect(reopen(last)).toEqual([])
    log.wipe()
    expect(readFileSync(file(last.file)).includes(secret)).toBe(false)
  })

  it.runIf(process.platform === 'linux')(
    'writes through the cache without a file descriptor for direct writes, and cannot create another file',
    () => {
      const from = start()
      withoutDescriptors(() => {
        expect(log.reserve(700)).toBe(true)
        append(content(1))
      })
      expect(openFiles()).toBe(1)
      expect(log.reserve(700)).toBe(true)
      expect(openFiles()).toBe(2)
      append(content(2))
      withoutDescriptors(() => {
        expect(log.reserve(300_000)).toBe(false)
        append(content(3))
      })
      expect(log.reserve(300_000)).toBe(true)
      append(content(4, 300_000))
      expect(openFiles()).toBe(3)
      expect(reopen(from)).toEqual(digests(content(1), content(2), content(3), content(4, 300_000)))
      // No space was reserved.
      withoutDescriptors(() => append(content(5)))
      expect(reopen(from)).toHaveLength(5)
    },
  )

  it('does not change when it is opened for reading', () => {
    const from = start()
    append(content(1))
    log.close()
    writeFileSync(`${file(2)}.tmp`, 'unfinished')
    log = FileLog.open(directory, from, 'read')
    expect([...log.read()]).toHaveLength(1)
    expect(readdirSync(directory)).toContain('2.log.tmp')
    expect(() => log.append(contentOf(content(2)))).toThrow('EBADF')
  })
})

describe('a segment', () => {
  it('has the format of docs/adr/0041-one-log.md', () => {
    const before = { number: 6, hash: Buffer.alloc(32, 9) }
    const { place, bytes } = encodeSegment(before, {
      kind: 'group',
      content: contentOf(content(1, 3)),
      durable: 5,
    })
    expect(place.number).toBe(7)
    expect(bytes.length).toBe(SECTOR)
    expect(bytes.toString('latin1', 32, 36)).toBe('SFL1')
    expect(decodeSegment(bytes, 0)).toMatchObject({ number: 7, durable: 5, kind: 'group', bytes: SECTOR })
    expect(decodeSegment(bytes, 0)?.content).toEqual(content(1, 3))
    expect(decodeSegment(bytes.subarray(0, 98), 0)).toBeUndefined()
  })
})
