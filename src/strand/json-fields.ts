import { BRACE_OPEN, BRACKET_CLOSE, BRACKET_OPEN, COMMA, QUOTE } from '../base/ascii.js'
import { itemEnd, type Span, stringEnd } from './json-scanner.js'

/*
 * Finds members of canonical JSON (RFC 8785) by their paths without parsing it. Parsing a mebibyte of JSON takes from 3
 * to 400 ms, depending on its shape; this takes about one. The result is a place in the bytes: in canonical texts,
 * equal values have equal bytes, and no others have.
 */

/** A step of the paths that are looked for, and the steps after it. */
interface Step {
  /** The paths that end here, by their numbers. */
  ends: number[]
  /** Members by their keys: the canonical text of a key, quotes included, each byte as one character. */
  members: Map<string, Step>
  /** Which lengths those texts have. */
  lengths: Set<number>
  /** Items of a list by their places. */
  items: Map<number, Step>
}

/** Paths, prepared for being looked for in many texts. */
export class Fields {
  readonly #root = newStep()
  #count = 0

  /** Adds a path, a key or a place in a list for each step. @returns the number under which it is found */
  add(path: readonly string[]): number {
    let at = this.#root
    for (const key of path) at = stepBehind(at, key)
    at.ends.push(this.#count)
    return this.#count++
  }

  /** Where each path leads in a canonical text, UTF-8; `undefined` for one that leads nowhere. */
  find(text: Buffer): (Span | undefined)[] {
    const found: (Span | undefined)[] = Array.from({ length: this.#count })
    if (this.#count > 0) passValue(text, 0, { step: this.#root, found, last: true })
    return found
  }
}

function newStep(): Step {
  return { ends: [], members: new Map(), lengths: new Set(), items: new Map() }
}

function stepBehind(step: Step, key: string): Step {
  const text = Buffer.from(JSON.stringify(key)).toString('latin1')
  const known = step.members.get(text)
  if (known !== undefined) return known
  const next = newStep()
  step.members.set(text, next)
  step.lengths.add(text.length)
  if (/^(?:0|[1-9]\d{0,14})$/.test(key)) step.items.set(Number(key), next)
  return next
}

/** What is looked for in a value. `last`: the caller does not need the end of the value, nor anything after it. */
interface Wanted {
  step: Step
  found: (Span | undefined)[]
  last: boolean
}

/** Goes through a value and notes what is wanted in it. @returns where it ends */
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
    // A colon follows the key.
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
  for (let place = 0; text[at] !== BRACKET_CLOSE && at < text.length; place++) {
    if (left === 0) return last ? at : endOfNested(text, at)
    const item = step.items.get(place)
    if (item === undefined) at = itemEnd(text, at)
    else {
      left--
      at = passValue(text, at, { step: item, found, last: last && left === 0 })
    }
    if (text[at] === COMMA) at++
  }
  return at + 1
}

/** The place after the bracket that ends the object or list in which `from` is. */
function endOfNested(text: Buffer, from: number): number {
  let at = itemEnd(text, from)
  while (text[at] === COMMA) at = itemEnd(text, at + 1)
  return at + 1
}
