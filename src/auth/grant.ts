import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { assert } from '../base/assert.js'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits/limits.js'
import { listOf, members, oneOf, optional, isText, type Check } from '../base/shape.js'
import { policyOperators, type PolicyCondition } from '../strand/operators.js'
import {
  grantFor,
  resolveGrant,
  type GrantParts,
  type Policy,
  type PolicyAction,
  type PolicyClaims,
  type ResolvedPolicy,
} from './row-policy.js'

/*
 * A grant is what the policies of an agent allow one user. It is compiled once for each version of the
 * policies and each set of claims. Each thread has one cache, which queries, writes, streams and exports
 * share.
 */

/** A grant for transfer between threads. */
export interface GrantText {
  /** Equal grants have equal keys: a digest of policies, action and claims. */
  key: string
  /** `GrantParts` as JSON, at most `limits.grantBytesMax` bytes. */
  text: string
}

/** A grant that can be checked against records. */
export interface Grant extends GrantText {
  /** The policies with the values of claims; the same object while the grant is cached. */
  policies: ResolvedPolicy[]
}

/** 403 if the policies and claims of a user are too large together. */
export const grantTooLarge: Refusal = refuse(
  'grant_too_large',
  `The policies of the agent, with the claims of the token, take more than ${limits.grantBytesMax} bytes`,
)

/** The grant of a user that may not read anything. */
export const emptyGrant: GrantText = { key: '', text: JSON.stringify({ policies: [], values: {} }) }

const cache = new LRUCache<string, Grant | Refusal>({
  maxSize: limits.cachedGrantBytesMax,
  sizeCalculation: (grant) => ('code' in grant ? ENTRY_BYTES : memoryOf(grant)),
})

/** Digests of lists of policies. A change of the policies of an agent creates a new list. */
const digests = new WeakMap<readonly Policy[], string>()

/** The grant of a user for an action, or 403 grant_too_large. */
export function grantOfPolicies(
  policies: readonly Policy[],
  action: PolicyAction,
  claims: PolicyClaims,
): Grant | Refusal {
  const key = digestOf(`${policiesDigest(policies)} ${action} ${JSON.stringify(claims)}`)
  const known = cache.get(key)
  if (known !== undefined) return known
  const parts = grantFor(policies, action, claims)
  const text = JSON.stringify(parts)
  const isLarge = Buffer.byteLength(text) > limits.grantBytesMax
  const grant = isLarge ? grantTooLarge : { key, text, policies: resolveGrant(parts) }
  cache.set(key, grant)
  return grant
}

/** Parses a grant from another thread. */
export function grantOfText({ key, text }: GrantText): Grant {
  const known = cache.get(key)
  if (known !== undefined && !('code' in known)) return known
  // Copied, because a slice of a frame would retain the whole frame in memory.
  const copy = Buffer.from(text).toString()
  const parts: unknown = JSON.parse(copy)
  assert(isGrantParts(parts), 'a grant from another thread is valid')
  const grant = { key, text: copy, policies: resolveGrant(parts) }
  cache.set(key, grant)
  return grant
}

const isAnything: Check<unknown> = (_value): _value is unknown => true

const isGrantParts: Check<GrantParts> = members<GrantParts>({
  policies: listOf(
    members<GrantParts['policies'][number]>({
      conditions: listOf(
        members<PolicyCondition>({ field: isText, op: oneOf(...policyOperators), value: isAnything }),
      ),
      types: optional(listOf(isText)),
    }),
  ),
  values: (value): value is GrantParts['values'] => typeof value === 'object' && value !== null,
})

function policiesDigest(policies: readonly Policy[]): string {
  const known = digests.get(policies)
  if (known !== undefined) return known
  const digest = digestOf(JSON.stringify(policies))
  digests.set(policies, digest)
  return digest
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

/** Approximate memory of an entry without its text and conditions. */
const ENTRY_BYTES = 512
/** Approximate memory of a compiled condition, and of an item in its list. */
const CONDITION_BYTES = 384
const ITEM_BYTES = 64

/** Approximate memory of a grant, bytes. A list that several conditions share is compiled once. */
function memoryOf({ text, policies }: Grant): number {
  const lists = new Set<unknown[]>()
  let bytes = ENTRY_BYTES + 4 * text.length
  for (const { value } of policies.flatMap(({ conditions }) => conditions)) {
    bytes += CONDITION_BYTES
    if (!Array.isArray(value) || lists.has(value)) continue
    lists.add(value)
    bytes += value.length * ITEM_BYTES
  }
  return bytes
}
