/** Stands in what is expected for a value that the model cannot foretell. */
export const anything = Symbol('anything')

/** A disagreement of server and model. */
export class Disagreement extends Error {}

/** Throws unless `actual` is what is expected, member by member; `anything` takes every value that is there. */
export function agree(about: string, expected: unknown, actual: unknown): void {
  const difference = differenceOf(expected, actual, '')
  if (difference !== undefined) throw new Disagreement(`${about}\n${difference}`)
}

/** Where two values differ first, in words; undefined where they do not. Members that are undefined are not there. */
function differenceOf(expected: unknown, actual: unknown, place: string): string | undefined {
  if (expected === anything && actual !== undefined) return undefined
  if (!isObject(expected) || !isObject(actual) || Array.isArray(expected) !== Array.isArray(actual)) {
    return Object.is(expected, actual) ? undefined : told(place, expected, actual)
  }
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)])
  for (const name of names) {
    const difference = differenceOf(expected[name], actual[name], `${place}/${name}`)
    if (difference !== undefined) return `${difference}${place === '' ? whole(expected, actual) : ''}`
  }
  return undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function told(place: string, expected: unknown, actual: unknown): string {
  return `  at ${place === '' ? 'the root' : place}\n  the model: ${shown(expected)}\n  the server: ${shown(actual)}`
}

function whole(expected: unknown, actual: unknown): string {
  return `\n  the model, whole: ${shown(expected)}\n  the server, whole: ${shown(actual)}`
}

function shown(value: unknown): string {
  const text = JSON.stringify(value, (_name, one: unknown) => (typeof one === 'symbol' ? '(anything)' : one))
  return text === undefined ? 'nothing' : text.slice(0, 2_000)
}
