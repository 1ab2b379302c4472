import { BRACE_OPEN, BRACKET_OPEN, COLON, COMMA, LINE_FEED, QUOTE, SPACE } from '../../../base/ascii.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import type { BodyMemory } from '../../../base/gathered-bytes.js'
import { limits } from '../../../base/limits/limits.js'
import { lineEnd } from '../../../base/line-splitter.js'
import { isUtf16, readJson, utf16Given } from '../../../strand/json.js'
import { isJsonSpace, type Span, stringText, valueEnd } from '../../../strand/json-scanner.js'
import type { IngestRequest } from '../../routes/route.js'
import type { BodyPart } from '../body-queue.js'
import type { FrontSlices } from '../front-turn.js'
import { type BodySource, type BrokenBody, readWhole } from './array-body.js'
import { ArrayLines } from './array-lines.js'

/** How an object is split. `largeAsText`: integers beyond ±(2^53-1) are kept as strings. */
type Splitting = NonNullable<IngestRequest['split']> & { largeAsText: boolean }

/** What a body is split with. */
interface SplitParts {
  splitting: Splitting
  slices: FrontSlices
  memory: BodyMemory
}

/** Bytes that one slice of the front thread goes through. */
const SLICE_BYTES = 65_536

/**
 * The members of an array in one JSON object, as lines: each alone, or each in the place of the array, with the rest of
 * the object around it. All of it is read before the first line, and what is around the array is checked as strictly as
 * a record: of an object that is not whole, nothing is written. Faults within a member are found when its line is read.
 */
export class SplitBody implements BodySource {
  readonly #body: BodySource
  readonly #parts: SplitParts
  #lines: Iterator<Buffer, undefined> | undefined

  constructor(body: BodySource, parts: SplitParts) {
    this.#body = body
    this.#parts = parts
  }

  get broken(): BodySource['broken'] {
    return this.#body.broken
  }

  /**
   * Reads the whole object. Its bytes are counted until the upload is answered.
   * @returns undefined, and then its lines can be read; or why they cannot
   */
  async read(): Promise<{ malformed: Refusal } | BrokenBody | undefined> {
    const { splitting, slices, memory } = this.#parts
    const whole = await readWhole(this.#body, { memory, bytesMax: limits.ingestArrayBytesMax })
    if (!('bytes' in whole)) return whole
    const found = await slices.runSteps(divide(whole.bytes, splitting))
    if ('code' in found) return found.code === 'too_large' ? { refusal: found } : { malformed: found }
    this.#lines = linesOf(found)
    return undefined
  }

  async next(): Promise<BodyPart> {
    if (this.broken !== undefined) return this.broken
    const value = await this.#parts.slices.run(() => this.#lines?.next().value)
    return value === undefined ? { ended: true } : { bytes: value }
  }
}

/** The members of an array, a line each, and what stands before and behind each of them; a line feed at the end. */
interface Divided {
  before: Buffer
  members: Buffer
  behind: Buffer
}

/** Work in steps of one slice each. */
type Steps<Result> = Generator<undefined, Result, undefined>

const noBytes = Buffer.alloc(0)

/** Makes lines of the members, in the memory of the text. */
function* divide(text: Buffer, splitting: Splitting): Steps<Divided | Refusal> {
  if (isUtf16(text)) return utf16Given
  const { path, keepsRest } = splitting
  const array = yield* find(text, splitting)
  if ('code' in array) return array
  const fault = restFault(text, array, splitting)
  if (fault !== undefined) return fault
  const members = text.subarray(array.from, array.to)
  const lines = new ArrayLines()
  for (let at = 0; at < members.length; at += SLICE_BYTES) {
    yield
    const some = lines.push(members.subarray(at, at + SLICE_BYTES))
    some.copy(members, at)
  }
  if (!lines.isWhole) return refuse('validation_failed', `Expected one whole JSON array at ${path}`)
  const count = lines.elements
  if (!keepsRest || count === 0) return { before: noBytes, members, behind: noBytes }
  const before = onOneLine(text.subarray(0, array.from))
  const behind = onOneLine(text.subarray(array.to))
  if (members.length + count * (before.length + behind.length) <= limits.ingestArrayBytesMax) {
    return { before, members, behind }
  }
  const detail = `Expected at most ${limits.ingestArrayBytesMax} bytes of records with the rest of the object in each`
  return refuse('too_large', `${detail}: split_rest=drop leaves it out`)
}

/** Line breaks between tokens become spaces; within strings there are none. */
function onOneLine(text: Buffer): Buffer {
  return Buffer.from(text.map((byte) => (byte === LINE_FEED ? SPACE : byte)))
}

function* linesOf({ before, members, behind }: Divided): Generator<Buffer, undefined> {
  if (before.length === 0) {
    yield members
    return
  }
  let parts: Buffer[] = []
  let bytes = 0
  for (let from = 0; from < members.length;) {
    const end = lineEnd(members, from)
    const member = members.subarray(from, end)
    parts.push(before, member, behind, lineFeed)
    bytes += before.length + member.length + behind.length
    from = end + 1
    if (bytes < SLICE_BYTES) continue
    yield Buffer.concat(parts)
    parts = []
    bytes = 0
  }
  yield Buffer.concat(parts)
}

const lineFeed = Buffer.from([LINE_FEED])

/** The array at a path of the object that a text begins with. What is before it must not be long. */
function* find(text: Buffer, { path, steps }: Splitting): Steps<Span | Refusal> {
  const noArray = refuse('validation_failed', `Expected one JSON object with an array at ${path}`)
  let at = yield* pastSpace(text, 0)
  for (const step of steps) {
    const opening = text[at]
    if (opening !== BRACE_OPEN && opening !== BRACKET_OPEN) return noArray
    at = yield* pastSpace(text, at + 1)
    for (let place = 0; ; place++) {
      let key: string | undefined = String(place)
      if (opening === BRACE_OPEN) {
        const end = yield* endOfValue(text, at)
        if (end > limits.ingestSplitRestBytesMax) return restTooLarge(path)
        key = text[at] === QUOTE ? stringText(text, at, end) : undefined
        const colon = yield* pastSpace(text, end)
        if (key === undefined || text[colon] !== COLON) return noArray
        at = yield* pastSpace(text, colon + 1)
      }
      if (key === step) break
      at = yield* pastSpace(text, yield* endOfValue(text, at))
      if (text[at] !== COMMA) return noArray
      if (at > limits.ingestSplitRestBytesMax) return restTooLarge(path)
      at = yield* pastSpace(text, at + 1)
    }
  }
  return text[at] === BRACKET_OPEN ? { from: at, to: yield* endOfValue(text, at) } : noArray
}

/** What is wrong with the object around the array. */
function restFault(text: Buffer, { from, to }: Span, { path, largeAsText }: Splitting): Refusal | undefined {
  if (from + text.length - to > limits.ingestSplitRestBytesMax) return restTooLarge(path)
  if (to === text.length) {
    return refuse(
      'validation_failed',
      `Expected one whole JSON object with an array at ${path}, got a part of one`,
    )
  }
  const rest = Buffer.concat([text.subarray(0, from), Buffer.from('0'), text.subarray(to)])
  const read = readJson(rest, limits.nestingDepthMax, { largeAsText })
  if ('code' in read) return refuse('validation_failed', `${read.detail}, outside of the array at ${path}`)
  const isObject = typeof read.value === 'object' && !Array.isArray(read.value)
  return isObject ? undefined : refuse('validation_failed', 'Expected one JSON object')
}

function restTooLarge(path: string): Refusal {
  const { ingestSplitRestBytesMax } = limits
  return refuse(
    'too_large',
    `Expected at most ${ingestSplitRestBytesMax} bytes outside of the array at ${path}`,
  )
}

/** Where the value that begins at `from` has ended, or the text. */
function* endOfValue(text: Buffer, from: number): Steps<number> {
  const piece = { to: from, depth: 0, inString: 0 }
  for (let at = from; at < text.length; at = piece.to) {
    if (at > from) yield
    piece.to = Math.min(at + SLICE_BYTES, text.length)
    const end = valueEnd(text, at, piece)
    if (end !== -1) return end
  }
  return text.length
}

/** Where white space that may be at `from` has ended. */
function* pastSpace(text: Buffer, from: number): Steps<number> {
  let at = from
  for (; isJsonSpace(text[at]); at++) if ((at + 1) % SLICE_BYTES === 0) yield
  return at
}
