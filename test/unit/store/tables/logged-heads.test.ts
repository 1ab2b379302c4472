import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fc } from '../../../support/fast-check.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { LoggedHead } from '../../../../src/strand/server-log.js'
import { commitDurably, openEnvironment, type Environment } from '../../../../workers/store/environment.js'
import { LoggedHeads, type FoundHead } from '../../../../workers/store/tables/logged-heads.js'

const STRANDS = 6
const sizes = { memtableEntriesMax: 16, fanout: 3, mergeEntriesPerStep: 4, chunkEntries: 4 }

let directory: string
let environment: Environment
let heads: LoggedHeads
/** What was told, in order. */
let told: FoundHead[]
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
  told = []
  logSize = 1
}

/** The first two differ only behind what the index goes by. */
function strandOf(no: number): string {
  const first = no < 2 ? 'ab' : `0${no}`
  return first.repeat(31) + `0${no}`
}

/** The next record of the log, which tells of these strands. */
function tell(...strands: readonly number[]): Map<number, LoggedHead[]> {
  const logSeq = logSize++
  const record = strands.map((no, position) => {
    return { strand: strandOf(no), size: logSeq * 10 + position, hash: `${no}f`.repeat(32) }
  })
  told.push(...record.map((head) => ({ head, logSeq })))
  return new Map([[logSeq, record]])
}

function commit(records: Map<number, LoggedHead[]>): void {
  commitDurably(environment, () => {
    heads.put(records)
    heads.step()
  })
}

/** Compares what is found of each strand, by the log of any size, with what was told. */
function check(): void {
  for (let no = 0; no < STRANDS; no++) {
    const strand = strandOf(no)
    const of = told.filter(({ head }) => head.strand === strand)
    expect(heads.newest(strand)).toEqual(of.at(-1))
    for (let size = 0; size <= logSize; size++) {
      expect(heads.newest(strand, size)).toEqual(of.findLast(({ logSeq }) => logSeq < size))
    }
  }
  expect(heads.lastIndexed).toBe(logSize - 1)
}

const recordsOfStrands = fc.array(fc.uniqueArray(fc.nat(STRANDS - 1), { maxLength: STRANDS }), {
  minLength: 1,
  maxLength: 60,
})

describe('the index of the server log', () => {
  it('finds the newest head of each strand by the log of any size, over merges and reopenings', async () => {
    await fc.assert(
      fc
        .asyncProperty(recordsOfStrands, fc.nat(59), fc.boolean(), async (records, reopenAt, settles) => {
          for (const [at, strands] of records.entries()) {
            commit(tell(...strands))
            if (at !== reopenAt) continue
            if (settles) commitDurably(environment, () => heads.settle())
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

  it('goes as far as the last record, though that tells of nothing', () => {
    commit(tell(0, 1))
    commit(tell())
    expect(heads.lastIndexed).toBe(2)
    check()
  })

  it('refuses what comes before a record that it has', () => {
    commit(tell(0))
    commit(tell(1))
    expect(() => commit(new Map([[1, [{ strand: strandOf(2), size: 1, hash: 'aa'.repeat(32) }]]]))).toThrow(
      'the log tells of heads in the order of its records',
    )
  })
})
