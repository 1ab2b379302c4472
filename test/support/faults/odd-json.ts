import { fc } from '../fast-check.js'
import { oddText } from './fuzzing.js'

/*
 * Texts that are JSON, almost JSON, or JSON about which parsers disagree.
 */

const oddNumbers = [
  '0',
  '-0',
  '0.0',
  '1e400',
  '-1e400',
  '1.7976931348623157e308',
  '5e-324',
  '1e-400',
  '9007199254740991',
  '9007199254740992',
  '-9007199254740993',
  '1e16',
  '9007199254740993.0',
  '123456789012345678901234567890',
  '0.1000000000000000055511151231257827',
  '1E+2',
  '01',
  '+1',
  '.5',
  '1.',
  '1e',
  '0x10',
  '1_000',
  'NaN',
  'Infinity',
  '-',
]

const oddLiterals = [
  'true',
  'false',
  'null',
  'undefined',
  'True',
  'nul',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\ud83d\\ude00"',
  '"\\u0000"',
  '"\\u005f_proto__"',
  '"\\x41"',
  '"\t"',
  '"unfinished',
  "'single'",
  '""',
  '{}',
  '[]',
  '[,]',
  '[1,]',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{a:1}',
  '{1:1}',
  '// note\n1',
  '/* note */1',
  '',
]

/** Names of members, some of them equal in different encodings. */
const names = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      '"a"',
      '"b"',
      '"\\u0061"',
      '"10"',
      '"9"',
      '""',
      '"\\ud83d\\ude00"',
      '"\ufeffa"',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '"__proto__"',
      '"\\u005f_proto__"',
      '"constructor"',
      '"\\u0000"',
      '"\\ud800"',
      '"toJSON"',
    ),
  },
  { weight: 1, arbitrary: oddText.map((text) => JSON.stringify(text)) },
)

const blank = fc.constantFrom('', '', '', ' ', '\n', '\t\r\n ', '\u00a0', '\ufeff')

/** A value with up to 300 levels of nesting. */
const deep = fc
  .tuple(
    fc.constantFrom<[string, string]>(['[', ']'], ['{"a":', '}'], ['[{"a":', '}]']),
    fc.integer({ min: 1, max: 300 }),
  )
  .map(([[open, close], levels]) => `${open.repeat(levels)}1${close.repeat(levels)}`)

/** Unterminated nesting far beyond any limit. */
const bottomless = fc
  .tuple(fc.constantFrom('[', '{"a":', '[['), fc.integer({ min: 1_000, max: 30_000 }))
  .map(([open, levels]) => open.repeat(levels))

const long = fc
  .tuple(
    fc.constantFrom('x', 'é', '\\u0041', '\u{1f600}'),
    fc.constantFrom(1_000, 65_536, 262_130, 1_048_576),
  )
  .map(([unit, bytes]) => `"${unit.repeat(bytes / Buffer.byteLength(unit))}"`)

const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 6, arbitrary: oddText.map((text) => JSON.stringify(text)) },
    {
      weight: 3,
      arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
    },
    { weight: 3, arbitrary: fc.integer().map(String) },
    { weight: 1, arbitrary: fc.constantFrom(...oddNumbers) },
    { weight: 1, arbitrary: fc.constantFrom(...oddLiterals) },
    { weight: 6, arbitrary: tie('object') },
    { weight: 4, arbitrary: tie('list') },
  ),
  list: fc
    .array(fc.tuple(blank, tie('value')), { maxLength: 4 })
    .map((items) => `[${items.map((item) => item.join('')).join(',')}]`),
  object: fc
    .array(fc.tuple(names, blank, tie('value')), { maxLength: 4 })
    .map((members) => `{${members.map(([name, space, text]) => `${name}${space}:${text}`).join(',')}}`),
}))

/** The text of a value, which is usually valid. */
export const jsonText: fc.Arbitrary<string> = fc.oneof(
  { weight: 30, arbitrary: value },
  { weight: 3, arbitrary: deep },
  { weight: 1, arbitrary: bottomless },
  { weight: 2, arbitrary: long },
)

/** A change of one member of a body. `text` replaces the member, or is added next to it. */
export interface Spoiling {
  how: 'replace' | 'remove' | 'twice' | 'add'
  /** Which member, as a fraction from 0 to below 1 of all. */
  at: number
  text: string
}

/** Random changes of any body. */
export const spoilings: fc.Arbitrary<Spoiling> = fc.record({
  how: fc.constantFrom('replace', 'replace', 'replace', 'remove', 'twice', 'add'),
  at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  text: jsonText,
})

/** The text of `body` with one member changed. */
export function spoiled(body: unknown, { how, at, text }: Spoiling): string {
  const members = membersOf(body)
  const target = members[Math.floor(at * members.length)]
  if (target === undefined) return text
  return written(body, target, (name, member) => {
    const original = name === undefined ? member : `${name}:${member}`
    const changed = name === undefined ? text : `${name}:${text}`
    switch (how) {
      case 'replace':
        return changed
      case 'remove':
        return undefined
      case 'twice':
        return `${original},${changed}`
      case 'add':
        return name === undefined ? `${original},${text}` : `${original},"more":${text}`
    }
  })
}

/** A member of an object or a list within a body. */
interface Member {
  within: object
  name: string
}

function membersOf(body: unknown): Member[] {
  if (typeof body !== 'object' || body === null) return []
  return Object.entries(body).flatMap(([name, member]) => [{ within: body, name }, ...membersOf(member)])
}

function written(
  body: unknown,
  target: Member,
  write: (name: string | undefined, member: string) => string | undefined,
): string {
  if (typeof body !== 'object' || body === null) return JSON.stringify(body)
  const isList = Array.isArray(body)
  const members = Object.entries(body).map(([name, member]) => {
    const shown = isList ? undefined : JSON.stringify(name)
    const text = written(member, target, write)
    if (target.within === body && target.name === name) return write(shown, text)
    return shown === undefined ? text : `${shown}:${text}`
  })
  const text = members.filter((member) => member !== undefined).join(',')
  return isList ? `[${text}]` : `{${text}}`
}
