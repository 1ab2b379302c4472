import {
  newPolicyFaults,
  type Policy,
  policyActions,
  policyFaults,
  type PolicyAction,
} from '../../../auth/row-policy.js'
import { utf8 } from '../../../proof/hex.js'
import { isObject } from '../../parts/json.js'
import { type PolicyCondition, policyOperators } from '../../../strand/operators.js'
import { readJson } from '../../../strand/json.js'
import { queriedTypePattern } from '../../../strand/record-type.js'
import {
  type Comparisons,
  type ConditionDraft,
  IN_ANY_CASE,
  valueOf,
  type ValueType,
  valueTypes,
} from '../records/filter.js'

export const ruleComparisons: Comparisons = {
  operators: policyOperators,
  valueTypes: valueTypes.filter((type) => type !== IN_ANY_CASE),
}

/** A rule as typed. */
export interface RuleDraft {
  actions: PolicyAction[]
  conditions: ConditionDraft[]
  /** Record types, separated by commas; empty for all application records. */
  types: string
}

/** Parsed rules, or the fault of the input. */
type ReadRules = { policies: Policy[] } | { fault: string }

/** Rules during editing, as rows and as text. A change of one updates the other. */
export interface EditedRules {
  drafts: RuleDraft[]
  text: string
  read: ReadRules
  /** The side of the last change, on which a fault has to be corrected. */
  by: 'rows' | 'text'
}

/** The initial content of a new rule: users can read the records that they own. */
export const newRule: RuleDraft = {
  actions: ['read'],
  conditions: [{ field: 'owner', op: 'eq', valueType: 'text', value: '$jwt.sub' }],
  types: '',
}

/** The server's limit of types in a rule. */
const TYPES_MAX = 32
/** The depth limit of the server's request parser. */
const DEPTH_MAX = 16

/** Converts rules to rows. */
export function draftsOf(policies: readonly Policy[]): RuleDraft[] {
  return policies.map(({ actions, conditions, types = [] }) => ({
    actions: [...actions],
    conditions: conditions.map(conditionDraft),
    types: types.join(', '),
  }))
}

function conditionDraft({ field, op, value }: PolicyCondition): ConditionDraft {
  const [valueType, text] = typedValue(op, value)
  return { field, op, valueType, value: text }
}

function typedValue(op: PolicyCondition['op'], value: unknown): [type: ValueType, text: string] {
  if (typeof value === 'boolean' || op === 'exists') return ['yes or no', value === false ? 'no' : 'yes']
  if (op !== 'in' && typeof value === 'string') return ['text', value]
  if (op !== 'in' && typeof value === 'number') return ['number', String(value)]
  if (op === 'in' && isPlainList(value)) return ['text', value.join(', ')]
  return ['JSON', JSON.stringify(value)]
}

/** Whether the strings survive a field in which commas separate them. */
function isPlainList(value: unknown): value is string[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((item) => typeof item === 'string' && item !== '' && item.trim() === item && !/,/.test(item))
  )
}

/** Converts rows to rules. */
export function rulesOfDrafts(drafts: readonly RuleDraft[]): ReadRules {
  const policies: Policy[] = []
  for (const [at, { actions, conditions, types }] of drafts.entries()) {
    if (actions.length === 0) return { fault: `Rule ${at + 1}: Expected at least one action` }
    const parsed: PolicyCondition[] = []
    for (const condition of conditions) {
      const field = condition.field.trim()
      const value = field === '' ? { fault: 'Expected the name of a field' } : valueOf(condition)
      if ('fault' in value) return { fault: `Rule ${at + 1}: ${value.fault}` }
      const op = policyOperators.find((one) => one === condition.op)
      if (op === undefined)
        return { fault: `Rule ${at + 1}: Expected op to be one of ${policyOperators.join(', ')}` }
      parsed.push({ field, op, value: value.value })
    }
    policies.push({ actions, conditions: parsed, ...typesOf(types) })
  }
  // Values typed as JSON have to pass the strict parser too.
  return rulesOfText(textOfRules(policies))
}

function typesOf(text: string): Pick<Policy, 'types'> {
  const types = text.split(',').map((type) => type.trim())
  return text.trim() === '' ? {} : { types }
}

/** Parses rules from a JSON text, as strictly as the server. */
export function rulesOfText(text: string): ReadRules {
  const read = readJson(utf8(text), DEPTH_MAX)
  if ('code' in read) return { fault: read.detail }
  if (!Array.isArray(read.value)) return { fault: 'Expected a list of rules' }
  const policies: Policy[] = []
  for (const [at, item] of read.value.entries()) {
    const policy = policyOf(item)
    if (typeof policy === 'string') return { fault: `Rule ${at + 1}: ${policy}` }
    policies.push(policy)
  }
  return { policies }
}

function policyOf(value: unknown): Policy | string {
  if (!isObject(value) || !hasOnly(value, ['actions', 'conditions', 'types']))
    return 'Expected an object of actions, conditions and types'
  const { actions, conditions, types } = value
  if (!Array.isArray(actions) || !Array.isArray(conditions)) return 'Expected lists of actions and conditions'
  const known = policyActions.filter((action) => actions.includes(action))
  if (actions.length === 0 || known.length !== actions.length)
    return 'Expected actions of read, write, delete and erase, each once'
  const parsed: PolicyCondition[] = []
  for (const [at, item] of conditions.entries()) {
    const condition = conditionOf(item)
    if (condition === undefined)
      return `Expected condition ${at + 1} to be an object of field, op (${policyOperators.join(', ')}) and value`
    parsed.push(condition)
  }
  if (types === undefined) return { actions: known, conditions: parsed }
  if (!isTypes(types)) return 'Expected types to be a list of record types, or prefixes with *'
  return { actions: known, conditions: parsed, types }
}

const queriedType = new RegExp(`^${queriedTypePattern}$`)

function isTypes(value: unknown): value is string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > TYPES_MAX) return false
  return value.every((type) => typeof type === 'string' && queriedType.test(type))
}

function conditionOf(item: unknown): PolicyCondition | undefined {
  if (!isObject(item) || !hasOnly(item, ['field', 'op', 'value']) || !('value' in item)) return undefined
  const op = policyOperators.find((one) => one === item['op'])
  const { field, value } = item
  return typeof field !== 'string' || op === undefined ? undefined : { field, op, value }
}

function hasOnly(value: object, names: readonly string[]): boolean {
  return Object.keys(value).every((name) => names.includes(name))
}

/** The faults for which the server would refuse well-formed rules. */
export function faultsOf(policies: readonly Policy[]): string[] {
  return [...policyFaults(policies), ...newPolicyFaults(policies)].map(
    ({ pointer, detail }) => `${pointer}: ${detail}`,
  )
}

export function textOfRules(policies: readonly Policy[]): string {
  return JSON.stringify(policies, null, 2)
}
