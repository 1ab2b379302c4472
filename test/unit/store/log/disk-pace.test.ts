import { describe, expect, it } from 'vitest'
import { DiskPace, quickSyncMs } from '../../../../workers/store/log/disk-pace.js'

const quickMs = quickSyncMs / 4
const slowMs = quickSyncMs * 5

/** A pace that was told of syncs. */
function paceAfter(...syncsMs: number[]): DiskPace {
  const pace = new DiskPace()
  for (const ms of syncsMs) pace.took(ms)
  return pace
}

/** How many of so many groups wait for the disk. */
function waiting(pace: DiskPace, groups: number): number {
  return Array.from({ length: groups }, () => pace.waits()).filter(Boolean).length
}

describe('the pace of a disk', () => {
  it('has its syncs waited for while they are quick, and before any was', () => {
    expect(waiting(paceAfter(), 100)).toBe(100)
    expect(waiting(paceAfter(...Array<number>(20).fill(quickMs)), 100)).toBe(100)
  })

  it('is not slow for syncs that waited for a processor', () => {
    expect(waiting(paceAfter(quickMs, ...Array<number>(7).fill(slowMs)), 100)).toBe(100)
  })

  it('has few groups wait for a slow disk, one in 64', () => {
    expect(waiting(paceAfter(quickMs, ...Array<number>(8).fill(slowMs)), 640)).toBe(10)
  })

  it('has groups wait again once the disk is quick again', () => {
    expect(waiting(paceAfter(...Array<number>(20).fill(slowMs), quickMs), 100)).toBe(100)
  })
})
