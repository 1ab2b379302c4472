import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fc } from '../../../support/fast-check.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type LeafReader, TreeHasher, treeRoot } from '../../../../src/strand/merkle.js'
import { commitDurably, type Environment } from '../../../../workers/store/environment.js'
import { openEnvironment } from '../../../../workers/store/open-environment.js'
import { SetAside } from '../../../../workers/store/set-aside.js'
import { encodeBlock, type StoredRecord } from '../../../../workers/store/tables/record-codec.js'
import { recordHashes } from '../../../../workers/store/tables/records.js'
import { addPosition } from '../../../../workers/store/tables/strand-runs.js'
import { TreeCheck } from '../../../../workers/store/check/tree-check.js'
import {
  blockKey,
  importedBlocksFrom,
  isImportedBlock,
  type FoundRun,
} from '../../../../workers/store/tables/tables.js'

let directory: string
let environment: Environment
let setAside: SetAside
/** The hashes of each strand, by agent number. */
let strands: Map<number, Uint8Array[]>

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strand-trees-'))
  strands = new Map()
  open()
})

afterEach(async () => {
  await environment.root.close()
  rmSync(directory, { recursive: true })
})

function open(access: 'write' | 'read' = 'write'): void {
  environment = openEnvironment(directory, access)
  environment.runs.catchUp()
  setAside = new SetAside()
}

async function reopen(access?: 'write' | 'read'): Promise<void> {
  await environment.root.close()
  open(access)
}

function step(): void {
  commitDurably(environment, () => environment.trees.step(setAside))
}

function stepToTheEnd(): void {
  do step()
  while (environment.trees.needsStep)
}

/** Writes a block with the next records of these agents. @param asNow as this version does, not an earlier one */
function addBlock(blockNo: number, agents: readonly number[], asNow = false): void {
  const found = new Map<number, FoundRun>()
  const records = agents.map((agentNo, position): StoredRecord => {
    const strand = strands.get(agentNo) ?? []
    const seq = strand.length
    const hash = createHash('sha256').update(`${agentNo}/${seq}`).digest()
    strand.push(hash)
    strands.set(agentNo, strand)
    const hlc = { ms: 1_000 + (blockNo % importedBlocksFrom), counter: 0 }
    const run = found.get(agentNo) ?? { firstSeq: seq, blockNo, ...hlc, strandBytes: 0, positionRanges: [] }
    found.set(agentNo, run)
    addPosition(run, position)
    return {
      agentNo,
      seq,
      hlc,
      type: 'record',
      hash: hash.toString('hex'),
      prev: 'b'.repeat(64),
      keyIndex: 0,
      body: Buffer.from('{}'),
      salt: Buffer.alloc(16),
      signature: Buffer.alloc(64),
    }
  })
  const imported = isImportedBlock(blockNo)
  const { runs, blocks, importedBlocks } = environment
  const table = imported ? importedBlocks : blocks
  commitDurably(environment, () => {
    const block = encodeBlock(records)
    table.putSync(blockKey(blockNo), block)
    if (asNow) environment.trees.add(blockNo, block)
    for (const [agentNo, run] of found) {
      if (imported) runs.putImported(agentNo, run)
      else runs.add(agentNo, run)
    }
  })
}

/** Writes blocks of one agent's records. */
function addRecords(count: number, { from = 0, agentNo = 0, perBlock = 39 } = {}): void {
  for (let written = 0, no = from; written < count; written += perBlock)
    addBlock(
      no++,
      Array.from({ length: Math.min(perBlock, count - written) }, () => agentNo),
    )
}

/** Roots computed by the stored subtrees, compared with those of the records. @returns the leaves that were read */
function check(agentNo: number, size = strands.get(agentNo)?.length ?? 0): number {
  let read = 0
  const reader: LeafReader = {
    leaves(start, end) {
      read += end - start
      return recordHashes(environment, agentNo, { start, end })
    },
    subtree: (level, index) => environment.trees.find(agentNo, level, index),
  }
  const expected = new TreeHasher()
  for (const leaf of (strands.get(agentNo) ?? []).slice(0, size)) expected.append(leaf)
  expect(Buffer.from(treeRoot(size, reader)).toString('hex')).toBe(
    Buffer.from(expected.root()).toString('hex'),
  )
  return read
}

function faultsOf(agentNo: number): string[] {
  const tree = new TreeCheck(environment.trees, agentNo)
  return (strands.get(agentNo) ?? []).flatMap((leaf, seq) => tree.take(seq, leaf) ?? [])
}

const histories = fc.array(
  fc.tuple(
    fc.constantFrom('add', 'add before', 'import', 'step', 'reopen'),
    fc.nat(3),
    fc.integer({ min: 1, max: 400 }),
  ),
  { maxLength: 30 },
)

describe('the stored subtrees of strands', () => {
  it('are those of the records, in whatever order blocks are written, imported and added', async () => {
    await fc.assert(
      fc
        .asyncProperty(histories, async (history) => {
          let [blockNo, importedNo] = [0, importedBlocksFrom]
          const begun = new Set<number>()
          for (const [act, agentNo, count] of history) {
            if (act === 'step') step()
            else if (act === 'reopen') await reopen()
            else {
              // A strand is imported before anything else is written to it.
              const imported = act === 'import' && !begun.has(agentNo)
              if (!imported) begun.add(agentNo)
              const agents = Array.from({ length: count }, (_none, at) =>
                imported || at % 3 > 0 ? agentNo : ([...begun][at % begun.size] ?? agentNo),
              )
              addBlock(imported ? importedNo++ : blockNo++, agents, act !== 'add before')
            }
            for (const agentNo of strands.keys()) check(agentNo)
          }
          stepToTheEnd()
          expect(environment.trees.isComplete).toBe(true)
          expect(setAside.count).toBe(0)
          for (const agentNo of strands.keys()) {
            expect(check(agentNo)).toBeLessThan(256)
            expect(faultsOf(agentNo)).toEqual([])
          }
        })
        .beforeEach(async () => {
          await environment.root.close()
          rmSync(directory, { recursive: true })
          strands = new Map()
          open()
        }),
      { numRuns: 30 },
    )
  })

  it('cover 65,536 records, too, so that a long strand needs few', () => {
    addRecords(65_536 + 1_000, { perBlock: 1_000 })
    stepToTheEnd()
    expect(environment.trees.find(0, 16, 0)).toBeDefined()
    expect(environment.trees.find(0, 16, 1)).toBeUndefined()
    expect(check(0)).toBe((65_536 + 1_000) % 256)
    expect(faultsOf(0)).toEqual([])
  })

  it('are added a part with each step, whether blocks are full or have one record', () => {
    for (const [agentNo, perBlock] of [39, 1].entries()) {
      const from = agentNo * 1_000
      addRecords(perBlock === 1 ? 1_000 : 5_000, { from, agentNo, perBlock })
      step()
      expect(environment.trees.needsStep).toBe(true)
      expect(environment.trees.find(agentNo, 8, 0)).toBeDefined()
      stepToTheEnd()
      expect(check(agentNo)).toBeLessThan(256)
    }
  })

  it('are added for imported blocks first, and then continue with the others where they were', async () => {
    addRecords(500, { agentNo: 0 })
    stepToTheEnd()
    for (let at = 0; at < 6; at++)
      addBlock(
        importedBlocksFrom + at,
        Array.from({ length: 1_000 }, () => 1),
      )
    addRecords(500, { from: 100, agentNo: 0 })
    await reopen()
    step()
    expect(environment.trees.needsStep).toBe(true)
    stepToTheEnd()
    expect(environment.trees.isComplete).toBe(true)
    for (const agentNo of [0, 1]) {
      expect(check(agentNo)).toBeLessThan(256)
      expect(faultsOf(agentNo)).toEqual([])
    }
  })

  it('are computed from the records where a row is damaged or missing, and the check names it', () => {
    addRecords(1_024)
    stepToTheEnd()
    const key = [...environment.subtrees.getKeys()].find((one) => one.length === 11) ?? Buffer.alloc(0)
    const row = environment.subtrees.get(key) ?? Buffer.alloc(0)
    const flipped = Buffer.from(row)
    flipped[5] = (flipped[5] ?? 0) ^ 1
    environment.subtrees.putSync(key, flipped)
    expect(check(0)).toBe(256)
    expect(faultsOf(0)).toEqual([expect.stringContaining('is missing or does not match')])
    environment.subtrees.removeSync(key)
    expect(check(0)).toBe(256)
    expect(faultsOf(0)).toHaveLength(1)
    environment.subtrees.putSync(key, row)
    expect(faultsOf(0)).toEqual([])
  })

  it('have no row where a record is damaged, which is set aside, and the others have theirs', async () => {
    addRecords(1_024, { perBlock: 256 })
    const block = Buffer.from(environment.blocks.get(blockKey(1)) ?? [])
    block[block.length - 1] = (block[block.length - 1] ?? 0) ^ 1
    environment.blocks.putSync(blockKey(1), block)
    await reopen()
    stepToTheEnd()
    expect([0, 1, 2, 3].map((index) => environment.trees.find(0, 8, index) !== undefined)).toEqual([
      true,
      false,
      true,
      true,
    ])
    expect(setAside.count).toBe(1)
    expect(() => check(0)).toThrow('a record matches its checksum')
    expect(check(0, 200)).toBe(200)
  })

  it('are absent in a store of an earlier version, which can be read, and are added once it is written', async () => {
    addRecords(2_000)
    commitDurably(environment, () => environment.subtrees.dropSync())
    await reopen('read')
    expect(check(0)).toBe(2_000)
    expect(faultsOf(0)).toEqual([])
    await reopen()
    stepToTheEnd()
    expect(check(0)).toBeLessThan(256)
  })
})
