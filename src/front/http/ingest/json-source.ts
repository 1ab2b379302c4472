import {
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  COLON,
  COMMA,
  LINE_FEED,
  QUOTE,
} from '../../../base/ascii.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { type BodyMemory, GatheredBytes } from '../../../base/gathered-bytes.js'
import { limits } from '../../../base/limits/limits.js'
import { isUtf16, utf16Given } from '../../../strand/json.js'
import { isJsonSpace, spaceEnd, stringEnd } from '../../../strand/json-scanner.js'
import type { Answer } from '../../routes/route.js'
import { tooLarge } from '../body.js'
import type { BodyPart, BodyQueue } from '../body-queue.js'
import { bodyOf, readArray, RecordedBody, type BodySource, type BrokenBody } from './array-body.js'
import {
  answerSummary,
  gatheredBody,
  type IngestStream,
  type LineSource,
  type SourceContent,
} from './source.js'
import { tooLongLine } from './stream.js'
import type { IngestTotals } from './summary.js'

/** JSON: a record, lines, or an array whose elements become lines. */
export class JsonSource implements LineSource {
  /** The required shape of CloudEvents. */
  readonly #required: 'one' | 'array' | undefined
  #isEndless = false

  constructor(required?: 'one' | 'array') {
    this.#required = required
  }

  async read(queue: BodyQueue, stream: IngestStream): Promise<SourceContent> {
    const { target, memory, lineBytesMax } = stream
    const { onError } = stream.options
    const json = new JsonBody(queue, memory)
    const shape = await json.shape(lineBytesMax)
    if (typeof shape !== 'string') return shape
    this.#isEndless = shape === 'endless'
    if (this.#isEndless && onError === 'reject_all') return { refusal: tooLongLine(lineBytesMax) }
    if (this.#isEndless || shape === 'lines') return { lines: json }
    const isOne = shape !== 'array'
    const isOfAgent = target.agent !== undefined
    if (isOne && isOfAgent && this.#required !== 'array') return { record: json }
    const bytesMax = onError === 'reject_all' ? limits.ingestAtomicBytesMax : limits.ingestArrayBytesMax
    const body = gatheredBody(json, stream, bytesMax)
    const malformed = json.isUtf16 ? utf16Given : this.#shapeRefusal(shape, isOfAgent)
    if (malformed !== undefined) return { malformed, body }
    const read = await readArray(body, { ...stream, isOne, bytesMax })
    if ('malformed' in read) return { ...read, body }
    if (!('lines' in read)) return read
    if (body instanceof RecordedBody) body.drop()
    return { lines: bodyOf([{ bytes: read.lines }].values(), queue) }
  }

  /** A first line that is too long is answered 413 if it is the only line. */
  answer(totals: IngestTotals, stream: IngestStream): Answer | Refusal {
    const answer = answerSummary(totals, stream)
    const isOnlyLine = 'code' in answer && answer.code === 'ingest_rejected' && totals.rejected === 1
    const isTooLarge = this.#isEndless && isOnlyLine && stream.options.onError !== 'keep'
    return isTooLarge ? tooLarge(stream.lineBytesMax) : answer
  }

  /** An error if the route does not accept JSON of this shape. */
  #shapeRefusal(found: JsonShape, isOfAgent: boolean): Refusal | undefined {
    const required = this.#required
    const isAccepted =
      found === 'array' ? required !== 'one' : found === 'object' && required !== 'array' && !isOfAgent
    if (isAccepted) return undefined
    return refuse('validation_failed', required === undefined ? expectedLines : expectedEvents)
  }
}

const expectedLines = 'Expected JSON objects {agent, data, type?}: one, an array, or one per line'
const expectedEvents = 'Expected a JSON array for a batch of CloudEvents, and an object for one'

/**
 * The shape of a JSON body by its beginning: an array, values on lines, one object, or another value.
 * `endless`: its first line exceeds the maximum length.
 */
export type JsonShape = 'array' | 'lines' | 'endless' | 'object' | 'other'

/** A JSON body whose beginning is inspected before it is read. */
export class JsonBody implements BodySource {
  readonly #body: BodySource
  /** The inspected bytes. */
  readonly #head: GatheredBytes
  readonly #seen: BodyPart[] = []
  /** Offsets of the first value, and of the first line feed after its start; -1 until found. */
  #first = -1
  #lineFeed = -1
  /** Number of searched bytes. */
  #searched = 0

  constructor(body: BodySource, memory: BodyMemory) {
    this.#body = body
    this.#head = new GatheredBytes({ memory })
  }

  get interruption(): BodySource['interruption'] {
    return this.#body.interruption
  }

  /** Whether the inspected bytes are UTF-16. */
  get isUtf16(): boolean {
    return isUtf16(this.#head.bytes)
  }

  async next(): Promise<BodyPart> {
    const part = this.#seen.shift()
    if (part !== undefined) return part
    this.#head.take()
    return this.#body.next()
  }

  /** Reads until the shape is known. @param lineBytesMax the most bytes to inspect */
  async shape(lineBytesMax: number): Promise<JsonShape | BrokenBody> {
    for (;;) {
      const part = await this.#body.next()
      if ('gone' in part || 'refusal' in part) return part
      if ('bytes' in part) this.#head.add(part.bytes)
      const head = this.#head.bytes
      const isOver = head.length > lineBytesMax
      const found = this.#search(head.subarray(0, lineBytesMax)) ?? (isOver ? 'endless' : undefined)
      const shape = found ?? ('ended' in part ? this.#shapeOfOne(head) : undefined)
      if (shape === undefined) continue
      this.#seen.push({ bytes: head })
      if ('ended' in part) this.#seen.push(part)
      return shape
    }
  }

  #search(head: Buffer): JsonShape | undefined {
    if (this.#first === -1) this.#first = skipSpace(head, this.#searched)
    const first = this.#first
    if (head[first] === BRACKET_OPEN) return 'array'
    if (first !== -1) {
      if (this.#lineFeed === -1) this.#lineFeed = head.indexOf(LINE_FEED, Math.max(first, this.#searched))
      const lineFeed = this.#lineFeed
      const next = lineFeed === -1 ? -1 : skipSpace(head, Math.max(lineFeed, this.#searched))
      if (next !== -1) return isContinued(head, { first, lineFeed, next }) ? this.#shapeOfOne(head) : 'lines'
    }
    this.#searched = head.length
    return undefined
  }

  #shapeOfOne(head: Buffer): 'object' | 'other' {
    return head[this.#first] === BRACE_OPEN ? 'object' : 'other'
  }
}

/** The end of the white space at `from`; -1 if it does not end. */
function skipSpace(bytes: Buffer, from: number): number {
  const at = spaceEnd(bytes, from)
  return at < bytes.length ? at : -1
}

const opening = new Set<number | undefined>([BRACE_OPEN, BRACKET_OPEN, COMMA, COLON])
const closing = new Set<number | undefined>([BRACE_CLOSE, BRACKET_CLOSE, COMMA, COLON])

/**
 * Whether the value at `first` continues after its first line feed, at `next`: outside a string, and after or
 * before a comma, a colon or a bracket. Otherwise the next line is a separate value, or neither line is JSON.
 */
function isContinued(
  head: Buffer,
  { first, lineFeed, next }: { first: number; lineFeed: number; next: number },
): boolean {
  let at = first
  while (at < lineFeed) at = head[at] === QUOTE ? stringEnd(head, at, lineFeed) : at + 1
  if (at > lineFeed) return false
  let last = lineFeed - 1
  while (isJsonSpace(head[last])) last--
  return opening.has(head[last]) || closing.has(head[next])
}
