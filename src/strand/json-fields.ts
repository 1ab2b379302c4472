import { BRACE_OPEN, BRACKET_CLOSE, BRACKET_OPEN, COMMA, QUOTE } from '../base/ascii.js'
import { itemEnd, type Span, stringEnd } from './json-scanner.js'

/*
 * Finds members of canonical JSON (RFC 8785) by their paths, without parsing. Parsing a mebibyte of JSON
 * takes from 3 to 400 ms, depending on its shape; this search takes about one. The results are spans of
 * bytes: two values in canonical texts are equal if and only if their bytes are.
 */

/** A node in the tree of the searched paths. */
interface Step {
  /** The indexes of the paths that end here. */
  ends: number[]
  /** The next steps by the canonical text of their key, with quotes, each byte as one character. */
  members: Map<string, Step>
  /** The lengths of these texts. */
  lengths: Set<number>
  /** The next steps by their index in a list. */
  items: Map<number, Step>
}

/** Paths, prepared to be searched in many texts. */
export class Fields {
  readonly #root = newStep()
  #count = 0

  /** Adds a path of keys and list indexes. @returns the index of the path in the results of `find` */
  add(path: readonly string[]): number {
    let at = this.#root
    for (const key of path) at = nextStep(at, key)
    at.ends.push(this.#count)
    return this.#count++
  }

  /** The span of each path in a canonical UTF-8 text; `undefined` for a path that does not exist in it. */
  find(text: Buffer): (Span | undefined)[] {
    const found: (Span | undefined)[] = Array.from({ length: this.#count })
    if (this.#count > 0) passValue(text, 0, { step: this.#root, found, last: true })
    return found
  }
}

function newStep(): Step {
  return { ends: [], members: new Map(), lengths: new Set(), items: new Map() }
}

function nextStep(step: Step, key: string): Step {
  const text = Buffer.from(JSON.stringify(key)).toString('latin1')
  const known = step.members.get(text)
  if (known !== undefined) return known
  const next = newStep()
  step.members.set(text, next)
  step.lengths.add(text.length)
  if (/^(?:0|[1-9]\d{0,14})$/.test(key)) step.items.set(Number(key), next)
  return next
}

interface Wanted {
  step: Step
  found: (Span | undefined)[]
  /** The caller does not need the end of the value, so that the search may stop early. */
  last: boolean
}

/** Searches a value for the wanted paths. @returns the end of the value */
function passValue(text: Buffer, from: number, wanted: Wanted): number {
  const { ends, members } = wanted.step
  const whole = ends.length > 0
  const inner = whole && wanted.last ? { ...wanted, last: false } : wanted
  const opening = members.size === 0 ? undefined : text[from]
  let to: number
  if (opening === BRACE_OPEN) to = passObject(text, from, inner)
  else if (opening === BRACKET_OPEN) to = passList(text, from, inner)
  else to = itemEnd(text, from)
  for (const end of ends) wanted.found[end] = { from, to }
  return to
}

function passObject(text: Buffer, from: number, { step, found, last }: Wanted): number {
  let left = step.members.size
  let at = from + 1
  while (text[at] === QUOTE) {
    const keyEnd = stringEnd(text, at)
    const member = step.lengths.has(keyEnd - at)
      ? step.members.get(text.toString('latin1', at, keyEnd))
      : undefined
    // Skips the colon after the key.
    if (member === undefined) at = itemEnd(text, keyEnd + 1)
    else {
      left--
      at = passValue(text, keyEnd + 1, { step: member, found, last: last && left === 0 })
      if (left === 0) return last ? at : endOfNested(text, at)
    }
    if (text[at] === COMMA) at++
  }
  return at + 1
}

function passList(text: Buffer, from: number, { step, found, last }: Wanted): number {
  let left = step.items.size
  let at = from + 1
  for (let index = 0; text[at] !== BRACKET_CLOSE && at < text.length; index++) {
    if (left === 0) return last ? at : endOfNested(text, at)
    const item = step.items.get(index)
    if (item === undefined) at = itemEnd(text, at)
    else {
      left--
      at = passValue(text, at, { step: item, found, last: last && left === 0 })
    }
    if (text[at] === COMMA) at++
  }
  return at + 1
}

/** The offset after the closing bracket of the object or list that contains `from`. */
function endOfNested(text: Buffer, from: number): number {
  let at = itemEnd(text, from)
  while (text[at] === COMMA) at = itemEnd(text, at + 1)
  return at + 1
}
