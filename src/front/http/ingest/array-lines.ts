import {
  BACKSLASH,
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  CARRIAGE_RETURN,
  COMMA,
  LINE_FEED,
  QUOTE,
  SPACE,
  TAB,
  VERTICAL_TAB,
} from '../../../base/ascii.js'

/**
 * Makes lines of the elements of a JSON array while it arrives, byte by byte and without parsing: faults within an
 * element are found when its line is read. A line break between tokens becomes a space; one within a string, where JSON
 * does not allow it, becomes a vertical tab, which JSON does not allow there either.
 */
export class ArrayLines {
  /** 0 before and after the array, 1 among its elements. */
  #depth = 0
  #state: 'before' | 'within' | 'behind' = 'before'
  #inString = false
  #escaped = false
  /** Whether the element has begun. */
  #begun = false
  #elements = 0
  #broken = false
  readonly #elementsMax: number

  constructor(elementsMax = Infinity) {
    this.#elementsMax = elementsMax
  }

  /** Whether a whole array has come. */
  get isWhole(): boolean {
    return this.#state === 'behind' && !this.#broken
  }

  /** Elements that have ended. */
  get elements(): number {
    return this.#elements
  }

  /** Whether the bytes cannot be a JSON array; lines that were made before stay. */
  get isBroken(): boolean {
    return this.#broken
  }

  /** Takes bytes; returns equally many bytes of lines, or fewer if the array breaks off. */
  push(bytes: Uint8Array): Buffer {
    const lines = Buffer.allocUnsafe(bytes.length)
    for (let at = 0; at < bytes.length; at++) {
      lines[at] = this.#inString ? this.#inText(bytes[at] ?? 0) : this.#between(bytes[at] ?? 0)
      if (this.#broken) return lines.subarray(0, at)
    }
    return lines
  }

  #inText(byte: number): number {
    if (this.#escaped) this.#escaped = false
    else if (byte === BACKSLASH) this.#escaped = true
    else if (byte === QUOTE) this.#inString = false
    return byte === LINE_FEED ? VERTICAL_TAB : byte
  }

  #between(byte: number): number {
    if (byte === SPACE || byte === TAB || byte === LINE_FEED || byte === CARRIAGE_RETURN) return SPACE
    if (this.#state !== 'within') return this.#open(byte)
    if (this.#depth === 1 && (byte === COMMA || byte === BRACKET_CLOSE)) return this.#next(byte)
    this.#begun = true
    if (byte === QUOTE) this.#inString = true
    else if (byte === BRACE_OPEN || byte === BRACKET_OPEN) this.#depth++
    else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) this.#depth--
    // A brace closed the array's bracket.
    if (this.#depth === 0) this.#broken = true
    return byte
  }

  #open(byte: number): number {
    if (this.#state === 'behind' || byte !== BRACKET_OPEN) {
      this.#broken = true
      return byte
    }
    this.#state = 'within'
    this.#depth = 1
    return SPACE
  }

  /** Ends an element; an empty one is no JSON, except in an empty array. */
  #next(byte: number): number {
    const isNone = byte === BRACKET_CLOSE && this.#elements === 0
    if (!this.#begun && !isNone) this.#broken = true
    if (this.#begun) this.#elements++
    if (byte === COMMA && this.#elements >= this.#elementsMax) this.#broken = true
    this.#begun = false
    if (byte === BRACKET_CLOSE) {
      this.#state = 'behind'
      this.#depth = 0
    }
    return LINE_FEED
  }
}
