/** Comparisons that a query's `where` and a row policy can make (contract.md 3). */
export const operators = ['eq', 'ne', 'in', 'lt', 'lte', 'gt', 'gte', 'exists'] as const

export type Operator = (typeof operators)[number]

/** One comparison: a dotted path into a record's body, an operator and a literal. */
export interface Condition {
  field: string
  op: Operator
  value: unknown
}

/** True when every condition holds of `body`. A field that is not there matches nothing but `exists: false`. */
export function matchesAll(body: unknown, conditions: readonly Condition[]): boolean {
  return conditions.every((condition) => matches(body, condition))
}

function matches(body: unknown, condition: Condition): boolean {
  const found = fieldOf(body, condition.field)
  if (condition.op === 'exists') return (found !== undefined) === (condition.value !== false)
  if (found === undefined) return false
  return compare(found, condition.op, condition.value)
}

/** The member at a dotted path; `undefined` when there is none. Only own members count, array places included. */
export function fieldOf(body: unknown, path: string): unknown {
  let at = body
  for (const step of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined
    if (Array.isArray(at) && step === 'length') return undefined
    at = Reflect.get(at, step)
  }
  return at
}

/** Operators compare within one JSON type only: 1 is neither less nor more than "2", and not equal to it. */
function compare(found: unknown, op: Exclude<Operator, 'exists'>, value: unknown): boolean {
  if (op === 'in') return Array.isArray(value) && value.some((item) => sameJson(found, item))
  if (op === 'eq') return sameJson(found, value)
  if (op === 'ne') return jsonType(found) === jsonType(value) && !sameJson(found, value)
  if (typeof found === 'number' && typeof value === 'number') return inOrder(found, op, value)
  if (typeof found === 'string' && typeof value === 'string') return inOrder(found, op, value)
  return false
}

function inOrder<T extends number | string>(found: T, op: 'lt' | 'lte' | 'gt' | 'gte', value: T): boolean {
  if (op === 'lt') return found < value
  if (op === 'lte') return found <= value
  if (op === 'gt') return found > value
  return found >= value
}

function jsonType(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Equality of two JSON values; members of objects in any order. */
function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left) || Array.isArray(right)) return sameArray(left, right)
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  return keys.every(
    (key) => Object.hasOwn(right, key) && sameJson(Reflect.get(left, key), Reflect.get(right, key)),
  )
}

function sameArray(left: object, right: object): boolean {
  if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false
  return left.every((item, index) => sameJson(item, right[index]))
}
