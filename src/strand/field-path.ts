/*
 * Paths to fields of bodies: in `where`, `filter`, row policies, `split`, and the filters and columns of the
 * console.
 */

/** The error text for an invalid path. */
export const fieldPathDetail =
  'Expected names with dots between them, or a JSON Pointer that begins with /, in which ~1 stands for / and ~0 for ~'

/**
 * The steps of a path, each the name of a member or an index of a list. A path that begins with `/` is a JSON
 * Pointer (RFC 6901); any other path has dots between its steps.
 * @returns undefined for an invalid path
 */
export function fieldSteps(path: string): string[] | undefined {
  if (!path.startsWith('/')) {
    const names = path.split('.')
    return names.includes('') ? undefined : names
  }
  if (/~(?![01])/.test(path)) return undefined
  return path
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The steps of a path in a stored policy. Earlier versions accepted any path and split it at its dots. */
export function storedSteps(path: string): string[] {
  return fieldSteps(path) ?? path.split('.')
}

/**
 * The path of steps: their names with dots between them, or a JSON Pointer if these would be read
 * differently.
 */
export function pathOfSteps(steps: readonly string[]): string {
  const dotted = steps.join('.')
  const read = fieldSteps(dotted)
  if (read?.length === steps.length && read.every((step, at) => step === steps[at])) return dotted
  return steps.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** The value at a path; `undefined` if it is missing. Only own members and indexes of lists count. */
export function fieldOf(body: unknown, path: string): unknown {
  let at = body
  for (const step of storedSteps(path)) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined
    if (Array.isArray(at) && step === 'length') return undefined
    at = Reflect.get(at, step)
  }
  return at
}
