import { conditionLimits } from '../base/limits/conditions.js'

/*
 * Conditions and what they may be; src/strand/condition.ts compares them with bodies. The page of the console
 * loads this file alone.
 */

/** The operators of conditions in row policies. */
export const policyOperators = ['eq', 'ne', 'in', 'lt', 'lte', 'gt', 'gte', 'exists'] as const

/** The operators of conditions in `where`. */
export const operators = [...policyOperators, 'contains', 'starts_with'] as const

export type Operator = (typeof operators)[number]

/** A comparison in a row policy: a path to a field of a body (src/strand/field-path.ts), an operator and a literal. */
export interface PolicyCondition {
  field: string
  op: (typeof policyOperators)[number]
  value: unknown
}

/** A comparison in a `where`. */
export interface Condition extends Omit<PolicyCondition, 'op'> {
  op: Operator
  /** Whether upper and lower case are the same; only with text. */
  ci?: boolean
}

/** The operators that can ignore case. */
const foldingOperators: readonly Operator[] = ['eq', 'ne', 'in', 'contains', 'starts_with']

/** Why an operator and a value have no meaning together; undefined if they have one. */
export function valueFault({ op, value, ci }: Omit<Condition, 'field'>): string | undefined {
  if (ci === true) {
    if (!foldingOperators.includes(op)) return `Expected ci only with ${foldingOperators.join(', ')}`
    if (![value].flat().every(isText)) return 'Expected text with ci'
  }
  if (op === 'contains' || op === 'starts_with') return partFault(op, value)
  if (op === 'eq' || op === 'ne') return undefined
  if (op === 'exists') return typeof value === 'boolean' ? undefined : 'Expected true or false with exists'
  if (op === 'in') return Array.isArray(value) ? undefined : 'Expected a list with in'
  const hasOrder = typeof value === 'number' || typeof value === 'string'
  return hasOrder ? undefined : `Expected a number or a string with ${op}`
}

function partFault(op: Operator, value: unknown): string | undefined {
  const { whereTextMax } = conditionLimits
  if (isText(value))
    return value.length > whereTextMax ? `Expected at most ${whereTextMax} characters with ${op}` : undefined
  if (op === 'starts_with') return 'Expected text with starts_with'
  const isScalar = value === null || typeof value === 'number' || typeof value === 'boolean'
  return isScalar ? undefined : 'Expected text, a number, true, false or null with contains'
}

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}
