import { describe, expect, it } from 'vitest'
import { refuse } from '../../../../../src/base/errors.js'
import { graver } from '../../../../../src/front/http/ingest/stream.js'

const unavailable = refuse('unavailable', 'The shard is restarting')
const unknown = refuse('outcome_unknown', 'The shard did not answer')
const limited = refuse('overloaded', 'Too many wait')

describe('an ingest that several shards refuse', () => {
  it('is answered by the first refusal, but for one after which nobody knows what was written', () => {
    expect(graver(undefined, unavailable)).toBe(unavailable)
    expect(graver(unavailable, limited)).toBe(unavailable)
    expect(graver(unavailable, unknown)).toBe(unknown)
    expect(graver(unknown, unavailable)).toBe(unknown)
  })
})
