import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fc } from '../../../support/fast-check.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { LoggedHead } from '../../../../src/strand/server-log.js'
import { commitDurably, type Environment } from '../../../../workers/store/environment.js'
import { openEnvironment } from '../../../../workers/store/open-environment.js'
import { LoggedHeads, type FoundHead } from '../../../../workers/store/tables/logged-heads.js'

const STRANDS = 6
const sizes = { memtableEntriesMax: 16, fanout: 3, mergeEntriesPerStep: 4, chunkEntries: 4 }

let directory: string
let environment: Environment
let heads: LoggedHeads
/** The logged heads, in order. */
let logged: FoundHead[]
let logSize: number

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logged-heads-'))
  open()
})

afterEach(async () => {
  await environment.root.close()
  rmSync(directory, { recursive: true })
})

function open(): void {
  environment = openEnvironment(directory, 'write')
  heads = new LoggedHeads(environment, sizes)
  logged = []
  logSize = 1
}

/** The first two strands have the same prefix in the index. */
function strandOf(no: number): string {
  const first = no < 2 ? 'ab' : `0${no}`
  return first.repeat(31) + `0${no}`
}

/** The next record of the log, with heads of these strands. */
function logHeads(...strands: readonly number[]): Map<number, LoggedHead[]> {
  const logSeq = logSize++
  const record = strands.map((no, position) => {
    return { strand: strandOf(no), size: logSeq * 10 + position, hash: `${no}f`.repeat(32) }
  })
  logged.push(...record.map((head) => ({ head, logSeq })))
  return new Map([[logSeq, record]])
}

function commit(records: Map<number, LoggedHead[]>): void {
  commitDurably(environment, () => {
    heads.put(records)
    heads.step()
  })
}

/** Compares the newest head of each strand, for each size of the log, with the logged heads. */
function check(): void {
  for (let no = 0; no < STRANDS; no++) {
    const strand = strandOf(no)
    const expected = logged.filter(({ head }) => head.strand === strand)
    expect(heads.newest(strand)).toEqual(expected.at(-1))
    for (let size = 0; size <= logSize; size++) {
      expect(heads.newest(strand, size)).toEqual(expected.findLast(({ logSeq }) => logSeq < size))
    }
  }
  expect(heads.lastIndexed).toBe(logSize - 1)
}

const recordsOfStrands = fc.array(fc.uniqueArray(fc.nat(STRANDS - 1), { maxLength: STRANDS }), {
  minLength: 1,
  maxLength: 60,
})

describe('the index of the server log', () => {
  it('finds the newest head of each strand for each size of the log, over merges and reopenings', async () => {
    await fc.assert(
      fc
        .asyncProperty(recordsOfStrands, fc.nat(59), fc.boolean(), async (records, reopenAt, flushes) => {
          for (const [at, strands] of records.entries()) {
            commit(logHeads(...strands))
            if (at !== reopenAt) continue
            if (flushes) commitDurably(environment, () => heads.flush())
            await environment.root.close()
            environment = openEnvironment(directory, 'write')
            heads = new LoggedHeads(environment, sizes)
          }
          check()
          while (heads.needsStep) commitDurably(environment, () => heads.step())
          check()
        })
        .beforeEach(async () => {
          await environment.root.close()
          rmSync(directory, { recursive: true })
          open()
        }),
      { numRuns: 25 },
    )
  })

  it('includes the last record, even if it has no heads', () => {
    commit(logHeads(0, 1))
    commit(logHeads())
    expect(heads.lastIndexed).toBe(2)
    check()
  })

  it('refuses a record that is before an indexed one', () => {
    commit(logHeads(0))
    commit(logHeads(1))
    expect(() => commit(new Map([[1, [{ strand: strandOf(2), size: 1, hash: 'aa'.repeat(32) }]]]))).toThrow(
      'heads are appended in the order of the log',
    )
  })
})
