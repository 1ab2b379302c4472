import { BRACE_OPEN, BRACKET_OPEN, COLON, COMMA, LINE_FEED, QUOTE, SPACE } from '../../../base/ascii.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { lineEnd } from '../../../base/line-splitter.js'
import { isUtf16, readJson, utf16Given } from '../../../strand/json.js'
import { isJsonSpace, type Span, stringText, valueEnd } from '../../../strand/json-scanner.js'
import type { IngestSource } from '../../routes/route.js'
import type { FrontSlices } from '../front-turn.js'
import { bodyOf, readWhole, RecordedBody, type SourcePart } from './array-body.js'
import { ArrayLines } from './array-lines.js'
import { answerSummary, gatheredBody, type LineSource } from './source.js'

type Split = Omit<Extract<IngestSource, { kind: 'split' }>, 'kind'>

/**
 * A JSON object. The members of an array in it become lines: each member alone, or each in the place of the
 * array with the rest of the object around it. The whole object is read before the first line, and the part
 * around the array is checked as strictly as a record: nothing of an incomplete object is written. Errors
 * within a member are found when its line is parsed.
 */
export function splitSource(split: Split): LineSource {
  return {
    async read(queue, stream) {
      const { slices, options } = stream
      const bytesMax = limits.ingestArrayBytesMax
      const body = gatheredBody(queue, stream, bytesMax)
      const whole = await readWhole(body, { ...stream, bytesMax })
      if (!('bytes' in whole)) return whole
      const splitting = { ...split, largeAsText: options.integers === 'text' }
      const found = await slices.runSteps(splitObject(whole.bytes, splitting))
      if ('code' in found) return found.code === 'too_large' ? { refusal: found } : { malformed: found, body }
      if (body instanceof RecordedBody) body.drop()
      return { lines: bodyOf(partsOf(found, slices), queue) }
    },
    answer: answerSummary,
  }
}

/** How to split an object. `largeAsText`: integers beyond ±(2^53-1) are stored as strings. */
type Splitting = Split & { largeAsText: boolean }

/** Bytes that are processed in one slice of the front thread. */
const SLICE_BYTES = 65_536

async function* partsOf(found: SplitObject, slices: FrontSlices): AsyncGenerator<SourcePart, undefined> {
  const lines = linesOf(found)
  for (;;) {
    const bytes = await slices.run(() => lines.next().value)
    if (bytes === undefined) return undefined
    yield { bytes }
  }
}

/**
 * The members of an array, one per line, and the text before and after each of them; a line feed ends each
 * line.
 */
interface SplitObject {
  prefix: Buffer
  members: Buffer
  suffix: Buffer
}

type Steps<Result> = Generator<undefined, Result, undefined>

const noBytes = Buffer.alloc(0)

/** Converts the members to lines, in the memory of the text. */
function* splitObject(text: Buffer, splitting: Splitting): Steps<SplitObject | Refusal> {
  if (isUtf16(text)) return utf16Given
  const { path, keepsRest } = splitting
  const array = yield* findArray(text, splitting)
  if ('code' in array) return array
  const fault = restFault(text, array, splitting)
  if (fault !== undefined) return fault
  const members = text.subarray(array.from, array.to)
  const lines = new ArrayLines()
  for (let at = 0; at < members.length; at += SLICE_BYTES) {
    yield
    const piece = lines.push(members.subarray(at, at + SLICE_BYTES))
    piece.copy(members, at)
  }
  if (!lines.isWhole) return refuse('validation_failed', `Expected one complete JSON array at ${path}`)
  const count = lines.elements
  if (!keepsRest || count === 0) return { prefix: noBytes, members, suffix: noBytes }
  const prefix = onOneLine(text.subarray(0, array.from))
  const suffix = onOneLine(text.subarray(array.to))
  if (members.length + count * (prefix.length + suffix.length) <= limits.ingestArrayBytesMax) {
    return { prefix, members, suffix }
  }
  const detail = `Expected at most ${limits.ingestArrayBytesMax} bytes of records with the rest of the object in each`
  return refuse('too_large', `${detail}: split_rest=drop leaves it out`)
}

/** Replaces line breaks between tokens by spaces; strings contain none. */
function onOneLine(text: Buffer): Buffer {
  return Buffer.from(text.map((byte) => (byte === LINE_FEED ? SPACE : byte)))
}

function* linesOf({ prefix, members, suffix }: SplitObject): Generator<Buffer, undefined> {
  if (prefix.length === 0) {
    yield members
    return
  }
  let parts: Buffer[] = []
  let bytes = 0
  for (let from = 0; from < members.length;) {
    const end = lineEnd(members, from)
    const member = members.subarray(from, end)
    parts.push(prefix, member, suffix, lineFeed)
    bytes += prefix.length + member.length + suffix.length
    from = end + 1
    if (bytes < SLICE_BYTES) continue
    yield Buffer.concat(parts)
    parts = []
    bytes = 0
  }
  yield Buffer.concat(parts)
}

const lineFeed = Buffer.from([LINE_FEED])

/**
 * Finds the array at a path of the object at the start of a text. The text before it has a maximum length.
 */
function* findArray(text: Buffer, { path, steps }: Splitting): Steps<Span | Refusal> {
  const noArray = refuse('validation_failed', `Expected one JSON object with an array at ${path}`)
  let at = yield* skipSpace(text, 0)
  for (const step of steps) {
    const opening = text[at]
    if (opening !== BRACE_OPEN && opening !== BRACKET_OPEN) return noArray
    at = yield* skipSpace(text, at + 1)
    for (let index = 0; ; index++) {
      let key: string | undefined = String(index)
      if (opening === BRACE_OPEN) {
        const end = yield* endOfValue(text, at)
        if (end > limits.ingestSplitRestBytesMax) return restTooLarge(path)
        key = text[at] === QUOTE ? stringText(text, at, end) : undefined
        const colon = yield* skipSpace(text, end)
        if (key === undefined || text[colon] !== COLON) return noArray
        at = yield* skipSpace(text, colon + 1)
      }
      if (key === step) break
      at = yield* skipSpace(text, yield* endOfValue(text, at))
      if (text[at] !== COMMA) return noArray
      if (at > limits.ingestSplitRestBytesMax) return restTooLarge(path)
      at = yield* skipSpace(text, at + 1)
    }
  }
  return text[at] === BRACKET_OPEN ? { from: at, to: yield* endOfValue(text, at) } : noArray
}

/** Returns an error if the object around the array is invalid. */
function restFault(text: Buffer, { from, to }: Span, { path, largeAsText }: Splitting): Refusal | undefined {
  if (from + text.length - to > limits.ingestSplitRestBytesMax) return restTooLarge(path)
  if (to === text.length) {
    return refuse(
      'validation_failed',
      `Expected one complete JSON object with an array at ${path}, but it ends within the array`,
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

/** The end of the value at `from`, or of the text. */
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

/** The end of the white space, if any, at `from`. */
function* skipSpace(text: Buffer, from: number): Steps<number> {
  let at = from
  for (; isJsonSpace(text[at]); at++) if ((at + 1) % SLICE_BYTES === 0) yield
  return at
}
