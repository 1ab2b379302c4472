import { describe, expect, it } from 'vitest'
import { refuse } from '../../../../../src/base/errors.js'
import { moreSevere } from '../../../../../src/front/http/ingest/stream.js'

const unavailable = refuse('unavailable', 'The shard is restarting')
const unknown = refuse('outcome_unknown', 'The shard did not answer')
const limited = refuse('overloaded', 'Too many wait')

describe('an ingest that several shards refuse', () => {
  it('is answered with the first refusal, unless the outcome of a shard is unknown', () => {
    expect(moreSevere(undefined, unavailable)).toBe(unavailable)
    expect(moreSevere(unavailable, limited)).toBe(unavailable)
    expect(moreSevere(unavailable, unknown)).toBe(unknown)
    expect(moreSevere(unknown, unavailable)).toBe(unknown)
  })
})
