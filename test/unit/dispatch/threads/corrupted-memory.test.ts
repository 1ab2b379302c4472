import { describe, expect, it } from 'vitest'
import { hasCorruptedMemory } from '../../../../src/dispatch/threads/shard-threads.js'

const said = (numbers: string) =>
  new Error(`Input/output error: Attempting to write page at position 24576, size 4096, blocks 1, ${numbers}`)

describe('memory after a write that failed', () => {
  it('is whole where the text of the error has room', () => {
    expect(hasCorruptedMemory(said('buffer sizes 4096 4096 0'))).toBe(false)
    // 99 characters and the NUL behind them.
    expect(hasCorruptedMemory(said('buffer sizes 4096 31035612 3103556'))).toBe(false)
  })

  it('is not where the text is longer than the memory for it', () => {
    expect(hasCorruptedMemory(said('buffer sizes 4096 31035612 31035568'))).toBe(true)
    expect(hasCorruptedMemory(said('buffer sizes 4096 -1878601392 1878601392'))).toBe(true)
  })

  it('is whole after any other error', () => {
    expect(hasCorruptedMemory(new Error(`No space left on device: ${'x'.repeat(200)}`))).toBe(false)
  })
})
