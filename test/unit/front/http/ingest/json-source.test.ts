import { describe, expect, it } from 'vitest'
import { bodyOf, type BodySource } from '../../../../../src/front/http/ingest/array-body.js'
import { JsonBody } from '../../../../../src/front/http/ingest/json-source.js'
import type { BodyPart } from '../../../../../src/front/http/body-queue.js'

const memory = { reserve: () => true, release: () => {} }
const LINE_BYTES_MAX = 40

function bodyIn(parts: readonly string[]): BodySource {
  const remaining: BodyPart[] = parts.map((part) => ({ bytes: Buffer.from(part) }))
  return { interruption: undefined, next: async () => remaining.shift() ?? { ended: true } }
}

/** The detected shape of a text, in one part and byte by byte. Checks that reading returns the whole text. */
async function shapeOf(text: string): Promise<unknown> {
  const shapes = new Set<unknown>()
  for (const parts of [[text], text.split('')]) {
    const body = new JsonBody(bodyIn(parts), memory)
    shapes.add(await body.shape(LINE_BYTES_MAX))
    let read = ''
    for (let part = await body.next(); 'bytes' in part; part = await body.next())
      read += part.bytes.toString()
    expect(read).toBe(text)
  }
  expect(shapes.size).toBe(1)
  return [...shapes][0]
}

const cases: [shape: string, texts: string[]][] = [
  ['array', ['[', ' \r\n\t[{}]', '[1]\n[2]']],
  [
    'lines',
    [
      '{}\n{}',
      '\n {"a":1} \r\n\r\n {"a":2}\n',
      '1\n2',
      'not JSON\n{}',
      '{"cut":"in a string, \n{}',
      String.raw`{"a":"\\"}` + '\n{}',
      '{"cut":1\n{}',
      '{"cut":[1\r\n{}',
      `{"a":"${'x'.repeat(20)}"}\n{"`,
    ],
  ],
  [
    'object',
    [
      '{',
      '{"a":1}\n\n ',
      '{}{}',
      '{\n"a":1\n}',
      '{"a":1,\n"a":2}',
      '{"a":\n1}',
      '{"a":1\n}',
      '{"a":1\n,"b":2}',
      '{"a"\n:1}',
      String.raw`{"a":"\"",` + '\n"b":1}',
    ],
  ],
  ['other', ['', ' \n', '7', '"text"\n', 'x']],
  ['endless', [`{"a":"${'x'.repeat(40)}"}\n{}`, ' '.repeat(41), `{}\n${' '.repeat(40)}{}`, '7'.repeat(50)]],
]

describe('a JSON body', () => {
  it.each(cases)('is recognized as %s by its beginning, however it arrives', async (shape, texts) => {
    for (const text of texts) expect([text, await shapeOf(text)]).toEqual([text, shape])
  })

  it('is read only until its shape is known', async () => {
    let reads = 0
    const body = {
      interruption: undefined,
      async next(): Promise<BodyPart> {
        reads += 1
        return { bytes: Buffer.from('{}\n') }
      },
    }
    expect(await new JsonBody(body, memory).shape(LINE_BYTES_MAX)).toBe('lines')
    expect(reads).toBe(2)
  })

  it('ends with the refusal of its source', async () => {
    const refusal = { code: 'overloaded', detail: 'x' } as const
    const cancelled = { interruption: { refusal }, next: async () => ({ refusal }) }
    expect(await new JsonBody(cancelled, memory).shape(LINE_BYTES_MAX)).toEqual({ refusal })
    expect(await bodyOf([{ bytes: Buffer.from('{}') }].values(), cancelled).next()).toEqual({ refusal })
  })
})
