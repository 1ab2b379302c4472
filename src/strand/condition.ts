import { assert } from '../base/assert.js'
import { asBuffer } from '../base/bytes.js'
import { storedSteps } from './field-path.js'
import { canonicalJson } from './json.js'
import { Fields } from './json-fields.js'
import type { Span } from './json-scanner.js'
import { type Condition, isText, type Operator } from './operators.js'
import { folded } from './text-match.js'

/** The cost of comparing: bytes of bodies that were searched plus bytes that were compared. */
export interface Effort {
  bytes: number
}

/** The least cost of one comparison, in bytes. */
const COMPARISON_BYTES = 64

/** Whether all conditions hold for a canonical JSON body. A missing field only matches `exists: false`. */
export function matchesAll(
  body: Uint8Array,
  conditions: readonly Condition[],
  effort: Effort = { bytes: 0 },
): boolean {
  return preparedOf(conditions, () => [conditions]).matches(body, effort)
}

/**
 * As `matchesAll`, but returns the index of the first condition that fails if that condition compares a
 * number with text, which can never match.
 */
export function compareAll(
  body: Uint8Array,
  conditions: readonly Condition[],
  effort: Effort,
): boolean | number {
  return conditions.length === 0 || preparedOf(conditions, () => [conditions]).compare(body, effort)
}

/**
 * Whether all conditions of at least one choice hold for a canonical JSON body.
 * @param open which choices count; all if absent
 */
export function matchesAny(
  body: Uint8Array,
  choices: readonly { conditions: readonly Condition[] }[],
  { effort = { bytes: 0 }, open }: { effort?: Effort | undefined; open?: readonly boolean[] } = {},
): boolean {
  const lists = preparedOf(choices, () => choices.map(({ conditions }) => conditions))
  return lists.matches(body, effort, open)
}

type ComparedType = 'number' | 'string' | undefined

/** The type of a condition's value if it is a number or text, or a list of only one of them. */
export function comparedType({ op, value }: Condition): ComparedType {
  const [first, ...others]: unknown[] = op === 'in' && Array.isArray(value) ? value : [value]
  const type = typeof first
  if (type !== 'number' && type !== 'string') return undefined
  return others.every((one) => typeof one === type) ? type : undefined
}

/** Prepared conditions by the list that they were prepared from. */
const prepared = new WeakMap<object, Prepared>()

function preparedOf(source: object, lists: () => readonly (readonly Condition[])[]): Prepared {
  const known = prepared.get(source)
  if (known !== undefined) return known
  const created = new Prepared(lists())
  prepared.set(source, created)
  return created
}

interface LocatedBody {
  body: Buffer
  spans: readonly (Span | undefined)[]
  /** Decoded strings, by the index of their field. */
  strings: Map<number, string>
  /** The same without case. */
  folded: Map<number, string>
  effort: Effort
}

interface PreparedCondition {
  /** The index of its field in `Fields`. */
  field: number
  holds(found: LocatedBody, span: Span | undefined): boolean
}

/** Lists of conditions, prepared to check many bodies. */
class Prepared {
  readonly #fields = new Fields()
  readonly #lists: readonly (readonly PreparedCondition[])[]
  readonly #conditions: readonly (readonly Condition[])[]
  /** The `comparedType` of each condition of the first list. */
  #types: readonly ComparedType[] | undefined

  constructor(lists: readonly (readonly Condition[])[]) {
    this.#conditions = lists
    const numbers = new Map<string, number>()
    const numberOf = (field: string): number => {
      const number = numbers.get(field) ?? this.#fields.add(storedSteps(field))
      numbers.set(field, number)
      return number
    }
    const literals = new Literals()
    this.#lists = lists.map((list) =>
      list.map((condition) => prepareCondition(condition, { field: numberOf(condition.field), literals })),
    )
  }

  /** @param open which lists count; all if absent */
  matches(body: Uint8Array, effort: Effort, open?: readonly boolean[]): boolean {
    const isOpen = (at: number): boolean => open === undefined || open[at] === true
    if (this.#lists.some((list, at) => list.length === 0 && isOpen(at))) return true
    if (!this.#lists.some((_list, at) => isOpen(at))) return false
    const found = this.#find(body, effort)
    return this.#lists.some((list, at) => isOpen(at) && firstFailure(list, found) === -1)
  }

  /** See `compareAll`; only the first list counts. */
  compare(body: Uint8Array, effort: Effort): boolean | number {
    const [list = []] = this.#lists
    const found = this.#find(body, effort)
    const failed = firstFailure(list, found)
    if (failed === -1) return true
    // Computed lazily: row policies have long lists and never need the types.
    this.#types ??= (this.#conditions[0] ?? []).map(comparedType)
    const span = found.spans[list[failed]?.field ?? -1]
    return span !== undefined && isMixed(this.#types[failed], kindAt(found.body, span.from)) ? failed : false
  }

  #find(body: Uint8Array, effort: Effort): LocatedBody {
    const buffer = asBuffer(body)
    effort.bytes += buffer.length
    return { body: buffer, spans: this.#fields.find(buffer), strings: new Map(), folded: new Map(), effort }
  }
}

/** The index of the first condition that fails; -1 if all hold. */
function firstFailure(list: readonly PreparedCondition[], found: LocatedBody): number {
  return list.findIndex(({ field, holds }) => {
    found.effort.bytes += COMPARISON_BYTES
    return !holds(found, found.spans[field])
  })
}

/** Whether a number is compared with text, or text with a number. */
function isMixed(compared: ComparedType, found: string): boolean {
  return (compared === 'number' && found === 'string') || (compared === 'string' && found === 'number')
}

/** The literals of conditions, encoded once each: thousands of conditions can refer to the same claim. */
class Literals {
  readonly #texts = new Map<unknown, Buffer>()
  readonly #characters = new Map<unknown, string>()
  readonly #among = new Map<readonly unknown[], Compare>()

  /** The canonical text of a literal, UTF-8. */
  text(value: unknown): Buffer {
    return getOrCreate(this.#texts, value, () => Buffer.from(canonicalJson(value)))
  }

  /** The canonical text as latin1: each byte is one character. */
  characters(value: unknown): string {
    return getOrCreate(this.#characters, value, () => this.text(value).toString('latin1'))
  }

  among(values: readonly unknown[]): Compare {
    return getOrCreate(this.#among, values, () => isAmong(values.map((value) => this.characters(value))))
  }
}

function getOrCreate<K, V>(known: Map<K, V>, key: K, create: () => V): V {
  const before = known.get(key)
  if (before !== undefined) return before
  const created = create()
  known.set(key, created)
  return created
}

interface Preparing {
  field: number
  literals: Literals
}

function prepareCondition(condition: Condition, preparing: Preparing): PreparedCondition {
  const { op, value, ci } = condition
  const { field } = preparing
  if (op === 'contains' || op === 'starts_with' || ci === true) {
    const holds = textComparisonOf(condition, field)
    return { field, holds: (found, span) => span !== undefined && holds(found, span) }
  }
  if (op === 'exists') return { field, holds: (_found, span) => (span !== undefined) === (value !== false) }
  const holds = comparisonOf(op, value, preparing)
  return { field, holds: (found, span) => span !== undefined && holds(found, span) }
}

type Compare = (found: LocatedBody, span: Span) => boolean

/** Operators only compare values of one JSON type: 1 is neither less than, greater than nor equal to "2". */
function comparisonOf(
  op: Exclude<Operator, 'exists' | 'contains' | 'starts_with'>,
  value: unknown,
  { field, literals }: Preparing,
): Compare {
  if (op === 'in') return Array.isArray(value) ? literals.among(value) : () => false
  if (op === 'eq') return isSame(literals.text(value))
  if (op === 'ne') {
    const text = literals.text(value)
    const same = isSame(text)
    return (found, span) => kindAt(found.body, span.from) === kindAt(text, 0) && !same(found, span)
  }
  if (typeof value === 'number') {
    return ({ body }, { from, to }) =>
      kindAt(body, from) === 'number' && inOrder(Number(body.toString('latin1', from, to)), op, value)
  }
  if (typeof value !== 'string') return () => false
  return (found, span) => {
    if (kindAt(found.body, span.from) !== 'string') return false
    const string = stringAt(found, span, field)
    found.effort.bytes += Math.min(string.length, value.length)
    return inOrder(string, op, value)
  }
}

/** How much more a byte costs to fold than to read. */
const FOLD_COST = 8

/** Comparisons of texts by their parts or without case. `contains` also finds an item of a list. */
function textComparisonOf({ op, value, ci = false }: Condition, field: number): Compare {
  const fold = ci ? folded : (text: string) => text
  const isWanted = textTest(op, value, fold)
  const wanted = isText(value) ? fold(value) : value
  return (found, { from, to }) => {
    const kind = kindAt(found.body, from)
    if (kind === 'string') return isWanted(textAt(found, { from, to }, { field, ci }))
    if (kind !== 'array' || op !== 'contains') return false
    found.effort.bytes += (to - from) * (ci ? FOLD_COST : 1)
    const items: unknown = JSON.parse(found.body.toString('utf8', from, to))
    return Array.isArray(items) && items.some((item) => (isText(item) ? fold(item) : item) === wanted)
  }
}

function textTest(op: Operator, value: unknown, fold: (text: string) => string): (text: string) => boolean {
  if (op === 'in') {
    const among = new Set(Array.isArray(value) ? value.filter(isText).map(fold) : [])
    return (text) => among.has(text)
  }
  if (!isText(value)) return () => false
  const wanted = fold(value)
  if (op === 'contains') return (text) => text.includes(wanted)
  if (op === 'starts_with') return (text) => text.startsWith(wanted)
  return (text) => (text === wanted) === (op === 'eq')
}

function textAt(found: LocatedBody, span: Span, { field, ci }: { field: number; ci: boolean }): string {
  const text = stringAt(found, span, field)
  found.effort.bytes += text.length
  if (!ci) return text
  return getOrCreate(found.folded, field, () => {
    found.effort.bytes += text.length * FOLD_COST
    return folded(text)
  })
}

/** Equal values have equal canonical texts. */
function isSame(text: Buffer): Compare {
  return ({ body, effort }, { from, to }) => {
    if (to - from !== text.length) return false
    effort.bytes += text.length
    return body.compare(text, 0, text.length, from, to) === 0
  }
}

/** @param list canonical texts, each byte as one character */
function isAmong(list: readonly string[]): Compare {
  const texts = new Set(list)
  let longest = 0
  for (const text of texts) longest = Math.max(longest, text.length)
  return ({ body, effort }, { from, to }) => {
    if (to - from > longest) return false
    effort.bytes += to - from
    return texts.has(body.toString('latin1', from, to))
  }
}

/** A decoded string, cached for all conditions that compare its order. */
function stringAt({ body, strings, effort }: LocatedBody, { from, to }: Span, field: number): string {
  const known = strings.get(field)
  if (known !== undefined) return known
  effort.bytes += to - from
  const read: unknown = JSON.parse(body.toString('utf8', from, to))
  assert(typeof read === 'string', 'a JSON value that begins with a quote is a string')
  strings.set(field, read)
  return read
}

function inOrder<T extends number | string>(found: T, op: 'lt' | 'lte' | 'gt' | 'gte', value: T): boolean {
  if (op === 'lt') return found < value
  if (op === 'lte') return found <= value
  if (op === 'gt') return found > value
  return found >= value
}

/** The JSON type of the value that begins at `at`. */
function kindAt(text: Buffer, at: number): string {
  switch (text[at]) {
    case 0x22:
      return 'string'
    case 0x5b:
      return 'array'
    case 0x7b:
      return 'object'
    case 0x6e:
      return 'null'
    case 0x74:
    case 0x66:
      return 'boolean'
    default:
      return 'number'
  }
}
