import {
  newerFaults,
  type Policy,
  policyActions,
  policyFaults,
  type PolicyAction,
} from '../../../auth/row-policy.js'
import { utf8 } from '../../../proof/hex.js'
import { isObject } from '../../parts/json.js'
import { type Condition, operators } from '../../../strand/condition.js'
import { readJson } from '../../../strand/json.js'
import { queriedTypePattern } from '../../../strand/record-type.js'
import { type ConditionDraft, valueOf, type ValueType } from '../records/filter.js'

/** A rule as it is typed. */
export interface RuleDraft {
  actions: PolicyAction[]
  conditions: ConditionDraft[]
  /** Types of records, separated by commas; empty: all that applications write. */
  types: string
}

/** Rules that can be tried and saved, or what is wrong with them. */
export type ReadRules = { policies: Policy[] } | { fault: string }

/** Rules that are being edited, as rows and as a text; one follows the other. */
export interface EditedRules {
  drafts: RuleDraft[]
  text: string
  read: ReadRules
  /** Where the last change was made; what is wrong can only be put right there. */
  by: 'rows' | 'text'
}

/** What a new rule says until it is changed: users see what is theirs. */
export const newRule: RuleDraft = {
  actions: ['read'],
  conditions: [{ field: 'owner', op: 'eq', valueType: 'text', value: '$jwt.sub' }],
  types: '',
}

/** The most types of one rule that the server takes. */
const TYPES_MAX = 32
/** As the server's reader of requests. */
const DEPTH_MAX = 16

/** Rules as their rows show them. */
export function draftsOf(policies: readonly Policy[]): RuleDraft[] {
  return policies.map(({ actions, conditions, types = [] }) => ({
    actions: [...actions],
    conditions: conditions.map(conditionDraft),
    types: types.join(', '),
  }))
}

function conditionDraft({ field, op, value }: Condition): ConditionDraft {
  const [valueType, text] = typedValue(op, value)
  return { field, op, valueType, value: text }
}

function typedValue(op: Condition['op'], value: unknown): [type: ValueType, text: string] {
  if (typeof value === 'boolean' || op === 'exists') return ['yes or no', value === false ? 'no' : 'yes']
  if (op !== 'in' && typeof value === 'string') return ['text', value]
  if (op !== 'in' && typeof value === 'number') return ['number', String(value)]
  if (op === 'in' && isPlainList(value)) return ['text', value.join(', ')]
  return ['JSON', JSON.stringify(value)]
}

/** Texts that come back as they were from a field in which commas separate them. */
function isPlainList(value: unknown): value is string[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((item) => typeof item === 'string' && item !== '' && item.trim() === item && !/,/.test(item))
  )
}

/** The rules of rows. */
export function rulesOfDrafts(drafts: readonly RuleDraft[]): ReadRules {
  const policies: Policy[] = []
  for (const [at, { actions, conditions, types }] of drafts.entries()) {
    if (actions.length === 0) return { fault: `Rule ${at + 1}: Expected an action` }
    const made: Condition[] = []
    for (const condition of conditions) {
      const field = condition.field.trim()
      const value = field === '' ? { fault: 'Expected the name of a field' } : valueOf(condition)
      if ('fault' in value) return { fault: `Rule ${at + 1}: ${value.fault}` }
      made.push({ field, op: condition.op, value: value.value })
    }
    policies.push({ actions, conditions: made, ...typesOf(types) })
  }
  // Texts that were typed as JSON are read as strictly as the whole.
  return rulesOfText(textOfRules(policies))
}

function typesOf(text: string): Pick<Policy, 'types'> {
  const types = text.split(',').map((type) => type.trim())
  return text.trim() === '' ? {} : { types }
}

/** The rules of a JSON text, read as strictly as the server does. */
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
  const made: Condition[] = []
  for (const [at, item] of conditions.entries()) {
    const condition = conditionOf(item)
    if (condition === undefined)
      return `Expected condition ${at + 1} to be an object of field, op (${operators.join(', ')}) and value`
    made.push(condition)
  }
  if (types === undefined) return { actions: known, conditions: made }
  if (!isTypes(types)) return 'Expected types to be a list of record types, or beginnings and *'
  return { actions: known, conditions: made, types }
}

const queriedType = new RegExp(`^${queriedTypePattern}$`)

function isTypes(value: unknown): value is string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > TYPES_MAX) return false
  return value.every((type) => typeof type === 'string' && queriedType.test(type))
}

function conditionOf(item: unknown): Condition | undefined {
  if (!isObject(item) || !hasOnly(item, ['field', 'op', 'value']) || !('value' in item)) return undefined
  const op = operators.find((one) => one === item['op'])
  const { field, value } = item
  return typeof field !== 'string' || op === undefined ? undefined : { field, op, value }
}

function hasOnly(value: object, names: readonly string[]): boolean {
  return Object.keys(value).every((name) => names.includes(name))
}

/** What the server would refuse in rules that have the right shape, each in its words. */
export function faultsOf(policies: readonly Policy[]): string[] {
  return [...policyFaults(policies), ...newerFaults(policies)].map(
    ({ pointer, detail }) => `${pointer}: ${detail}`,
  )
}

/** Rules as their JSON text. */
export function textOfRules(policies: readonly Policy[]): string {
  return JSON.stringify(policies, null, 2)
}
