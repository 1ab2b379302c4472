import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  DamagedEnd,
  KnownEnd,
  readKnownEnd,
  replaceKnownEnd,
} from '../../../../src/cluster/database/known-end.js'

const place = (number: number) => ({ number, hash: Buffer.alloc(32, number) })

describe('the file of what is known to be durable', () => {
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

  it('has the last segment that was noted, and none that is older', async () => {
    expect(readKnownEnd(path)).toBeUndefined()
    for (const number of [3, 4, 7, 5]) await end.keep(place(number))
    expect(end.place).toEqual(place(7))
    expect(readKnownEnd(path)).toEqual(place(7))
    const again = new KnownEnd(path)
    await again.keep(place(8))
    expect(readKnownEnd(path)).toEqual(place(8))
    await again.close()
  })

  it('has the one before wherever a write is cut off', async () => {
    await end.keep(place(3))
    for (const number of [4, 5]) {
      const before = readFileSync(path)
      await end.keep(place(number))
      const after = readFileSync(path)
      expect(after).toHaveLength(before.length)
      const changed = [...after.keys()].filter((at) => after[at] !== before[at])
      for (const upTo of changed) {
        writeFileSync(path, Buffer.concat([after.subarray(0, upTo), before.subarray(upTo)]))
        expect(readKnownEnd(path)).toEqual(place(number - 1))
      }
      writeFileSync(path, after)
    }
  })

  it('is damaged where no slot can be read, and is not taken for one that is not there', async () => {
    await end.keep(place(3))
    writeFileSync(path, readFileSync(path, 'utf8').replace('3 ', '2 '))
    expect(() => readKnownEnd(path)).toThrow(DamagedEnd)
    writeFileSync(path, '')
    expect(() => new KnownEnd(path)).toThrow(DamagedEnd)
  })

  it('goes back only where a loss is accepted', async () => {
    await end.keep(place(3))
    replaceKnownEnd(path, place(1))
    expect(readKnownEnd(path)).toEqual(place(1))
    replaceKnownEnd(path, undefined)
    expect(readKnownEnd(path)).toBeUndefined()
  })
})
