import { isDeepStrictEqual } from 'node:util'

/** Stands in what is expected for a value that the model cannot foretell. */
export const anything = Symbol('anything')

/** Whether `actual` is what is expected, member by member; `anything` takes every value that is there. */
export function matches(expected: unknown, actual: unknown): boolean {
  if (expected === anything) return actual !== undefined
  if (typeof expected !== 'object' || typeof actual !== 'object' || expected === null || actual === null) {
    return isDeepStrictEqual(expected, actual)
  }
  if (Array.isArray(expected) !== Array.isArray(actual)) return false
  const named = Object.entries(expected).filter(([, value]) => value !== undefined)
  return (
    named.length === Object.keys(actual).length &&
    named.every(([name, value]) => matches(value, Reflect.get(actual, name)))
  )
}

/** A disagreement of server and model. */
export class Disagreement extends Error {
  constructor(about: string, expected: unknown, actual: unknown) {
    super(`${about}\n  the model: ${shown(expected)}\n  the server: ${shown(actual)}`)
  }
}

/** Throws unless `actual` is what is expected. */
export function agree(about: string, expected: unknown, actual: unknown): void {
  if (!matches(expected, actual)) throw new Disagreement(about, expected, actual)
}

function shown(value: unknown): string {
  const text = JSON.stringify(value, (_name, one: unknown) => (typeof one === 'symbol' ? '(anything)' : one))
  return text === undefined ? 'nothing' : text.slice(0, 4_000)
}
