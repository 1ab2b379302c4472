import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { structureFault } from '../../../src/store-files/lmdb-file.js'
import { commitDurably, type Environment } from '../../../workers/store/environment.js'
import { openEnvironment } from '../../../workers/store/open-environment.js'

/*
 * Results of a table for keys when one bit of its pages has flipped. The file is changed while the store is
 * open, which reads it through its memory map.
 */

const PAGE_BYTES = 4_096
const HEADER_BYTES = 24
const ROWS = 400

let directory: string
let environment: Environment
let fd: number
let file: Buffer
/** Page numbers of the table, by kind. */
let pages: Record<string, number[]>

const nameOf = (n: number) => Buffer.from(`agent-${String(n).padStart(4, '0')}`)
const valueOf = (n: number) => Buffer.from(`row ${n} `.repeat(9))
/** The numbers of existing rows. The odd numbers between them do not exist. */
const existing = Array.from({ length: ROWS }, (_none, n) => n * 2)

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-missing-'))
  const path = join(directory, 'store')
  environment = openEnvironment(path, 'write')
  commitDurably(environment, () => {
    for (const n of existing) environment.agents.put(nameOf(n), valueOf(n))
  })
  const data = join(path, 'data.mdb')
  pages = {}
  structureFault(data, {
    page(pageNo, { table, kind }) {
      if (table === 'agents') (pages[kind] ??= []).push(pageNo)
    },
  })
  file = readFileSync(data)
  fd = openSync(data, 'r+')
})

afterAll(async () => {
  closeSync(fd)
  await environment.root.close()
  rmSync(directory, { recursive: true })
})

/** Offsets in the file of the bytes of the keys of a page, each with the number of the row with this key. */
function keyBytes(pageNo: number): { at: number; n: number }[] {
  const page = pageNo * PAGE_BYTES
  const rows = file.readUInt16LE(page + 20) / 2
  return Array.from({ length: rows }, (_none, row) => {
    const node = page + HEADER_BYTES + file.readUInt16LE(page + HEADER_BYTES + 2 * row)
    const key = file.subarray(node + 8, node + 8 + file.readUInt16LE(node + 6))
    // Branch pages contain only the part of a key that distinguishes two pages, and an empty key in their
    // first row.
    const n = Number(key.toString().replace('agent-', '').padEnd(4, '0')) || 0
    return Array.from(key, (_byte, at) => ({ at: node + 8 + at, n: n - (n % 2) }))
  }).flat()
}

function withFlipped(at: number, bit: number, look: () => void): void {
  writeSync(fd, Buffer.of((file[at] ?? 0) ^ (1 << bit)), 0, 1, at)
  look()
  writeSync(fd, file, at, 1, at)
}

/** The value of a row; undefined if it is missing, `fault` if the table reports damage. */
function valueAt(n: number): string | undefined {
  try {
    return environment.agents.find(nameOf(n))?.toString()
  } catch {
    return 'fault'
  }
}

describe('a lookup of a row', () => {
  it('finds existing rows and no others when nothing is damaged', () => {
    for (const n of existing) {
      expect(valueAt(n)).toBe(valueOf(n).toString())
      expect(valueAt(n + 1)).toBeUndefined()
    }
    for (const name of ['', 'a', 'zebra'])
      expect(environment.agents.find(Buffer.from(name || '\0'))).toBeUndefined()
    expect(environment.organisms.find(Buffer.from('none'))).toBeUndefined()
  })

  it.each(['leaf', 'branch'])(
    'returns the row or reports damage, whichever bit of a key in a %s page flips',
    (kind) => {
      const bytes = (pages[kind] ?? []).flatMap(keyBytes)
      expect(bytes.length).toBeGreaterThan(20)
      let faults = 0
      for (const [index, { at, n }] of bytes.entries()) {
        if (index % 3 !== 0) continue
        const near = [n - 2, n, n + 2].filter((one) => one >= 0 && one < 2 * ROWS)
        const far = existing.filter((_n, row) => row % 97 === index % 97)
        withFlipped(at, index % 8, () => {
          for (const one of [...near, ...far]) {
            const answer = valueAt(one)
            expect(
              [valueOf(one).toString(), 'fault'],
              `bit ${index % 8} of byte ${at}, row ${one}`,
            ).toContain(answer)
            if (answer === 'fault') faults++
          }
        })
      }
      expect(faults).toBeGreaterThan(0)
    },
  )
})
