import { describe, expect, it } from 'vitest'
import { assertRelated } from '../../../../src/base/limits/relations.js'
import { limits } from '../../../../src/base/limits/limits.js'

describe('the limits', () => {
  it('do not contradict each other', () => {
    expect(() => assertRelated(limits)).not.toThrow()
  })

  it.each([
    ['recordBytesDefault', { recordBytesDefault: limits.recordBytesMax + 1 }],
    ['streamRecentBytes', { streamRecentBytes: limits.streamBufferBytes - 1 }],
    ['sinkReplyMs', { sinkReplyMs: limits.sinkStatementMs - 1 }],
    ['importRecordsMax', { importRecordsMax: limits.commitRecordsMax + limits.ingestAtomicLinesMax - 1 }],
    ['importBodyBytesMax', { importBodyBytesMax: limits.ingestAtomicBytesMax }],
    ['importLineBytesMax', { importLineBytesMax: 2 * limits.recordBytesMax }],
    ['keyRotationsMax', { keyRotationsMax: 256 }],
  ])('throw an error that names %s when it contradicts another limit', (named, changed) => {
    expect(() => assertRelated({ ...limits, ...changed })).toThrow(named)
  })

  it('throw an error with both limits and the reason', () => {
    const { proposalsOpenMax } = limits
    expect(() => assertRelated({ ...limits, proposalsNotErasingMax: proposalsOpenMax + 1 })).toThrow(
      `proposalsNotErasingMax (${proposalsOpenMax + 1}) is at most proposalsOpenMax (${proposalsOpenMax}): erasures always have capacity`,
    )
  })
})
