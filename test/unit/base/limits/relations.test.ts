import { describe, expect, it } from 'vitest'
import { assertRelated } from '../../../../src/base/limits/relations.js'
import { limits } from '../../../../src/base/limits/limits.js'

describe('the limits', () => {
  it('go together', () => {
    expect(() => assertRelated(limits)).not.toThrow()
  })

  it.each([
    ['recordBytesDefault', { recordBytesDefault: limits.recordBytesMax + 1 }],
    ['streamRecentBytes', { streamRecentBytes: limits.streamBufferBytes - 1 }],
    ['sinkSilenceMs', { sinkSilenceMs: limits.sinkStatementMs - 1 }],
    ['importRecordsMax', { importRecordsMax: limits.commitRecordsMax + limits.ingestAtomicLinesMax - 1 }],
    ['importLineBytesMax', { importLineBytesMax: 2 * limits.recordBytesMax }],
    ['keyRotationsMax', { keyRotationsMax: 256 }],
  ])('stop a program in which %s does not', (named, changed) => {
    expect(() => assertRelated({ ...limits, ...changed })).toThrow(named)
  })

  it('say which two do not go together, and why', () => {
    const { proposalsOpenMax } = limits
    expect(() => assertRelated({ ...limits, proposalsNotErasingMax: proposalsOpenMax + 1 })).toThrow(
      `proposalsNotErasingMax (${proposalsOpenMax + 1}) is at most proposalsOpenMax (${proposalsOpenMax}): there is room to erase`,
    )
  })
})
