import { expect, expectTypeOf, it } from 'vitest'
import { ServiceClient } from '../../src/client/index.js'
import type { NucleotideRecord, QueryBody, StreamEvent, WhereCondition } from '../../src/client/index.js'

/* The compiler checks these calls (npm run types); none of them is sent. */

interface Reading {
  sensor: string
  celsius: number
  state: 'new' | 'open'
  place?: { floor: number; tags: string[] }
  parts: readonly { name: string }[]
  inner?: Reading
  extra?: unknown
}

const whole: Reading = { sensor: 'roof', celsius: 21.5, state: 'new', parts: [] }
const readings = new ServiceClient({ url: 'http://127.0.0.1:1' }).collection<Reading>('readings')
const anything = new ServiceClient({ url: 'http://127.0.0.1:1' }).collection('anything')

/** Compiled, but never called. */
async function calls(): Promise<void> {
  const { timestamp } = await readings.write(whole)
  expectTypeOf(timestamp).toEqualTypeOf<Date>()
  // The deprecated overload, which has the signature of the specification.
  await readings.write({ sensor: 'roof' })
  // @ts-expect-error The type has no such member.
  await readings.write({ ...whole, humidity: 40 })
  const fixed: readonly Reading[] = [whole]
  expectTypeOf(await readings.writeBatch(fixed)).items.toHaveProperty('timestamp')
  // @ts-expect-error Batches accept complete records only.
  await readings.writeBatch([{ sensor: 'roof' }])
  expectTypeOf((await readings.get('a')).payload).toEqualTypeOf<Reading | null>()
  expectTypeOf((await readings.latest()).records).toEqualTypeOf<NucleotideRecord<Reading>[]>()
  expectTypeOf((await readings.latest()).records)
    .items.toHaveProperty('data')
    .toEqualTypeOf<Reading>()
  expectTypeOf((await readings.asOf(0)).records)
    .items.toHaveProperty('payload')
    .toEqualTypeOf<Reading>()
  expectTypeOf<StreamEvent<Reading>['payload']>().toEqualTypeOf<Reading>()
  expectTypeOf<StreamEvent['timestamp']>().toEqualTypeOf<Date>()
  expectTypeOf(await readings.restoreRecord('a')).toEqualTypeOf(await readings.restore('a'))
  await readings.query({ type: 'latest', where: [{ field: 'celsius', op: 'gt', value: 20 }] })
  // @ts-expect-error No such field.
  await readings.query({ type: 'latest', where: [{ field: 'fahrenheit', op: 'gt', value: 20 }] })
}

it('checks the conditions of a query against the type of the records', () => {
  const right: WhereCondition<Reading>[] = [
    { field: 'sensor', op: 'eq', value: 'roof' },
    { field: 'celsius', op: 'in', value: [20, 21] },
    { field: 'state', op: 'ne', value: 'open' },
    { field: 'place', op: 'exists', value: false },
    { field: 'place.floor', op: 'lte', value: 3 },
    { field: 'place.tags.0', op: 'eq', value: 'north' },
    { field: 'parts.1.name', op: 'in', value: ['valve'] },
    { field: 'inner.inner.celsius', op: 'gte', value: 1 },
    { field: '/place/floor', op: 'eq', value: 3 },
    { field: 'extra.of.anything', op: 'eq', value: true },
    { field: 'inner.inner.inner.inner.place.floor', op: 'eq', value: 3 },
  ]
  // @ts-expect-error A number is never equal to a text.
  const ofOtherType: WhereCondition<Reading> = { field: 'celsius', op: 'eq', value: '20' }
  // @ts-expect-error No such member.
  const ofNoPlace: WhereCondition<Reading> = { field: 'place.ceiling', op: 'exists', value: true }
  // @ts-expect-error The state cannot have this value.
  const ofNoMember: WhereCondition<Reading> = { field: 'state', op: 'eq', value: 'closed' }
  // @ts-expect-error Only `in` accepts a list.
  const listed: WhereCondition<Reading> = { field: 'celsius', op: 'gt', value: [1] }
  // @ts-expect-error `in` needs a list.
  const unlisted: WhereCondition<Reading> = { field: 'sensor', op: 'in', value: 'roof' }
  // @ts-expect-error No such operator.
  const unknown: WhereCondition<Reading> = { field: 'sensor', op: 'like', value: 'r' }
  const wrong = [ofOtherType, ofNoPlace, ofNoMember, listed, unlisted, unknown]
  expect([right, wrong].map(({ length }) => length)).toEqual([11, 6])
})

it('accepts any condition if the type of the records is unknown', () => {
  const where: WhereCondition[] = [{ field: 'a.b', op: 'eq', value: 1 }]
  const body: QueryBody = { type: 'latest', where }
  const uncalled = () => [anything.query(body), anything.write({ a: 1 }), calls()]
  expect(uncalled).toBeTypeOf('function')
})
