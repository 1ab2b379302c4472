import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { deviceNumbers, diskOf, readBlockStat, writtenPerRecord } from '../../../bench/disk.mjs'

describe('deviceNumbers', () => {
  it('splits a device number into major and minor', () => {
    expect(deviceNumbers(65_024n)).toBe('254:0')
    expect(deviceNumbers(0x803n)).toBe('8:3')
    expect(deviceNumbers(0n)).toBe('0:0')
  })

  it('splits large device numbers', () => {
    // The upper bits of both numbers are above their lower bits (makedev of the C library).
    expect(deviceNumbers(0x1103_2cn)).toBe('259:300')
    expect(deviceNumbers(0x12_0006_7834_59an)).toBe(`${0x1_2345}:${0x6_789a}`)
  })
})

describe('readBlockStat', () => {
  it('reads writes and sectors of 512 bytes', () => {
    const text =
      ' 1099187    85611 29458378  1402242 22602994  1646479 635806352  6180083        0  2030436  8450078\n'
    expect(readBlockStat(text)).toEqual({ writes: 22_602_994, bytes: 635_806_352 * 512 })
  })

  it('throws without figures', () => {
    expect(() => readBlockStat('1 2 3\n')).toThrow('Expected figures of a block device')
  })
})

describe('writtenPerRecord', () => {
  it('subtracts the writes of other processes in the same time', () => {
    const written = { writes: 50, bytes: 10_000, elapsedMs: 2_000 }
    const rest = { writes: 10, bytes: 1_000, elapsedMs: 1_000 }
    expect(writtenPerRecord({ written, rest, records: 10 })).toEqual({
      bytes: 800,
      writes: 3,
      restShare: 0.2,
    })
  })

  it('attributes everything to other processes if nothing was written', () => {
    const none = { writes: 0, bytes: 0, elapsedMs: 1_000 }
    expect(writtenPerRecord({ written: none, rest: none, records: 1 }).restShare).toBe(1)
  })
})

describe('diskOf', () => {
  const disk = diskOf(tmpdir())

  it('reports a path without a block device', () => {
    expect(diskOf('/proc')).toEqual({
      missing: expect.stringMatching(/^no \/sys\/dev\/block\/0:\d+\/stat: \/proc /),
    })
  })

  it.skipIf('missing' in disk)('counts the bytes that reach the disk during the work', async () => {
    if ('missing' in disk) throw new Error(disk.missing)
    const directory = mkdtempSync(join(tmpdir(), 'bench-disk-'))
    const bytes = 1_048_576
    const written = await disk.written(async () => {
      const fd = openSync(join(directory, 'file'), 'w')
      writeSync(fd, Buffer.alloc(bytes, 1))
      fsyncSync(fd)
      closeSync(fd)
    })
    rmSync(directory, { recursive: true })
    expect(written.bytes).toBeGreaterThanOrEqual(bytes)
    expect(written.writes).toBeGreaterThan(0)
  })
})
