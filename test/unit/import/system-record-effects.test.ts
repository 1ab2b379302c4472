import { expect, it } from 'vitest'
import { effectOf } from '../../../workers/import/system-record-effects.js'

const recordOf = (type: string, body: unknown) => {
  return { agent: 'a', type, seq: 2, prev: '0'.repeat(64), atMs: 1_700_000_000_000, body }
}

// Regression: a record of the type `constructor` was read as a system record with the effect in its body.
it.each(['constructor', '__proto__', 'tostring', 'record'])(
  'gives no effect to a record of type %s',
  (type) => {
    expect(effectOf(recordOf(type, { effect: { kind: 'zone', zone: 'free' } }))).toEqual({})
  },
)

it('gives the effect of a system record', () => {
  const body = { zone: 'free', from: 'governed', principal: 'root' }
  expect(effectOf(recordOf('sys/zone', body))).toMatchObject({ effect: { kind: 'zone', zone: 'free' } })
})
