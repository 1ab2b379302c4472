import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fc } from '../../../support/fast-check.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { commitDurably, type Environment } from '../../../../workers/store/environment.js'
import { openEnvironment } from '../../../../workers/store/open-environment.js'
import { encodeBlock, type StoredRecord } from '../../../../workers/store/tables/record-codec.js'
import { addPosition, StrandRuns } from '../../../../workers/store/tables/strand-runs.js'
import { blockKey, runLength, type FoundRun } from '../../../../workers/store/tables/tables.js'

const AGENTS = 5
const sizes = { recentMax: 24, stepMin: 3 }

let directory: string
let environment: Environment
let runs: StrandRuns
let written: Written

/** For each agent: the block and position of each seq, and the body bytes up to it. */
type Written = Map<number, { blockNo: number; position: number; bytes: number }[]>

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strand-runs-'))
  open()
  written = new Map()
})

afterEach(async () => {
  await environment.root.close()
  rmSync(directory, { recursive: true })
})

function open(): void {
  environment = openEnvironment(directory, 'write')
  runs = new StrandRuns(environment, sizes)
  runs.catchUp()
}

async function reopen(): Promise<void> {
  await environment.root.close()
  open()
}

/** Commits one block with a record of each given agent, in that order. */
function commitBlock(blockNo: number, agents: readonly number[]): void {
  const records = agents.map((agentNo, position) => {
    const strand = written.get(agentNo) ?? []
    const body = Buffer.from(JSON.stringify({ filling: 'x'.repeat((agentNo * 7 + blockNo) % 30) }))
    strand.push({ blockNo, position, bytes: (strand.at(-1)?.bytes ?? 0) + body.length })
    written.set(agentNo, strand)
    return stored({ agentNo, seq: strand.length - 1, body }, blockNo)
  })
  commitDurably(environment, () => {
    environment.blocks.putSync(blockKey(blockNo), encodeBlock(records))
    for (const run of runsOf(records, blockNo)) runs.add(...run)
    runs.commitStep()
  })
}

function runsOf(records: readonly StoredRecord[], blockNo: number): [number, FoundRun][] {
  const found = new Map<number, FoundRun>()
  for (const [position, { agentNo, seq, hlc }] of records.entries()) {
    const bytes = written.get(agentNo)?.[seq]?.bytes ?? 0
    const run = found.get(agentNo) ?? { firstSeq: seq, blockNo, ...hlc, strandBytes: 0, positionRanges: [] }
    found.set(agentNo, run)
    addPosition(run, position)
    run.strandBytes = bytes
  }
  return [...found]
}

function stored(fields: Pick<StoredRecord, 'agentNo' | 'seq' | 'body'>, blockNo: number): StoredRecord {
  return {
    ...fields,
    hlc: { ms: 1_000 + blockNo, counter: fields.seq },
    type: 'record',
    hash: 'a'.repeat(64),
    prev: 'b'.repeat(64),
    keyIndex: 0,
    salt: Buffer.alloc(16),
    signature: Buffer.alloc(64),
  }
}

/** Compares the results of all reads with the written records. */
function check(view: StrandRuns): void {
  for (let agentNo = 0; agentNo < AGENTS; agentNo++) {
    const strand = written.get(agentNo) ?? []
    for (const [seq, { blockNo, bytes }] of strand.entries()) {
      const run = view.before(agentNo, seq)
      expect(run?.blockNo).toBe(blockNo)
      const last = (run?.firstSeq ?? 0) + (run === undefined ? 0 : runLength(run)) - 1
      expect(run?.strandBytes).toBe(strand[last]?.bytes)
      expect(bytes).toBeLessThanOrEqual(run?.strandBytes ?? 0)
    }
    const blocks = [...new Set(strand.map(({ blockNo }) => blockNo))]
    expect([...view.from(agentNo, 0, 'asc')].map(({ blockNo }) => blockNo)).toEqual(blocks)
    expect([...view.from(agentNo, strand.length, 'desc')].map(({ blockNo }) => blockNo)).toEqual(
      blocks.toReversed(),
    )
    const middle = Math.floor(strand.length / 2)
    const upwards = blocks.filter((blockNo) => blockNo >= (strand[middle]?.blockNo ?? Infinity))
    expect([...view.from(agentNo, middle, 'asc')].map(({ blockNo }) => blockNo)).toEqual(upwards)
    const downwards = blocks.filter((blockNo) => blockNo <= (strand[middle]?.blockNo ?? -1)).toReversed()
    expect([...view.from(agentNo, middle, 'desc')].map(({ blockNo }) => blockNo)).toEqual(downwards)
  }
}

const blocksOfAgents = fc.array(fc.array(fc.nat(AGENTS - 1), { minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 60,
})

describe('the runs of strands', () => {
  it('locate every record, whether they are in memory, in the table or being moved', async () => {
    await fc.assert(
      fc
        .asyncProperty(blocksOfAgents, fc.nat(59), async (blocks, restartAt) => {
          for (const [blockNo, agents] of blocks.entries()) {
            commitBlock(blockNo, agents)
            if (blockNo === restartAt) await reopen()
          }
          check(runs)
          await reopen()
          check(runs)
        })
        .beforeEach(async () => {
          await environment.root.close()
          rmSync(directory, { recursive: true })
          written = new Map()
          open()
        }),
      { numRuns: 25 },
    )
  })

  it('are all in the table after a flush', async () => {
    for (let blockNo = 0; blockNo < 70; blockNo++) {
      commitBlock(blockNo, [blockNo % AGENTS, (blockNo + 1) % AGENTS])
      if (blockNo % 31 !== 30) continue
      commitDurably(environment, () => runs.flush())
      await reopen()
      expect(runs.firstInMemory).toBe(blockNo + 1)
      check(runs)
    }
  })

  it('are visible to a view that catches up with a store during writes', () => {
    const view = new StrandRuns(environment)
    for (let blockNo = 0; blockNo < 120; blockNo++) {
      commitBlock(blockNo, [blockNo % AGENTS, (blockNo + 2) % AGENTS])
      if (blockNo % 17 !== 0) continue
      view.catchUp()
      check(view)
    }
  })

  it('are moved into the table a part with each commit', () => {
    for (let blockNo = 0; blockNo < 30; blockNo++) commitBlock(blockNo, [blockNo % AGENTS])
    const inTable = [...environment.strands.getKeys()].length
    expect(inTable).toBeGreaterThan(0)
    expect(inTable).toBeLessThan(30)
    for (let blockNo = 30; blockNo < 200; blockNo++) commitBlock(blockNo, [blockNo % AGENTS])
    expect([...environment.strands.getKeys()].length).toBeGreaterThan(150)
    check(runs)
  })
})
