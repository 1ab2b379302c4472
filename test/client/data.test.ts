import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ServiceClient } from '../../src/client/index.js'
import { jsonText } from '../../src/client/json-text.js'
import { fc } from '../support/fast-check.js'
import { type ScriptedServer, answerJson, startScriptedServer } from './scripted-server.js'

class Reading {
  readonly celsius = 21
  readonly #secret = 1
  get secret(): number {
    return this.#secret
  }
}
class Hidden {
  readonly #value = 1
  get value(): number {
    return this.#value
  }
}

/** Values that JSON.stringify would replace, drop or refuse without naming them. */
const refused: [value: unknown, found: string][] = [
  [Number.NaN, 'NaN'],
  [Number.POSITIVE_INFINITY, 'Infinity'],
  [Number.NEGATIVE_INFINITY, '-Infinity'],
  [Object(Number.NaN), 'NaN'],
  [1n, 'a BigInt'],
  [Symbol('s'), 'a symbol'],
  [() => 1, 'a function'],
  [new Date('no date'), 'an invalid date'],
  [{ toJSON: () => null }, 'an object whose JSON is null'],
  [{ toJSON: () => undefined }, 'an object whose JSON is undefined'],
  [{ toJSON: () => Number.NaN }, 'NaN'],
  [new Map([['a', 1]]), 'an object of the class Map'],
  [new Set([1]), 'an object of the class Set'],
  [new WeakMap(), 'an object of the class WeakMap'],
  [new Error('no'), 'an object of the class Error'],
  [/x/, 'an object of the class RegExp'],
  [Promise.resolve(1), 'an object of the class Promise'],
  [new Uint8Array(2), 'an object of the class Uint8Array'],
  [new ArrayBuffer(2), 'an object of the class ArrayBuffer'],
  [new Headers({ a: 'b' }), 'an object of the class Headers'],
  [new URLSearchParams('a=b'), 'an object of the class URLSearchParams'],
  [new Hidden(), 'an object whose JSON is {}'],
  [[1, undefined], 'undefined'],
  // oxlint-disable-next-line no-sparse-arrays
  [[1, , 3], 'undefined'],
]

describe('a value that JSON cannot represent', () => {
  it.each(refused)('is refused: %s', (value, found) => {
    const place = Array.isArray(value) ? '/list/0/a~1b/1' : '/list/0/a~1b'
    expect(() => jsonText({ list: [{ 'a/b': value }] })).toThrow(
      new TypeError(`Expected a value of JSON at ${place} of the body, got ${found}`),
    )
  })

  it('is refused if it is the body itself', () => {
    for (const value of [Number.NaN, undefined, new Map()])
      expect(() => jsonText(value)).toThrow('at the body')
  })

  it('is refused if it refers to itself', () => {
    const circular: Record<string, unknown> = {}
    circular['self'] = { circular }
    expect(() => jsonText(circular)).toThrow(
      'Expected a value of JSON at /self/circular of the body, got an object that contains itself',
    )
  })

  // Each was followed from each other one, up to a depth of a thousand.
  it('is refused immediately if many of its objects refer to their parent', () => {
    const parent: Record<string, unknown> = {}
    parent['children'] = [{ parent }, { parent }, { parent }]
    expect(() => jsonText({ tree: parent })).toThrow(
      '/tree/children/0/parent of the body, got an object that contains itself',
    )
  })
})

describe('a value of JSON', () => {
  it('has the text of JSON.stringify', () => {
    const anything = fc.anything({ withBoxedValues: true, withNullPrototype: true, maxDepth: 4 })
    fc.assert(
      fc.property(anything, (value) => {
        let text: string
        try {
          text = jsonText(value)
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError)
          return
        }
        expect(text).toBe(JSON.stringify(value))
      }),
    )
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(jsonText(value)).toBe(JSON.stringify(value))
      }),
    )
  })

  it('may have undefined members, dates, instances of classes, and objects that convert themselves', () => {
    const date = new Date(0)
    const value = {
      left: undefined,
      date,
      reading: new Reading(),
      url: new URL('http://a/'),
      bytes: Buffer.of(1),
    }
    expect(jsonText(value)).toBe(
      '{"date":"1970-01-01T00:00:00.000Z","reading":{"celsius":21},"url":"http://a/","bytes":{"type":"Buffer","data":[1]}}',
    )
  })
})

describe('a value that programs represent in their own way', () => {
  it('may be an object that names its class, or appears more than once', () => {
    class Named {
      readonly celsius = 21
      get [Symbol.toStringTag](): string {
        return 'Number'
      }
    }
    const module = Object.defineProperty(Object.assign(Object.create(null), { a: 1 }), Symbol.toStringTag, {
      value: 'Module',
    })
    const same = { b: 2 }
    expect(jsonText([new Named(), module, same, same])).toBe('[{"celsius":21},{"a":1},{"b":2},{"b":2}]')
  })

  it('may be a BigInt for which the program defines toJSON', () => {
    const text = function (this: bigint) {
      return String(this)
    }
    // oxlint-disable-next-line no-extend-native -- as such programs do
    Object.defineProperty(BigInt.prototype, 'toJSON', { value: text, configurable: true })
    try {
      expect(jsonText({ a: [1n] })).toBe('{"a":["1"]}')
    } finally {
      Reflect.deleteProperty(BigInt.prototype, 'toJSON')
    }
  })
})

describe('the client', () => {
  let server: ScriptedServer
  beforeAll(async () => {
    server = await startScriptedServer(answerJson({}))
  })
  afterAll(() => server.stop())

  const bad = Number.NaN
  const calls: [name: string, call: (client: ServiceClient) => Promise<unknown>, place: string][] = [
    ['write', (client) => client.agent().write({ a: { b: bad } }), '/data/a/b of the body'],
    [
      'writeBatch',
      (client) => client.agent().writeBatch([{ a: 1 }, { a: bad }]),
      '/records/1/data/a of the body',
    ],
    ['ingest', (client) => client.ingest('feed', { a: bad }), '/a of the record'],
    ['ingestMany', (client) => client.ingestMany('feed', [{ a: 1 }, { a: bad }]), '/a of record 2'],
    [
      'ingestMany in chunks',
      (client) => client.ingestMany('feed', [{ a: 1 }, { a: bad }], { upload: 'chunks' }),
      '/a of record 2',
    ],
    ['relate', (client) => client.graph.relate('a', 'b', 'likes', bad), '/weight of the body'],
    [
      'query',
      (client) =>
        client.agent().query({ type: 'latest', limit: 1, where: [{ field: 'a', op: 'eq', value: bad }] }),
      '/where/0/value of the body',
    ],
    ['updateUserMetadata', (client) => client.auth.updateUserMetadata({ a: bad }), '/metadata/a of the body'],
    [
      'setAppMetadata',
      (client) => client.auth.users.setAppMetadata('a@b.example', { a: bad }),
      '/metadata/a of the body',
    ],
  ]

  it.each(calls)(
    'rejects %s with a TypeError that names the member, and sends nothing',
    async (...[, call, place]) => {
      const client = new ServiceClient({ url: server.url, apiKey: 'key' })
      const before = server.received.length
      const error: unknown = await call(client).catch((reason: unknown) => reason)
      expect(error).toEqual(new TypeError(`Expected a value of JSON at ${place}, got NaN`))
      // The beginning of an upload may have been sent.
      expect(server.received.slice(before).filter(({ body }) => body.includes('null'))).toEqual([])
    },
  )

  it.each([
    [
      'edges',
      (client: ServiceClient) => client.graph.edgePage('a', { limit: bad }),
      'Expected a finite number as limit, got NaN',
    ],
    [
      'asOf',
      (client: ServiceClient) => client.agent().asOf(new Date('no date')),
      'Expected a valid moment, got Invalid Date',
    ],
  ] as const)('rejects %s with a TypeError that names the parameter', async (...[, call, message]) => {
    const client = new ServiceClient({ url: server.url, apiKey: 'key' })
    const before = server.received.length
    const error: unknown = await (async () => call(client))().catch((reason: unknown) => reason)
    expect(error).toEqual(new TypeError(message))
    expect(server.received.length).toBe(before)
  })
})
