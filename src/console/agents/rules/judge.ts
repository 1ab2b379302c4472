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
import { type Condition, matchesAll } from '../../../strand/condition.js'
import { isGranted } from '../../../strand/record-type.js'

/** What users' tokens are asked for, with which claims. */
export interface Asked {
  action: PolicyAction
  claims: PolicyClaims
}

/** Why a rule does or does not allow a record; rules and conditions are counted from 0. */
export type Reason =
  /** All conditions hold. */
  | { kind: 'allows'; rule: number }
  /** It is about records of other types. */
  | { kind: 'types'; rule: number }
  /** The first condition that does not hold. */
  | { kind: 'fails'; rule: number; condition: number }
  /** The first condition whose claim the token lacks. */
  | { kind: 'lacks'; rule: number; condition: number }

/** What rules say of a record: for an allowed one the rule that allows it, else why the first rules do not. */
export interface Judgement {
  allowed: boolean
  reasons: Reason[]
  /** Rules for the action whose reasons are left out. */
  more: number
}

/** Each reason costs a pass through the body for each condition. */
const REASONS_MAX = 3
/** What an erased body reads as, to the server's rules too. */
const ERASED = 'null'

/** A record as rules look at it. `body`: its canonical text; undefined where it is erased. */
export interface TriedRecord {
  type: string
  body: string | undefined
}

/** A rule about the action. `resolved`: its conditions with the claims put in; undefined where the token lacks one. */
interface Rule extends Omit<ResolvedPolicy, 'conditions'> {
  rule: number
  conditions: readonly Condition[]
  resolved: readonly Condition[] | undefined
}

/** Judges records as the server does, by the server's own functions (src/auth/row-policy.ts). */
export class Judge {
  readonly #asked: Asked
  readonly #resolved: readonly ResolvedPolicy[]
  readonly #rules: readonly Rule[]

  constructor(policies: readonly Policy[], asked: Asked) {
    const { action, claims } = asked
    this.#asked = asked
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
      const { claims } = this.#asked
      const lacking = conditions.findIndex((one) => resolveOne(one, claims) === undefined)
      return { kind: 'lacks', rule, condition: lacking }
    }
    return { kind: 'fails', rule, condition: resolved.findIndex((one) => !matchesAll(body, [one])) }
  }
}

function resolveOne(condition: Condition, claims: PolicyClaims): readonly Condition[] | undefined {
  return resolvePolicies([{ actions: ['read'], conditions: [condition] }], 'read', claims)[0]?.conditions
}

/** Work between two moments in which the page draws and listens, milliseconds. */
const SLICE_MS = 30

/**
 * Judges records one after another by several sets of rules; undefined for a set that cannot be tried.
 * @returns for each record what each set says
 * @throws the signal's reason
 */
export async function judgeAll(
  judges: readonly (Judge | undefined)[],
  records: readonly TriedRecord[],
  { signal, onProgress }: { signal: AbortSignal; onProgress: (done: number) => void },
): Promise<(Judgement | undefined)[][]> {
  const judgements: (Judgement | undefined)[][] = []
  let beganMs = performance.now()
  for (const record of records) {
    judgements.push(judges.map((judge) => judge?.judge(record)))
    if (performance.now() - beganMs < SLICE_MS) continue
    onProgress(judgements.length)
    await new Promise((resolve) => setTimeout(resolve))
    signal.throwIfAborted()
    beganMs = performance.now()
  }
  return judgements
}
