import { describe, expect, it } from 'vitest'
import {
  type ConditionDraft,
  CONDITIONS_MAX,
  emptyCondition,
  noFilter,
  queryOf,
  queryOfView,
  viewOf,
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
    [{ value: '7' }, 7],
    [{ value: ' -0.5e3 ' }, -500],
    [{ valueType: 'text', value: '7' }, '7'],
    [{ value: '007' }, '007'],
    [{ value: '0x10' }, '0x10'],
    [{ value: '' }, ''],
    [{ value: '1e400' }, '1e400'],
    // An id of more digits than a number holds.
    [{ value: '12345678901234567890' }, '12345678901234567890'],
    [{ value: 'true' }, true],
    [{ valueType: 'text', value: 'true' }, 'true'],
    [{ value: 'warm' }, 'warm'],
    [{ op: 'in', value: '1, warm, false' }, [1, 'warm', false]],
    [{ op: 'in', valueType: 'text', value: '1, 2' }, ['1', '2']],
    [{ valueType: 'number', value: '7' }, 7],
    [{ valueType: 'yes or no', value: 'no' }, false],
    [{ valueType: 'JSON', value: 'null' }, null],
    [{ op: 'in', value: 'a, b' }, ['a', 'b']],
    [{ op: 'in', valueType: 'number', value: '1,2' }, [1, 2]],
    [{ op: 'exists', value: 'no' }, false],
    [{ op: 'contains', value: '7' }, '7'],
    [{ op: 'contains', valueType: 'number', value: '7' }, 7],
    [{ op: 'starts_with', value: 'true' }, 'true'],
  ])('compares with a value of the chosen type: %j', (condition, value) => {
    expect(withCondition(condition)).toMatchObject({ query: { where: [{ field: 'celsius', value }] } })
  })

  it('compares texts in any case', () => {
    expect(withCondition({ op: 'contains', valueType: 'text in any case', value: 'Warm' })).toMatchObject({
      query: { where: [{ field: 'celsius', op: 'contains', value: 'Warm', ci: true }] },
    })
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

describe('the address of the records', () => {
  it('contains the filter, the columns and the order, and means the same in another time zone', () => {
    const view = {
      filter: {
        types: 'reading, auth/*',
        conditions: [
          { field: 'celsius', op: 'gte', valueType: 'automatic', value: '7' },
          { field: '/a b/%41=&', op: 'eq', valueType: 'text', value: ' 7 = %20 & é\n ' },
          { field: 'open', op: 'exists', valueType: 'yes or no', value: 'no' },
          { field: 'team', op: 'in', valueType: 'JSON', value: '["a", "b"]' },
          { field: 'empty', op: 'ne', valueType: 'text', value: '' },
          { field: 'note', op: 'starts_with', valueType: 'text in any case', value: 'Re: ' },
        ] satisfies ConditionDraft[],
        from: '2026-03-01T08:30:00',
        to: '2026-03-02T00:00:07',
      },
      columns: ['door.name', '/labels/app.kubernetes.io~1name'],
      order: 'asc' as const,
    }
    const query = queryOfView(view)
    expect(viewOf(query)).toEqual(view)
    expect(query).toContain('where=celsius+gte+7&')
    const from = new Date('2026-03-01T08:30:00').toISOString().replace('.000Z', 'Z')
    expect(new URLSearchParams(query).get('from')).toBe(from)
  })

  it('is empty for all records, and leaves out what it cannot read', () => {
    const nothing = { filter: noFilter, columns: [], order: 'desc' as const }
    expect(queryOfView(nothing)).toBe('')
    for (const query of [
      '',
      'x=1',
      'order=ASC',
      'where=',
      'where=a',
      'where=a+like+1',
      'where=a+eq:word+1',
      'where=%25+eq+1',
    ])
      expect(viewOf(query)).toEqual(nothing)
    expect(viewOf('from=yesterday&to=')).toEqual(nothing)
    const many = (text: string): string => Array.from({ length: 99 }, (_none, at) => text + at).join('&')
    expect(viewOf(many('column=c')).columns).toHaveLength(40)
    expect(viewOf(many('where=c+eq+')).filter.conditions).toHaveLength(CONDITIONS_MAX)
  })
})
