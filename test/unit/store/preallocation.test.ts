import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { structureFault } from '../../../src/store-files/lmdb-file.js'
import { commitDurably, type Environment } from '../../../workers/store/environment.js'
import { openEnvironment } from '../../../workers/store/open-environment.js'
import { Preallocation } from '../../../workers/store/preallocation.js'

const ROW_BYTES = 2_000

let directory: string
let store: string
let environment: Environment
let preallocation: Preallocation
let rows: number

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-preallocation-'))
  store = join(directory, 'store')
  rows = 0
  open()
})

afterEach(async () => {
  await close()
  rmSync(directory, { recursive: true })
})

/** @param ampleBytes by default, the disk never has so much space */
function open(ampleBytes = Infinity): void {
  environment = openEnvironment(store, 'write')
  preallocation = new Preallocation(store, environment, ampleBytes)
}

async function close(): Promise<void> {
  preallocation.close()
  await environment.root.close()
}

function commit(count: number): void {
  expect(preallocation.reserve(count * ROW_BYTES * 4)).toBe(true)
  const reserved = fileBytes()
  commitRows(count)
  expect(usedBytes()).toBeLessThan(reserved)
}

function commitRows(count: number): void {
  commitDurably(environment, () => {
    for (let row = 0; row < count; row++) {
      const key = Buffer.alloc(4)
      key.writeUInt32BE(rows++)
      environment.agents.put(key, Buffer.alloc(ROW_BYTES, rows))
    }
  })
}

const file = () => join(store, 'data.mdb')
const fileBytes = () => statSync(file()).size
const usedBytes = () => {
  const { lastPageNumber } = environment.root.getStats() as { lastPageNumber: number }
  return (lastPageNumber + 1) * 4_096
}

function expectAllRows(): void {
  let row = 0
  for (const { value } of environment.agents.getRange()) {
    row++
    expect(value.equals(Buffer.alloc(ROW_BYTES, row))).toBe(true)
  }
  expect(row).toBe(rows)
}

describe('the preallocation of a data file', () => {
  it('reserves space for many small commits, and overwrites no row', async () => {
    for (let commits = 0; commits < 600; commits++) commit(10)
    expect(usedBytes()).toBeGreaterThan(12_000_000)
    expect(fileBytes() - usedBytes()).toBeLessThan(8_400_000)
    expectAllRows()
    expect(structureFault(file())).toBeUndefined()
    await close()
    expect(structureFault(file())).toBeUndefined()
    open()
    commit(10)
    expectAllRows()
  })

  it('reserves space for a commit of any size, so that LMDB never extends the file', () => {
    for (const count of [1, 100, 1_000, 5_000, 10]) commit(count)
    expectAllRows()
  })

  it('does not extend the file when nothing was written', () => {
    commit(10)
    const before = fileBytes()
    for (let commits = 0; commits < 16; commits++) commit(0)
    expect(fileBytes()).toBe(before)
  })

  it('returns false when it cannot reserve space', () => {
    preallocation.close()
    expect(preallocation.reserve(1 << 30)).toBe(false)
    preallocation = new Preallocation(store, environment, Infinity)
  })

  it('writes no zeros while the disk has much space, and begins to when it has not', async () => {
    await close()
    open(0)
    const before = fileBytes()
    expect(preallocation.reserve(1_000_000)).toBe(true)
    expect(fileBytes()).toBe(before)
    commitRows(100)
    expect(fileBytes()).toBe(usedBytes())
    await close()
    open()
    commit(100)
    expect(fileBytes()).toBeGreaterThan(usedBytes())
    expectAllRows()
    expect(structureFault(file())).toBeUndefined()
  })
})
