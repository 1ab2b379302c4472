import {
  allows,
  type JudgedRecord,
  type Policy,
  type PolicyAction,
  type PolicyClaims,
  type ResolvedPolicy,
  resolvePolicies,
} from '../../../auth/row-policy.js'
import { utf8 } from '../../../proof/hex.js'
import { matchesAll } from '../../../strand/condition.js'
import { type PolicyCondition } from '../../../strand/operators.js'
import { isGranted } from '../../../strand/record-type.js'

export interface AccessRequest {
  action: PolicyAction
  claims: PolicyClaims
}

/** Why a rule does or does not allow a record. `rule` and `condition` are indices. */
export type Reason =
  /** All conditions hold. */
  | { kind: 'allows'; rule: number }
  /** The rule covers other record types. */
  | { kind: 'types'; rule: number }
  /** `condition` is the first that does not hold. */
  | { kind: 'fails'; rule: number; condition: number }
  /** `condition` is the first that refers to a claim missing in the token. */
  | { kind: 'lacks'; rule: number; condition: number }

/** The decision about a record. `reasons` has the rule that allows it, or why the first rules do not. */
export interface Judgement {
  allowed: boolean
  reasons: Reason[]
  /** The number of further rules for the action, without reasons. */
  more: number
}

/** Limited, because each reason evaluates all conditions of a rule against the body. */
const REASONS_MAX = 3
/** The text that stands for an erased body, as in the server. */
const ERASED = 'null'

/** The input of rules. `body` is the canonical text; undefined if it is erased. */
export interface TriedRecord {
  type: string
  body: string | undefined
}

/**
 * A rule for the action. `resolved`: its conditions with the claims inserted; undefined if the token lacks
 * one.
 */
interface Rule extends Omit<ResolvedPolicy, 'conditions'> {
  rule: number
  conditions: readonly PolicyCondition[]
  resolved: readonly PolicyCondition[] | undefined
}

/** Evaluates rules with the server's own functions (src/auth/row-policy.ts). */
export class Judge {
  readonly #claims: PolicyClaims
  readonly #resolved: readonly ResolvedPolicy[]
  readonly #rules: readonly Rule[]

  constructor(policies: readonly Policy[], { action, claims }: AccessRequest) {
    this.#claims = claims
    this.#resolved = resolvePolicies(policies, action, claims)
    this.#rules = policies.flatMap((policy, rule) => {
      const { actions, ...about } = policy
      if (!actions.includes(action)) return []
      return [{ rule, ...about, resolved: resolvePolicies([policy], action, claims)[0]?.conditions }]
    })
  }

  judge({ type, body }: TriedRecord): Judgement {
    const record = { type, body: utf8(body ?? ERASED) }
    if (!allows(this.#resolved, record)) {
      const reasons = this.#rules.slice(0, REASONS_MAX).map((rule) => this.#whyNot(rule, record))
      return { allowed: false, reasons, more: this.#rules.length - reasons.length }
    }
    const rule = this.#rules.find(
      ({ types, resolved }) =>
        isGranted(type, types) && resolved !== undefined && matchesAll(record.body, resolved),
    )
    const reasons = rule === undefined ? [] : [{ kind: 'allows' as const, rule: rule.rule }]
    return { allowed: true, reasons, more: 0 }
  }

  #whyNot({ rule, types, conditions, resolved }: Rule, { type, body }: JudgedRecord): Reason {
    if (!isGranted(type, types)) return { kind: 'types', rule }
    if (resolved === undefined) {
      const lacking = conditions.findIndex((one) => resolveOne(one, this.#claims) === undefined)
      return { kind: 'lacks', rule, condition: lacking }
    }
    return { kind: 'fails', rule, condition: resolved.findIndex((one) => !matchesAll(body, [one])) }
  }
}

function resolveOne(
  condition: PolicyCondition,
  claims: PolicyClaims,
): readonly PolicyCondition[] | undefined {
  return resolvePolicies([{ actions: ['read'], conditions: [condition] }], 'read', claims)[0]?.conditions
}

/** The longest work without yielding to the page. */
const SLICE_MS = 30

/**
 * Evaluates several sets of rules for each record; undefined stands for an invalid set.
 * @returns for each record the judgement of each set
 * @throws the signal's reason
 */
export async function judgeAll(
  judges: readonly (Judge | undefined)[],
  records: readonly TriedRecord[],
  { signal, onProgress }: { signal: AbortSignal; onProgress: (done: number) => void },
): Promise<(Judgement | undefined)[][]> {
  const judgements: (Judgement | undefined)[][] = []
  let sliceStartMs = performance.now()
  for (const record of records) {
    judgements.push(judges.map((judge) => judge?.judge(record)))
    if (performance.now() - sliceStartMs < SLICE_MS) continue
    onProgress(judgements.length)
    await new Promise((resolve) => setTimeout(resolve))
    signal.throwIfAborted()
    sliceStartMs = performance.now()
  }
  return judgements
}
