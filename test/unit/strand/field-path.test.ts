// @run on the built program
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { fieldOf, fieldSteps, pathOfSteps, storedSteps } from '../../../src/strand/field-path.js'

describe('a path to a field', () => {
  it.each([
    ['a', ['a']],
    ['a.b.0', ['a', 'b', '0']],
    ['a/b', ['a/b']],
    ['a~2', ['a~2']],
    // RFC 6901, 5
    ['/foo', ['foo']],
    ['/foo/0', ['foo', '0']],
    ['/', ['']],
    ['/a~1b', ['a/b']],
    ['/c%d', ['c%d']],
    ['/k"l', ['k"l']],
    ['/ ', [' ']],
    ['/m~0n', ['m~n']],
    ['/~01', ['~1']],
    ['/labels/app.kubernetes.io~1name', ['labels', 'app.kubernetes.io/name']],
    ['/a//b/', ['a', '', 'b', '']],
  ])('has steps: %j', (path, steps) => {
    expect(fieldSteps(path)).toEqual(steps)
  })

  it.each(['', '.', '.a', 'a.', 'a..b', '/~', '/a~', '/a~2b', '/~/~0'])('is invalid: %j', (path) => {
    expect(fieldSteps(path)).toBeUndefined()
    // Earlier versions may have stored such a path in a row policy.
    expect(storedSteps(path)).toEqual(path.split('.'))
  })

  it('leads only to own members and items of lists', () => {
    const body = { labels: { 'app.kubernetes.io/name': 'web' }, list: [{ a: 1 }, 2], '': { '': 3 }, 'a.b': 4 }
    expect(fieldOf(body, '/labels/app.kubernetes.io~1name')).toBe('web')
    expect(fieldOf(body, '/list/0/a')).toBe(1)
    expect(fieldOf(body, '//')).toBe(3)
    expect(fieldOf(body, '/a.b')).toBe(4)
    for (const path of ['/list/00', '/list/-', '/list/length', '/constructor', '/a/b', '/__proto__', 'a.b']) {
      expect([path, fieldOf(body, path)]).toEqual([path, undefined])
    }
  })

  it('can be created for any field of the body', () => {
    const name = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom('.', '/', '~', '0', 'a')).map((all) => all.join('')),
    )
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), (steps) => {
        expect(fieldSteps(pathOfSteps(steps))).toEqual(steps)
      }),
    )
    expect(pathOfSteps(['door', 'name'])).toBe('door.name')
    expect(pathOfSteps(['labels', 'app.kubernetes.io/name'])).toBe('/labels/app.kubernetes.io~1name')
    expect(['celsius', 'a/b', '~', 'a.b', '/a', ''].map((one) => pathOfSteps([one]))).toEqual([
      'celsius',
      'a/b',
      '~',
      '/a.b',
      '/~1a',
      '/',
    ])
  })
})
