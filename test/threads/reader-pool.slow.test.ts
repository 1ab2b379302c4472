import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ReaderPool } from '../../dist/src/dispatch/pools/reader-pool.js'
import { readsBy } from '../../dist/src/protocol/reader-tasks.js'
import type { Outcome } from '../../src/protocol/messages.js'
import { appendNumber, TestShard } from '../support/shard/shard.js'

const RECORDS = 600

let dataDir: string
let pool: ReaderPool

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'strandfast-readers-'))
  for (const shard of [0, 1]) {
    const store = new TestShard(join(dataDir, `shard-${shard}`))
    store.run(...Array.from({ length: RECORDS }, (_none, n) => appendNumber('read', n)))
    expect(agentNoOf(store.ask({ kind: 'strandLocate', agent: 'read' }))).toBe(agentNo)
    await store.close()
  }
  pool = new ReaderPool(dataDir, { shardWaitMs: 600_000 })
})

afterEach(async () => {
  await pool.close()
  rmSync(dataDir, { recursive: true, force: true })
})

/** The agent number of the first agent of a store. */
const agentNo = 0

function agentNoOf(outcome: Outcome): number {
  return outcome.kind === 'located' ? outcome.agentNo : Number.NaN
}

/**
 * Requests the roots of trees of many sizes of one shard, more than the threads can compute before the next
 * step.
 */
function rootsOf(shard: number): Promise<string[]> {
  const sizes = Array.from({ length: 100 }, (_none, index) => RECORDS - index)
  return Promise.all(sizes.map((size) => readsBy(pool, 'root')('treeRoot', { shard, agentNo, size })))
}

/** Whether a thread of this process has the store of a shard open (Linux). */
function isOpen(shard: number): boolean {
  const links = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      // The file descriptor of the listing itself is closed.
      return ''
    }
  })
  return links.some((link) => link.startsWith(join(dataDir, `shard-${shard}`)))
}

describe('the readers, after the thread of a shard has ended', () => {
  it('continue their reads of other shards', async () => {
    const before = await rootsOf(1)
    const reading = rootsOf(1)
    await pool.release(0)
    await pool.release(0)
    expect(await reading).toEqual(before)
  })

  it('restart their reads of that shard once it serves again, and do not open its store before', async () => {
    const before = await rootsOf(0)
    const reading = rootsOf(0)
    let settled = 0
    const countSettled = () => settled++
    void reading.then(countSettled, countSettled)
    await pool.release(0)
    const later = readsBy(pool, 'root')('treeRoot', { shard: 0, agentNo, size: 1 })
    void later.then(countSettled, countSettled)
    await rootsOf(1)
    expect(settled).toBe(0)
    if (process.platform === 'linux') {
      expect(isOpen(1)).toBe(true)
      expect(isOpen(0)).toBe(false)
    }
    pool.resume(0)
    expect(await reading).toEqual(before)
    expect(await later).toMatch(/^[0-9a-f]{64}$/)
    expect(process.platform !== 'linux' || isOpen(0)).toBe(true)
  })

  it('finish only the reads that have started', async () => {
    const sizes = Array.from({ length: 200 }, (_none, index) => RECORDS - index)
    let settled = 0
    const trees = sizes.map(async (size) => {
      await readsBy(pool, 'root')('treeRoot', { shard: 0, agentNo, size })
      settled++
    })
    // Not the first tree: its thread may start so late that another thread computes all others first.
    await Promise.race(trees)
    // The threads finish only the trees that they have started by now.
    await setImmediate()
    const before = settled
    await pool.release(0)
    const after = settled
    expect(after).toBeGreaterThan(before)
    await rootsOf(1)
    expect(settled).toBe(after)
    pool.resume(0)
    await Promise.all(trees)
  })

  it('reject an invalid task', async () => {
    await expect(readsBy(pool, 'root')('treeRoot', { shard: 1, agentNo, size: RECORDS * 2 })).rejects.toThrow(
      'a strand has no gaps',
    )
  })
})
