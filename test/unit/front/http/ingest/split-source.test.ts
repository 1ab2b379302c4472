import { describe, expect, it, vi } from 'vitest'
import type { BodyPart } from '../../../../../src/front/http/body-queue.js'
import { FrontSlices } from '../../../../../src/front/http/front-turn.js'
import { splitSource } from '../../../../../src/front/http/ingest/split-source.js'
import { fieldOf, fieldSteps } from '../../../../../src/strand/field-path.js'
import { fc } from '../../../../support/fast-check.js'

const slices = new FrontSlices()
const memory = { reserve: () => true, release: () => {}, reserveWhenFree: async () => undefined }

/** The lines of a body in parts of `partBytes`; or its error. */
async function split(
  text: string,
  path: string,
  { keepsRest = true, partBytes = 1_000 } = {},
): Promise<string[]> {
  const bytes = Buffer.from(text)
  let at = 0
  const next = async (): Promise<BodyPart> => {
    if (at >= bytes.length) return { ended: true }
    const part = bytes.subarray(at, at + partBytes)
    at += partBytes
    return { bytes: part }
  }
  const source = splitSource({ path, steps: fieldSteps(path) ?? [], keepsRest })
  const stream = { options: {}, slices, memory, bodyBytesMax: Infinity, lineBytesMax: 1_000_000 }
  const content = await source.read({ next, interruption: undefined } as never, stream as never)
  if ('malformed' in content) return [content.malformed.detail]
  if (!('lines' in content)) return ['refusal' in content ? content.refusal.detail : '']
  const parts: Buffer[] = []
  for (;;) {
    const part = await content.lines.next()
    if ('refusal' in part) return [part.refusal.detail]
    if (!('bytes' in part)) break
    parts.push(part.bytes)
  }
  return Buffer.concat(parts).toString().split('\n').slice(0, -1)
}

const key = fc.constantFrom('a', 'b', 'a/b', '~', '0', '1', 'items', 'é', '"', '\\', '', '{', 'a.b')
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(null, true, 0, -1.5, '', 'a', '"', '\\', ']},', '\n', '\u2028'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
}))

describe('a split object', () => {
  it('becomes a line for each member of any of its arrays, however it is formatted and arrives', async () => {
    const cases = fc.tuple(
      fc.dictionary(key, value, { maxKeys: 4 }),
      key,
      fc.array(value, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(undefined, 1, '\t'),
      fc.integer({ min: 1, max: 50 }),
    )
    await fc.assert(
      fc.asyncProperty(cases, async ([object, name, members, indent, partBytes]) => {
        const body = { ...object, [name]: { list: [0, members] } }
        const path = pointer([name, 'list', '1'])
        expect(fieldOf(body, path)).toEqual(members)
        const text = JSON.stringify(body, null, indent)
        const alone = await split(text, path, { keepsRest: false, partBytes })
        expect(alone.map((line) => JSON.parse(line))).toEqual(members)
        const around = await split(text, path, { partBytes })
        expect(around.map((line) => JSON.parse(line))).toEqual(
          members.map((member) => ({ ...body, [name]: { list: [0, member] } })),
        )
      }),
      { numRuns: 300 },
    )
  })

  it('has no array after the end of the list or object of the path', async () => {
    for (const [text, path] of [
      ['{"a":[1,2],"z":[[1],[[7]]]}', '/a/2'],
      ['{"a":{"b":1},"z":[[1],2],"c":[7]}', '/a/c'],
    ] as const)
      expect(await split(text, path)).toEqual([`Expected one JSON object with an array at ${path}`])
  })

  it('is processed in slices if it has large values', async () => {
    const long = `\\"${'\\\\'.repeat(100_000)}`
    const text = `{"a":{"list":["${long}",[${'1,'.repeat(100_000)}1]]}}`
    const lines = await split(text, '/a/list/1', { keepsRest: false, partBytes: 65_536 })
    expect(lines).toEqual(['Expected at most 65536 bytes outside of the array at /a/list/1'])
    const all = await split(text, 'a.list', { partBytes: 65_536 })
    expect(all.map((line) => JSON.parse(line).a.list.length)).toEqual([100_001, 100_001])
  })

  it('is processed in slices if it has much white space, long names or many members', async () => {
    const long = 1_048_576
    const run = vi.spyOn(slices, 'run')
    for (const text of [
      `${' '.repeat(long)}{"items":[{}]}`,
      `{"items":${' '.repeat(long)}[{}]}`,
      `{"items":[${' '.repeat(long)}]}`,
      `{"${'x'.repeat(long)}":1,"items":[{}]}`,
      `{"rest":"${'x'.repeat(200)}","items":[${'1,'.repeat(20_000)}1]}`,
    ]) {
      run.mockClear()
      await split(text, '/items')
      expect(run.mock.calls.length).toBeGreaterThanOrEqual(long / 65_536)
    }
    run.mockRestore()
  })
})

function pointer(steps: readonly string[]): string {
  return steps.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
