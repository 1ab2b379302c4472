/** Replaces an expected value that the model cannot predict. */
export const anything = Symbol('anything')

/** A disagreement of server and model. */
export class Disagreement extends Error {}

/**
 * Throws unless `actual` equals `expected`, member by member; `anything` matches every value except
 * undefined.
 */
export function agree(about: string, expected: unknown, actual: unknown): void {
  const difference = differenceOf(expected, actual, '')
  if (difference !== undefined) throw new Disagreement(`${about}\n${difference}`)
}

/**
 * A description of the first difference; undefined if the values are equal. Undefined members count as
 * absent.
 */
function differenceOf(expected: unknown, actual: unknown, pointer: string): string | undefined {
  if (expected === anything && actual !== undefined) return undefined
  if (!isObject(expected) || !isObject(actual) || Array.isArray(expected) !== Array.isArray(actual)) {
    return Object.is(expected, actual) ? undefined : described(pointer, expected, actual)
  }
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)])
  for (const name of names) {
    const difference = differenceOf(expected[name], actual[name], `${pointer}/${name}`)
    if (difference !== undefined) return `${difference}${pointer === '' ? whole(expected, actual) : ''}`
  }
  return undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function described(pointer: string, expected: unknown, actual: unknown): string {
  return `  at ${pointer === '' ? 'the root' : pointer}\n  the model: ${shown(expected)}\n  the server: ${shown(actual)}`
}

function whole(expected: unknown, actual: unknown): string {
  return `\n  the model, whole: ${shown(expected)}\n  the server, whole: ${shown(actual)}`
}

function shown(value: unknown): string {
  const text = JSON.stringify(value, (_name, one: unknown) => (typeof one === 'symbol' ? '(anything)' : one))
  return text === undefined ? 'nothing' : text.slice(0, 2_000)
}
