/*
 * Paths to fields of records' bodies: in `where`, `filter`, row policies, `split`, and the console's filters and columns.
 */

/** What a path has to be, for errors. */
export const fieldPathDetail =
  'Expected names with dots between them, or a JSON Pointer that begins with /, in which ~1 stands for / and ~0 for ~'

/**
 * The steps of a path, each the name of a member or a place in a list. A path that begins with `/` is a JSON Pointer
 * (RFC 6901), any other is names with dots between them.
 * @returns undefined for a path of neither form
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

/** The same for a path in a stored policy. Earlier versions took any path, and divided each at its dots. */
export function storedSteps(path: string): string[] {
  return fieldSteps(path) ?? path.split('.')
}

/** The path to a member of the body itself: its name, or where that would be read otherwise, a JSON Pointer. */
export function pathOfMember(name: string): string {
  const steps = fieldSteps(name)
  if (steps?.length === 1 && steps[0] === name) return name
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** The value at a path; `undefined` where there is none. Only own members count, and places of lists. */
export function fieldOf(body: unknown, path: string): unknown {
  let at = body
  for (const step of storedSteps(path)) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined
    if (Array.isArray(at) && step === 'length') return undefined
    at = Reflect.get(at, step)
  }
  return at
}
