import type { Environment } from './setting.js'

/** The name with the smallest edit distance to a mistyped one; undefined if none is similar enough. */
export function nearestName(given: string, names: readonly string[]): string | undefined {
  const near = names
    .map((name) => ({ name, edits: editDistance(given, name) }))
    .filter(({ name, edits }) => edits <= Math.ceil(name.length / 4))
  near.sort((one, other) => one.edits - other.edits)
  return near[0]?.name
}

function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 0; i < from.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < to.length; j++) {
      const replaced = (row[j] ?? 0) + (from[i] === to[j] ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}

/**
 * Warnings about variables that look like settings but are unknown, which are mostly typing errors.
 * @param known the names of all settings
 */
export function unknownNames(env: Environment, known: readonly string[]): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('SERVICE_') && !known.includes(name))
    .sort()
    .map((name) => {
      const nearest = nearestName(name, known)
      return `${name} is not a setting of this version${nearest === undefined ? '' : `; did you mean ${nearest}?`}`
    })
}
