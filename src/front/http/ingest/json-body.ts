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
import { type BodyMemory, GatheredBytes } from '../../../base/gathered-bytes.js'
import { isUtf16 } from '../../../strand/json.js'
import { isJsonSpace, spaceEnd, stringEnd } from '../../../strand/json-scanner.js'
import type { BodyPart } from '../body-queue.js'
import type { BodySource, BrokenBody } from './array-body.js'

/**
 * What a JSON body is by how it begins: an array, values on lines, one object, or another value. `endless` begins with a
 * line that is longer than any may be.
 */
export type JsonShape = 'array' | 'lines' | 'endless' | 'object' | 'other'

/** A JSON body whose beginning is looked at before it is read. */
export class JsonBody implements BodySource {
  readonly #body: BodySource
  /** What was looked at. */
  readonly #head: GatheredBytes
  readonly #seen: BodyPart[] = []
  /** Where the first value begins, and the first line feed behind that; -1 where neither was found yet. */
  #first = -1
  #lineFeed = -1
  /** Bytes that were searched. */
  #searched = 0

  constructor(body: BodySource, memory: BodyMemory) {
    this.#body = body
    this.#head = new GatheredBytes({ memory })
  }

  get broken(): BodySource['broken'] {
    return this.#body.broken
  }

  /** Whether what was looked at is UTF-16. */
  get isUtf16(): boolean {
    return isUtf16(this.#head.bytes)
  }

  async next(): Promise<BodyPart> {
    const part = this.#seen.shift()
    if (part !== undefined) return part
    this.#head.take()
    return this.#body.next()
  }

  /** Reads as far as it takes to know. @param lineBytesMax the most that is looked at */
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
    if (this.#first === -1) this.#first = pastSpace(head, this.#searched)
    const first = this.#first
    if (head[first] === BRACKET_OPEN) return 'array'
    if (first !== -1) {
      if (this.#lineFeed === -1) this.#lineFeed = head.indexOf(LINE_FEED, Math.max(first, this.#searched))
      const lineFeed = this.#lineFeed
      const next = lineFeed === -1 ? -1 : pastSpace(head, Math.max(lineFeed, this.#searched))
      if (next !== -1) return goesOn(head, { first, lineFeed, next }) ? this.#shapeOfOne(head) : 'lines'
    }
    this.#searched = head.length
    return undefined
  }

  #shapeOfOne(head: Buffer): 'object' | 'other' {
    return head[this.#first] === BRACE_OPEN ? 'object' : 'other'
  }
}

/** Where the white space ends that begins at `from`; -1 if it does not. */
function pastSpace(bytes: Buffer, from: number): number {
  const at = spaceEnd(bytes, from)
  return at < bytes.length ? at : -1
}

const opening = new Set<number | undefined>([BRACE_OPEN, BRACKET_OPEN, COMMA, COLON])
const closing = new Set<number | undefined>([BRACE_CLOSE, BRACKET_CLOSE, COMMA, COLON])

/**
 * Whether the value that begins at `first` goes on behind its first line feed, at `next`: outside a string, and behind or
 * before a comma, a colon or a bracket. Otherwise what follows is a value of its own, or neither line is JSON.
 */
function goesOn(
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
