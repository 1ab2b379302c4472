/** Deeper values are left to JSON.stringify and to the service. */
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
  const fault = faultOf(value, '', new Set())
  if (fault === undefined && value !== undefined) return JSON.stringify(value)
  const { path, found } = fault ?? { path: [], found: 'undefined' }
  const pointer = path.reduceRight(
    (outer, key) => `${outer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
    '',
  )
  const place = pointer === '' ? of : `${pointer} of ${of}`
  throw new TypeError(`Expected a value of JSON at ${place}, got ${found}`)
}

/** @param outer the objects and lists that contain the value */
function faultOf(value: unknown, key: string, outer: Set<object>): Fault | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : { path: [], found: String(value) }
    case 'bigint':
      // Many programs define how JSON.stringify writes one.
      return 'toJSON' in BigInt.prototype ? undefined : { path: [], found: 'a BigInt' }
    case 'symbol':
    case 'function':
      return { path: [], found: `a ${typeof value}` }
    case 'object':
      return value === null || outer.size > DEPTH_MAX ? undefined : faultOfObject(value, key, outer)
    default:
      return undefined
  }
}

function faultOfObject(value: object, key: string, outer: Set<object>): Fault | undefined {
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const converted: unknown = value.toJSON(key)
    // Dates of several libraries convert themselves to null if they are invalid.
    if (converted !== null && converted !== undefined)
      return typeof converted === 'object' ? faultOfMembers(converted, outer) : faultOf(converted, key, outer)
    return {
      path: [],
      found: value instanceof Date ? 'an invalid date' : `an object whose JSON is ${converted}`,
    }
  }
  return faultOfMembers(value, outer)
}

function faultOfMembers(value: object, outer: Set<object>): Fault | undefined {
  // Otherwise two members that refer to it would be followed again at every depth.
  if (outer.has(value)) return { path: [], found: 'an object that contains itself' }
  outer.add(value)
  const fault = Array.isArray(value) ? faultOfItems(value, outer) : faultOfEntries(value, outer)
  outer.delete(value)
  return fault
}

function faultOfItems(value: readonly unknown[], outer: Set<object>): Fault | undefined {
  for (let index = 0; index < value.length; index++) {
    const item = value[index]
    const fault = item === undefined ? { path: [], found: 'undefined' } : faultOf(item, String(index), outer)
    if (fault !== undefined) return within(fault, String(index))
  }
  return undefined
}

function faultOfEntries(value: object, outer: Set<object>): Fault | undefined {
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1)
  const isNamed = Symbol.toStringTag in value
  if (!isNamed && (tag === 'Number' || tag === 'String' || tag === 'Boolean'))
    return faultOf(value.valueOf(), '', outer)
  // Modules and some classes of programs have a name and members; the members of a collection are not its items.
  const isData = tag === 'Object' || (isNamed && !(Symbol.iterator in value))
  const members = isData ? Object.entries(value) : []
  // The members of such an object are private.
  if (!isData || (members.length === 0 && !isPlain(value)))
    return {
      path: [],
      found: tag === 'Object' ? 'an object whose JSON is {}' : `an object of the class ${tag}`,
    }
  for (const [name, member] of members) {
    const fault = faultOf(member, name, outer)
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
