import { conditionLimits } from '../base/limits/conditions.js'
import type { Fault } from '../base/errors.js'
import { type Effort, matchesAny } from '../strand/condition.js'
import { type PolicyCondition, valueFault } from '../strand/operators.js'
import { fieldOf, fieldPathDetail, fieldSteps } from '../strand/field-path.js'
import { isGranted } from '../strand/record-type.js'
import type { TokenClaims } from './jwt.js'

/** Actions on records that policies can allow users (docs/adr/0012-row-policies.md). */
export const policyActions = ['read', 'write', 'delete', 'erase'] as const

export type PolicyAction = (typeof policyActions)[number]

/**
 * A row policy of an agent: it allows its actions on records for which all conditions hold. The value of a
 * condition is a literal or a placeholder; with `in`, the items of a list may be placeholders too.
 */
export interface Policy {
  actions: PolicyAction[]
  conditions: PolicyCondition[]
  /** Record types, as in queries; if absent, all types except reserved ones (src/strand/record-type.ts). */
  types?: string[]
}

/** The claims that placeholders can refer to. */
export type PolicyClaims = Pick<
  TokenClaims,
  'sub' | 'email' | 'verified_email' | 'app_metadata' | 'user_metadata'
>

/** The prefix of placeholders, and of no other texts. */
const PREFIX = '$jwt.'

// Further steps descend into objects: `$jwt.app_metadata.team.id`.
const placeholderShape = /^\$jwt\.(?:sub|email|verified_email|(?:app_metadata|user_metadata)(?:\.[^.\s]+)+)$/

/** Claims that a policy should not rely on, and why. */
const untrustedClaims = [
  {
    claim: 'email',
    why: 'which may be unproven: $jwt.verified_email is set after a sign-in through the mailbox',
  },
  { claim: 'user_metadata', why: 'which users can change' },
] as const

const PLACEHOLDER_CHARS_MAX = 256

export type ResolvedPolicy = Pick<Policy, 'conditions' | 'types'>

/** The parts of a record that policies are checked against. */
export interface JudgedRecord {
  type: string
  /** Canonical JSON. */
  body: Uint8Array
}

/** The policies that allow an action, and the values of their placeholders for one user. */
export interface GrantParts {
  policies: ResolvedPolicy[]
  /** By placeholder; claims that the user lacks are absent. */
  values: Record<string, unknown>
}

/** The policies that allow an action, with the claims of a user. */
export function grantFor(
  policies: readonly Policy[],
  action: PolicyAction,
  claims: PolicyClaims,
): GrantParts {
  const granting = policies.filter(({ actions }) => actions.includes(action))
  const values: Record<string, unknown> = {}
  for (const name of placeholdersOf(granting)) {
    const value = claimOf(name, claims)
    if (value !== undefined) values[name] = value
  }
  const bare = granting.map(({ actions: _actions, ...policy }): ResolvedPolicy => policy)
  return { policies: bare, values }
}

/**
 * Replaces the placeholders of a grant by their values. Policies with a claim that the user lacks are left
 * out, because a missing claim never matches, not even with `ne`.
 * @returns the policies for `allows`
 */
export function resolveGrant({ policies, values }: GrantParts): ResolvedPolicy[] {
  return policies.flatMap(({ conditions, ...policy }) => {
    const resolved = resolveAll(conditions, values)
    return resolved === undefined ? [] : [{ ...policy, conditions: resolved }]
  })
}

/** The policies that allow an action, with their placeholders replaced by the claims of a user. */
export function resolvePolicies(
  policies: readonly Policy[],
  action: PolicyAction,
  claims: PolicyClaims,
): ResolvedPolicy[] {
  return resolveGrant(grantFor(policies, action, claims))
}

/**
 * Whether one of the resolved policies allows a record. Without policies, nothing is allowed.
 * @param effort is increased by the cost of the comparison
 */
export function allows(
  resolved: readonly ResolvedPolicy[],
  { type, body }: JudgedRecord,
  effort?: Effort,
): boolean {
  const open = resolved.map(({ types }) => isGranted(type, types))
  return matchesAny(body, resolved, { effort, open })
}

type Values = GrantParts['values']

function resolveAll(conditions: readonly PolicyCondition[], values: Values): PolicyCondition[] | undefined {
  const resolved: PolicyCondition[] = []
  for (const condition of conditions) {
    const value = resolveValue(condition, values)
    if (value === undefined) return undefined
    resolved.push({ ...condition, value })
  }
  return resolved
}

function resolveValue({ op, value }: PolicyCondition, values: Values): unknown {
  if (op === 'exists') return value !== false
  if (op !== 'in' || !Array.isArray(value)) return resolveOne(value, values)
  return value.map((item) => resolveOne(item, values)).filter((item) => item !== undefined)
}

/**
 * The value of a placeholder, `undefined` if the user lacks the claim; any other value is returned unchanged.
 */
function resolveOne(value: unknown, values: Values): unknown {
  return isPlaceholder(value) ? values[value] : value
}

function placeholdersOf(policies: readonly Pick<Policy, 'conditions'>[]): Set<string> {
  const names = new Set<string>()
  for (const { op, value } of policies.flatMap(({ conditions }) => conditions)) {
    for (const item of op === 'in' && Array.isArray(value) ? value : [value]) {
      if (isPlaceholder(item)) names.add(item)
    }
  }
  return names
}

function claimOf(placeholder: string, claims: PolicyClaims): unknown {
  const path = placeholder.slice(PREFIX.length)
  return path.split('.').includes('__proto__') ? undefined : fieldOf(claims, path)
}

/**
 * The most bytes that policies can take with the claims of any user. Claims with paths of the same length
 * have no member in common, so that together they are no longer than the metadata of a user.
 * @param metadataBytesMax SERVICE_AUTH_METADATA_MAX_BYTES
 */
export function grantBytesAtMost(policies: readonly Policy[], metadataBytesMax: number): number {
  const names = [...placeholdersOf(policies)]
  const depths = new Set(names.map((name) => (isMetadata(name) ? name.split('.').length : 0)))
  depths.delete(0)
  const others = names.filter((name) => !isMetadata(name)).length
  const texts = bytesOf({ policies, values: names }) + names.length
  return texts + depths.size * metadataBytesMax + others * IDENTITY_BYTES
}

/** The longest user id or e-mail as JSON, and a brace or comma. */
const IDENTITY_BYTES = 512

function isMetadata(placeholder: string): boolean {
  return /^\$jwt\.(?:app|user)_metadata\./.test(placeholder)
}

function bytesOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length
}

/**
 * Checks policies that have the right shape for unknown placeholders, values that their operator can never
 * match, and exceeded limits.
 * @returns faults with pointers into the body of `PUT /v1/agents/:agent/policies`, code `validation_failed`
 */
export function policyFaults(policies: readonly Policy[]): Fault[] {
  return policies.flatMap(({ conditions }, index) => {
    const pointer = `/policies/${index}/conditions`
    if (conditions.length > conditionLimits.whereConditionsMax) {
      return [fault(pointer, `Expected at most ${conditionLimits.whereConditionsMax} conditions`)]
    }
    return conditions.flatMap((condition, at) => conditionFaults(condition, `${pointer}/${at}`))
  })
}

/**
 * Further checks for new policies only, because imported strands can contain older policies that fail them:
 * lists that are too long or repeat a placeholder, and fields that begin with `/` but are not a JSON Pointer.
 */
export function newPolicyFaults(policies: readonly Policy[]): Fault[] {
  return policies.flatMap(({ conditions }, index) =>
    conditions.flatMap(({ field, op, value }, at) => {
      const pointer = `/policies/${index}/conditions/${at}`
      const detail = op === 'in' && Array.isArray(value) ? listFault(value) : undefined
      return [
        ...(field.startsWith('/') && !leadsToField(field)
          ? [fault(`${pointer}/field`, fieldPathDetail)]
          : []),
        ...(detail === undefined ? [] : [fault(`${pointer}/value`, detail)]),
      ]
    }),
  )
}

function leadsToField(path: string): boolean {
  return fieldSteps(path)?.includes('__proto__') === false
}

function listFault(items: readonly unknown[]): string | undefined {
  const { whereItemsMax } = conditionLimits
  if (items.length > whereItemsMax) return `Expected at most ${whereItemsMax} items with in`
  const named = items.filter(isPlaceholder)
  return new Set(named).size < named.length ? 'Expected each placeholder once in a list' : undefined
}

function conditionFaults({ field, op, value }: PolicyCondition, pointer: string): Fault[] {
  const faults: Fault[] = []
  if (!field.startsWith('/') && !leadsToField(field)) faults.push(fault(`${pointer}/field`, fieldPathDetail))
  if (!isPlaceholder(value)) {
    const detail = valueFault({ op, value }) ?? literalFault(op, value)
    if (detail !== undefined) faults.push(fault(`${pointer}/value`, detail))
  } else if (op === 'exists') {
    faults.push(fault(`${pointer}/value`, 'Expected true or false with exists'))
  } else if (!isWholePlaceholder(value)) {
    faults.push(fault(`${pointer}/value`, placeholderDetail))
  }
  return faults
}

const placeholderDetail =
  'Expected a value that begins with $jwt. to be $jwt.sub, $jwt.email, $jwt.verified_email, $jwt.app_metadata.<key> or $jwt.user_metadata.<key>'

/** Why the placeholders in a value cannot be resolved. */
function literalFault(op: PolicyCondition['op'], value: unknown): string | undefined {
  if (op === 'in' && Array.isArray(value)) {
    const wrong = value.some((item) =>
      isPlaceholder(item) ? !isWholePlaceholder(item) : hasPlaceholder(item),
    )
    return wrong ? placeholderDetail : undefined
  }
  return hasPlaceholder(value) ? 'Expected no placeholder within an object or a list' : undefined
}

/** Whether a value contains a placeholder at any depth; those within lists and objects are not resolved. */
function hasPlaceholder(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isPlaceholder(value)
  return Object.values(value).some(hasPlaceholder)
}

function isPlaceholder(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith(PREFIX)
}

function isWholePlaceholder(value: string): boolean {
  if (value.length > PLACEHOLDER_CHARS_MAX || value.split('.').includes('__proto__')) return false
  return placeholderShape.test(value)
}

function fault(pointer: string, detail: string): Fault {
  return { pointer, code: 'validation_failed', detail }
}

/**
 * Warnings in the answer to `PUT /v1/agents/:agent/policies` about accepted but risky policies: those that
 * compare with `$jwt.email` (an attacker can register any e-mail) or `$jwt.user_metadata` (users can write
 * it), and those that only require fields to be absent, which match more records than intended.
 */
export function policyWarnings(policies: readonly Policy[]): string[] {
  return policies.flatMap(({ conditions }, index) => [
    ...conditions.flatMap(({ value }, at) =>
      untrustedIn(value).map(
        ({ claim, why }) => `/policies/${index}/conditions/${at} compares with ${PREFIX}${claim}, ${why}`,
      ),
    ),
    ...(conditions.length > 0 && conditions.every(isAbsence)
      ? [
          `/policies/${index}/conditions match every record that lacks these fields, whatever else it contains`,
        ]
      : []),
  ])
}

function isAbsence({ op, value }: PolicyCondition): boolean {
  return op === 'exists' && value === false
}

function untrustedIn(value: unknown): (typeof untrustedClaims)[number][] {
  const named = (Array.isArray(value) ? value : [value])
    .filter(isPlaceholder)
    .map((item) => item.slice(PREFIX.length).split('.')[0])
  return untrustedClaims.filter(({ claim }) => named.includes(claim))
}
