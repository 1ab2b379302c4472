import {
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  COMMA,
  LINE_FEED,
  QUOTE,
  SPACE,
  VERTICAL_TAB,
} from '../../../base/ascii.js'
import { lineEnd } from '../../../base/line-splitter.js'
import { isJsonSpace, stringEnd } from '../../../strand/json-scanner.js'

/**
 * Converts the elements of a JSON array to lines while it arrives, byte by byte and without parsing: errors
 * within an element are found when its line is parsed. A line break between tokens becomes a space. One
 * within a string, where JSON does not allow it, becomes a vertical tab, which JSON does not allow there
 * either.
 */
export class ArrayLines {
  /** Nesting depth: 0 before and after the array, 1 between its elements. */
  #depth = 0
  #state: 'before' | 'within' | 'after' = 'before'
  /** 0 outside strings, 1 inside a string, 2 after the backslash of an escape. */
  #inString = 0
  /** Whether the current element has begun. */
  #begun = false
  #elements = 0
  #broken = false
  readonly #elementsMax: number

  constructor(elementsMax = Infinity) {
    this.#elementsMax = elementsMax
  }

  /** Whether a complete array was read. */
  get isWhole(): boolean {
    return this.#state === 'after' && !this.#broken
  }

  /** Number of complete elements. */
  get elements(): number {
    return this.#elements
  }

  /** Whether the bytes cannot be a JSON array; lines that were already returned stay. */
  get isBroken(): boolean {
    return this.#broken
  }

  /** Converts bytes to the same number of bytes of lines, or fewer if the array is invalid. */
  push(bytes: Uint8Array): Buffer {
    const lines = Buffer.from(bytes)
    // Line breaks between tokens become spaces below.
    for (let at = lineEnd(lines, 0); at < lines.length; at = lineEnd(lines, at + 1)) lines[at] = VERTICAL_TAB
    let at = this.#inString === 0 ? 0 : stringEnd(bytes, this.#inString - 2)
    while (at < bytes.length) {
      const byte = bytes[at] ?? 0
      if (isJsonSpace(byte)) lines[at] = SPACE
      else {
        lines[at] = this.#token(byte)
        if (this.#broken) return lines.subarray(0, at)
      }
      at = byte === QUOTE ? stringEnd(bytes, at) : at + 1
    }
    this.#inString = at - bytes.length
    return lines
  }

  /** Converts the first byte of a token. */
  #token(byte: number): number {
    if (this.#state !== 'within') return this.#open(byte)
    if (this.#depth === 1 && (byte === COMMA || byte === BRACKET_CLOSE)) return this.#next(byte)
    this.#begun = true
    if (byte === BRACE_OPEN || byte === BRACKET_OPEN) this.#depth++
    else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) this.#depth--
    // A brace closed the bracket of the array.
    if (this.#depth === 0) this.#broken = true
    return byte
  }

  #open(byte: number): number {
    if (this.#state === 'after' || byte !== BRACKET_OPEN) {
      this.#broken = true
      return byte
    }
    this.#state = 'within'
    this.#depth = 1
    return SPACE
  }

  /** Ends an element; an empty one is invalid, except in an empty array. */
  #next(byte: number): number {
    const isEmptyArray = byte === BRACKET_CLOSE && this.#elements === 0
    if (!this.#begun && !isEmptyArray) this.#broken = true
    if (this.#begun) this.#elements++
    if (byte === COMMA && this.#elements >= this.#elementsMax) this.#broken = true
    this.#begun = false
    if (byte === BRACKET_CLOSE) {
      this.#state = 'after'
      this.#depth = 0
    }
    return LINE_FEED
  }
}
