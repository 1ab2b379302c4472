import { conditionLimits } from '../base/limits/conditions.js'
import type { Fault } from '../base/errors.js'
import { type Condition, type Effort, matchesAny } from '../strand/condition.js'
import { fieldOf, fieldPathDetail, fieldSteps } from '../strand/field-path.js'
import { isGranted } from '../strand/record-type.js'
import type { TokenClaims } from './jwt.js'

/** What a user's token can be allowed to do with a record (docs/adr/0012-row-policies.md). */
export const policyActions = ['read', 'write', 'delete', 'erase'] as const

export type PolicyAction = (typeof policyActions)[number]

/**
 * One row policy of an agent: allows its actions on records for which all conditions hold. The value of a condition is
 * a literal or a placeholder; for `in`, the items of a literal list may be placeholders too.
 */
export interface Policy {
  actions: PolicyAction[]
  conditions: Condition[]
  /** Types of records that it is about, as in queries; absent: all but reserved ones (src/strand/record-type.ts). */
  types?: string[]
}

/** The claims that placeholders name. */
export type PolicyClaims = Pick<
  TokenClaims,
  'sub' | 'email' | 'verified_email' | 'app_metadata' | 'user_metadata'
>

/** Every placeholder begins with this, and no other text may. */
const SIGN = '$jwt.'

// Further steps of the key descend into objects: `$jwt.app_metadata.team.id`.
const placeholderShape = /^\$jwt\.(?:sub|email|verified_email|(?:app_metadata|user_metadata)(?:\.[^.\s]+)+)$/

/** Claims that prove less than a policy may assume, and why: at the path itself, or below it. */
const doubtful = [
  {
    claim: 'email',
    why: 'which nobody may have proven to own: $jwt.verified_email is there once the user came in by the mailbox',
  },
  { claim: 'user_metadata', why: 'which users write themselves' },
] as const

const PLACEHOLDER_CHARS_MAX = 256

/** A policy for one action. */
export type ResolvedPolicy = Pick<Policy, 'conditions' | 'types'>

/** A record that policies decide about. */
export interface JudgedRecord {
  type: string
  /** Canonical JSON. */
  body: Uint8Array
}

/**
 * What policies allow one user for one action: these policies, and the values of the placeholders that they name, each
 * once, however often it is named.
 */
export interface GrantParts {
  policies: ResolvedPolicy[]
  /** By placeholder; those that the user lacks are absent. */
  values: Record<string, unknown>
}

/** The policies that allow an action, and the claims of a user that they name. */
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
 * Puts the values of a grant into its policies.
 * @returns the policies that are left, for `allows`. A policy whose conditions name a claim that the
 *   user lacks is left out, since a missing claim never matches, under `ne` no more than under `eq`.
 */
export function resolveGrant({ policies, values }: GrantParts): ResolvedPolicy[] {
  return policies.flatMap(({ conditions, ...policy }) => {
    const resolved = resolveAll(conditions, values)
    return resolved === undefined ? [] : [{ ...policy, conditions: resolved }]
  })
}

/** Puts a user's claims into the policies that allow an action. */
export function resolvePolicies(
  policies: readonly Policy[],
  action: PolicyAction,
  claims: PolicyClaims,
): ResolvedPolicy[] {
  return resolveGrant(grantFor(policies, action, claims))
}

/**
 * Whether one of the resolved policies allows a record. Without policies nothing is allowed.
 * @param effort the cost of comparing is added to it
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

function resolveAll(conditions: readonly Condition[], values: Values): Condition[] | undefined {
  const resolved: Condition[] = []
  for (const condition of conditions) {
    const value = resolveValue(condition, values)
    if (value === undefined) return undefined
    resolved.push({ ...condition, value })
  }
  return resolved
}

function resolveValue({ op, value }: Condition, values: Values): unknown {
  if (op === 'exists') return value !== false
  if (op !== 'in' || !Array.isArray(value)) return resolveOne(value, values)
  return value.map((item) => resolveOne(item, values)).filter((item) => item !== undefined)
}

/** A literal as it is; for a placeholder the claim, or `undefined` when the user lacks it. */
function resolveOne(value: unknown, values: Values): unknown {
  return isPlaceholder(value) ? values[value] : value
}

/** Every placeholder that the conditions of policies name. */
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
  const path = placeholder.slice(SIGN.length)
  return path.split('.').includes('__proto__') ? undefined : fieldOf(claims, path)
}

/**
 * The most bytes that policies can take with the claims of any user put in. Claims whose paths have the same length have
 * no member in common, so all of them together are no longer than the metadata of a user.
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
 * What is wrong with policies that have the right shape: unknown placeholders, values that their operator can never
 * match, and whatever exceeds its bound.
 * @returns faults with pointers into the body of `PUT /v1/agents/:agent/policies`, code `validation_failed`
 */
export function policyFaults(policies: readonly Policy[]): Fault[] {
  return policies.flatMap(({ conditions }, index) => {
    const pointer = `/policies/${index}/conditions`
    if (conditions.length > conditionLimits.whereConditionsMax) {
      return [fault(pointer, `Expected at most ${conditionLimits.whereConditionsMax} conditions`)]
    }
    return conditions.flatMap((condition, place) => conditionFaults(condition, `${pointer}/${place}`))
  })
}

/**
 * What else is wrong with policies that are to be set: lists that are too long or name a placeholder twice, and fields
 * that begin with `/` and are no JSON Pointer. Imported strands can have such ones from before that was refused.
 */
export function newerFaults(policies: readonly Policy[]): Fault[] {
  return policies.flatMap(({ conditions }, index) =>
    conditions.flatMap(({ field, op, value }, place) => {
      const pointer = `/policies/${index}/conditions/${place}`
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

function conditionFaults({ field, op, value }: Condition, pointer: string): Fault[] {
  const faults: Fault[] = []
  if (!field.startsWith('/') && !leadsToField(field)) faults.push(fault(`${pointer}/field`, fieldPathDetail))
  if (!isPlaceholder(value)) {
    const detail = literalFault(op, value)
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

function literalFault(op: Condition['op'], value: unknown): string | undefined {
  if (op === 'exists') return typeof value === 'boolean' ? undefined : 'Expected true or false with exists'
  if (op === 'in') {
    if (!Array.isArray(value)) return 'Expected a list, or a placeholder, with in'
    const wrong = value.some((item) => (isPlaceholder(item) ? !isWholePlaceholder(item) : holdsSign(item)))
    return wrong ? placeholderDetail : undefined
  }
  if (op !== 'eq' && op !== 'ne' && typeof value !== 'number' && typeof value !== 'string') {
    return `Expected a number or a string with ${op}`
  }
  return holdsSign(value) ? 'Expected no placeholder within an object or a list' : undefined
}

/**
 * Whether a list or object contains a text that begins like a placeholder anywhere within it, where none is resolved.
 */
function holdsSign(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isPlaceholder(value)
  return Object.values(value).some(holdsSign)
}

function isPlaceholder(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith(SIGN)
}

function isWholePlaceholder(value: string): boolean {
  if (value.length > PLACEHOLDER_CHARS_MAX || value.split('.').includes('__proto__')) return false
  return placeholderShape.test(value)
}

function fault(pointer: string, detail: string): Fault {
  return { pointer, code: 'validation_failed', detail }
}

/**
 * Warnings for the answer to `PUT /v1/agents/:agent/policies`: a policy on `$jwt.email` or `$jwt.user_metadata` is
 * accepted, but anyone can register with any e-mail, and each user can write anything into user_metadata. So is one that
 * only wants fields to be absent, which are absent in most records that the policy's author has not thought of.
 */
export function policyWarnings(policies: readonly Policy[]): string[] {
  return policies.flatMap(({ conditions }, index) => [
    ...conditions.flatMap(({ value }, place) =>
      doubtsOf(value).map(
        ({ claim, why }) => `/policies/${index}/conditions/${place} compares with ${SIGN}${claim}, ${why}`,
      ),
    ),
    ...(conditions.length > 0 && conditions.every(isAbsence)
      ? [`/policies/${index}/conditions hold of every record without these fields, whatever it contains`]
      : []),
  ])
}

function isAbsence({ op, value }: Condition): boolean {
  return op === 'exists' && value === false
}

function doubtsOf(value: unknown): (typeof doubtful)[number][] {
  const named = (Array.isArray(value) ? value : [value])
    .filter(isPlaceholder)
    .map((item) => item.slice(SIGN.length).split('.')[0])
  return doubtful.filter(({ claim }) => named.includes(claim))
}
