import { describe, expect, it } from 'vitest'
import { DiskPace, fastSyncMs } from '../../../../workers/store/log/disk-pace.js'

const quickMs = fastSyncMs / 4
const slowMs = fastSyncMs * 5

/** A pace that has recorded syncs. */
function paceAfter(...syncsMs: number[]): DiskPace {
  const pace = new DiskPace()
  for (const ms of syncsMs) pace.recordSync(ms)
  return pace
}

/** The number of groups that wait for the disk. */
function waiting(pace: DiskPace, groups: number): number {
  return Array.from({ length: groups }, () => pace.shouldWait()).filter(Boolean).length
}

describe('the pace of a disk', () => {
  it('lets all groups wait when syncs are fast, and before the first sync', () => {
    expect(waiting(paceAfter(), 100)).toBe(100)
    expect(waiting(paceAfter(...Array<number>(20).fill(quickMs)), 100)).toBe(100)
  })

  it('is not slow when a recent sync was fast', () => {
    expect(waiting(paceAfter(quickMs, ...Array<number>(7).fill(slowMs)), 100)).toBe(100)
  })

  it('lets one group in 64 wait for a slow disk', () => {
    expect(waiting(paceAfter(quickMs, ...Array<number>(8).fill(slowMs)), 640)).toBe(10)
  })

  it('lets all groups wait again once the disk is fast again', () => {
    expect(waiting(paceAfter(...Array<number>(20).fill(slowMs), quickMs), 100)).toBe(100)
  })
})
