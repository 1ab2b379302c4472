import { distance } from 'fastest-levenshtein'
import type { Environment } from './setting.js'

/** The name with the smallest edit distance to a mistyped one; undefined if none is similar enough. */
export function nearestName(given: string, names: readonly string[]): string | undefined {
  const near = names
    .map((name) => ({ name, edits: distance(given, name) }))
    .filter(({ name, edits }) => edits <= Math.ceil(name.length / 4))
  near.sort((one, other) => one.edits - other.edits)
  return near[0]?.name
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
