import { describe, expect, it } from 'vitest'
import { hasCorruptedMemory } from '../../../../src/dispatch/threads/shard-threads.js'

const failureWith = (numbers: string) =>
  new Error(`Input/output error: Attempting to write page at position 24576, size 4096, blocks 1, ${numbers}`)

describe('the memory after a failed write', () => {
  it('is intact if the error text fits into its buffer', () => {
    expect(hasCorruptedMemory(failureWith('buffer sizes 4096 4096 0'))).toBe(false)
    // 99 characters and the NUL.
    expect(hasCorruptedMemory(failureWith('buffer sizes 4096 31035612 3103556'))).toBe(false)
  })

  it('is corrupted if the error text is longer than its buffer', () => {
    expect(hasCorruptedMemory(failureWith('buffer sizes 4096 31035612 31035568'))).toBe(true)
    expect(hasCorruptedMemory(failureWith('buffer sizes 4096 -1878601392 1878601392'))).toBe(true)
  })

  it('is intact after any other error', () => {
    expect(hasCorruptedMemory(new Error(`No space left on device: ${'x'.repeat(200)}`))).toBe(false)
  })
})
