import { describe, expect, it } from 'vitest'
import {
  type ConditionDraft,
  emptyCondition,
  noFilter,
  queryOf,
} from '../../../src/console/agents/records/filter.js'

const withCondition = (condition: Partial<ConditionDraft>) =>
  queryOf({ ...noFilter, conditions: [{ ...emptyCondition, field: 'celsius', ...condition }] })

describe('the filter of records', () => {
  it('has no query if it is empty', () => {
    expect(queryOf(noFilter)).toBeUndefined()
  })

  it('splits types at commas and spaces, and orders newest first', () => {
    expect(queryOf({ ...noFilter, types: ' reading, auth/*  sys/erase' })).toEqual({
      query: { type: 'time_range', order: 'desc', types: ['reading', 'auth/*', 'sys/erase'] },
    })
  })

  it('reads times in the browser’s time zone', () => {
    const from = '2026-03-01T08:30'
    expect(queryOf({ ...noFilter, from })).toMatchObject({ query: { from_ts: new Date(from).toISOString() } })
  })

  it.each<[Partial<ConditionDraft>, unknown]>([
    [{ value: '7' }, '7'],
    [{ valueType: 'number', value: '7' }, 7],
    [{ valueType: 'yes or no', value: 'no' }, false],
    [{ valueType: 'JSON', value: 'null' }, null],
    [{ op: 'in', value: 'a, b' }, ['a', 'b']],
    [{ op: 'in', valueType: 'number', value: '1,2' }, [1, 2]],
    [{ op: 'exists', value: 'no' }, false],
  ])('compares with a value of the chosen type: %j', (condition, value) => {
    expect(withCondition(condition)).toMatchObject({ query: { where: [{ field: 'celsius', value }] } })
  })

  it('accepts JSON Pointers', () => {
    const field = '/labels/app.kubernetes.io~1name'
    expect(withCondition({ field: ` ${field} ` })).toMatchObject({ query: { where: [{ field }] } })
  })

  it.each([
    [queryOf({ ...noFilter, types: 'Reading' }), 'Expected types of'],
    [withCondition({ field: ' ' }), 'Expected the name of a field'],
    [withCondition({ field: 'a..b' }), 'or a JSON Pointer'],
    [withCondition({ field: '/a~b' }), 'got “/a~b”'],
    [withCondition({ valueType: 'number', value: 'warm' }), 'Expected a number for celsius'],
    [withCondition({ op: 'in', valueType: 'number', value: '1, warm' }), 'Expected a number for celsius'],
    [withCondition({ valueType: 'JSON', value: '{' }), 'Expected JSON for celsius'],
  ])('reports the fault of %j', (query, fault) => {
    expect(query).toMatchObject({ fault: expect.stringContaining(fault) })
  })
})
