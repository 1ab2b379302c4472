import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  DamagedKnownEnd,
  KnownEnd,
  readKnownEnd,
  replaceKnownEnd,
} from '../../../../src/cluster/database/known-end.js'

const position = (number: number) => ({ number, hash: Buffer.alloc(32, number) })

describe('the file with the durable end of a log', () => {
  let folder: string
  let path: string
  let end: KnownEnd

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'strandfast-known-'))
    path = join(folder, 'shard-0.known')
    end = new KnownEnd(path)
  })
  afterEach(async () => {
    await end.close()
    rmSync(folder, { recursive: true })
  })

  it('has the last recorded segment, and ignores older ones', async () => {
    expect(readKnownEnd(path)).toBeUndefined()
    for (const number of [3, 4, 7, 5]) await end.record(position(number))
    expect(end.position).toEqual(position(7))
    expect(readKnownEnd(path)).toEqual(position(7))
    const again = new KnownEnd(path)
    await again.record(position(8))
    expect(readKnownEnd(path)).toEqual(position(8))
    await again.close()
  })

  it('has the previous segment after a write that was cut off anywhere', async () => {
    await end.record(position(3))
    for (const number of [4, 5]) {
      const before = readFileSync(path)
      await end.record(position(number))
      const after = readFileSync(path)
      expect(after).toHaveLength(before.length)
      const changed = [...after.keys()].filter((at) => after[at] !== before[at])
      for (const upTo of changed) {
        writeFileSync(path, Buffer.concat([after.subarray(0, upTo), before.subarray(upTo)]))
        expect(readKnownEnd(path)).toEqual(position(number - 1))
      }
      writeFileSync(path, after)
    }
  })

  it('is damaged if no slot is readable, which is not the same as a missing file', async () => {
    await end.record(position(3))
    writeFileSync(path, readFileSync(path, 'utf8').replace('3 ', '2 '))
    expect(() => readKnownEnd(path)).toThrow(DamagedKnownEnd)
    writeFileSync(path, '')
    expect(() => new KnownEnd(path)).toThrow(DamagedKnownEnd)
  })

  it('goes back only when a loss is accepted', async () => {
    await end.record(position(3))
    replaceKnownEnd(path, position(1))
    expect(readKnownEnd(path)).toEqual(position(1))
    replaceKnownEnd(path, undefined)
    expect(readKnownEnd(path)).toBeUndefined()
  })
})
