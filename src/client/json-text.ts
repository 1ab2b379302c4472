/** Deeper values are left to JSON.stringify, which refuses circular ones, and to the service. */
const DEPTH_MAX = 1_000

/** A value that JSON cannot represent: its members from the outermost, the last one first, and what it is. */
interface Fault {
  path: string[]
  found: string
}

/**
 * The JSON text of a body. JSON.stringify would silently replace or drop values: NaN would be signed as null,
 * a Map as {}. Only members that are undefined are left out, as by JSON.stringify.
 * @param of what the body is, for the error
 * @throws TypeError that names the member
 */
export function jsonText(value: unknown, of = 'the body'): string {
  const fault = faultOf(value, '', 0)
  if (fault === undefined && value !== undefined) return JSON.stringify(value)
  const { path, found } = fault ?? { path: [], found: 'undefined' }
  const pointer = path.reduceRight(
    (outer, key) => `${outer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
    '',
  )
  const place = pointer === '' ? of : `${pointer} of ${of}`
  throw new TypeError(`Expected a value of JSON at ${place}, got ${found}`)
}

function faultOf(value: unknown, key: string, depth: number): Fault | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : { path: [], found: String(value) }
    case 'bigint':
      return { path: [], found: 'a BigInt' }
    case 'symbol':
    case 'function':
      return { path: [], found: `a ${typeof value}` }
    case 'object':
      return value === null || depth > DEPTH_MAX ? undefined : faultOfObject(value, key, depth)
    default:
      return undefined
  }
}

function faultOfObject(value: object, key: string, depth: number): Fault | undefined {
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const converted: unknown = value.toJSON(key)
    // Dates of several libraries convert themselves to null if they are invalid.
    if (converted !== null && converted !== undefined)
      return typeof converted === 'object' ? faultOfMembers(converted, depth) : faultOf(converted, key, depth)
    return {
      path: [],
      found: value instanceof Date ? 'an invalid date' : `an object whose JSON is ${converted}`,
    }
  }
  return faultOfMembers(value, depth)
}

function faultOfMembers(value: object, depth: number): Fault | undefined {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index]
      const fault =
        item === undefined ? { path: [], found: 'undefined' } : faultOf(item, String(index), depth + 1)
      if (fault !== undefined) return within(fault, String(index))
    }
    return undefined
  }
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1)
  if (tag === 'Number' || tag === 'String' || tag === 'Boolean') return faultOf(value.valueOf(), '', depth)
  if (tag !== 'Object') return { path: [], found: `an object of the class ${tag}` }
  const members = Object.entries(value)
  // The members of such an object are private.
  if (members.length === 0 && !isPlain(value)) return { path: [], found: 'an object whose JSON is {}' }
  for (const [name, member] of members) {
    const fault = faultOf(member, name, depth + 1)
    if (fault !== undefined) return within(fault, name)
  }
  return undefined
}

function within(fault: Fault, key: string): Fault {
  fault.path.push(key)
  return fault
}

/** Whether an object is a literal, also of another window or realm. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || (typeof prototype === 'object' && Object.getPrototypeOf(prototype) === null)
}
