import { describe, expect, it } from 'vitest'
import { parseCondition } from '../../../src/cli/query.js'

describe('a condition on the command line', () => {
  it.each([
    ['celsius>20', 'celsius', 'gt', 20],
    ['celsius >= 20.5', 'celsius', 'gte', 20.5],
    ['place.floor<3', 'place.floor', 'lt', 3],
    ['place.floor<=3', 'place.floor', 'lte', 3],
    ['sensor=roof', 'sensor', 'eq', 'roof'],
    ['sensor="3"', 'sensor', 'eq', '3'],
    ['open!=true', 'open', 'ne', true],
    ['formula=a>=b', 'formula', 'eq', 'a>=b'],
    ['/labels/app.kubernetes.io~1name=web', '/labels/app.kubernetes.io~1name', 'eq', 'web'],
    ['note=', 'note', 'eq', ''],
    ['note', 'note', 'exists', true],
    ['!note', 'note', 'exists', false],
    ['state in ["new","open"]', 'state', 'in', ['new', 'open']],
  ])('is read: %s', (text, ...expected) => {
    const { field, op, value } = parseCondition(text) ?? {}
    expect([field, op, value]).toEqual(expected)
  })

  it.each(['a==5', 'a=~x', 'a=>5', 'a=<5', 'a<>5', 'a>>5', 'a!==5', 'a!~x', 'a~=x y', 'a like x', 'a in x'])(
    'is refused with an unknown operator: %j',
    (text) => expect(parseCondition(text)).toBeUndefined(),
  )

  it.each([
    ['note contains late', { op: 'contains', value: 'late' }],
    ['note contains 5', { op: 'contains', value: 5 }],
    ['note starts_with 5', { op: 'starts_with', value: '5' }],
    ['note starts_with "5"', { op: 'starts_with', value: '5' }],
    ['note ci contains is = here', { op: 'contains', value: 'is = here', ci: true }],
    ['note ci = Late', { op: 'eq', value: 'Late', ci: true }],
    ['note ci in ["a"]', { op: 'in', value: ['a'], ci: true }],
    ['ci=5', { field: 'ci', op: 'eq', value: 5 }],
  ])('compares parts of texts, and without case: %s', (text, expected) => {
    expect(parseCondition(text)).toEqual({ field: 'note', ...expected })
  })

  it('accepts a quoted text that begins with an operator', () => {
    expect(parseCondition('path="~/x"')).toEqual({ field: 'path', op: 'eq', value: '~/x' })
  })

  it.each(['', '=3', 'a b', 'a b=3', '!', '!a=3', '>'])('is refused when it is malformed: %j', (text) => {
    expect(parseCondition(text)).toBeUndefined()
  })
})
