import { type SignInFailure, signInMethods } from '../../src/auth/sign-in-failure.js'
import type { CountedType, UntoldRow } from '../store/tables/auth-rows.js'
import type { NamespaceState } from './namespace-state.js'

/*
 * What strangers do with e-mails that no account has, or do with one e-mail again and again, is counted and recorded
 * together (docs/adr/0032-strangers-and-devices.md). With a record for each, anybody could fill the strand with records
 * that stay for ever.
 */

/** The types of record that are counted together, and their outcome. */
const outcomes = {
  'auth/magic_link_sent': undefined,
  'auth/login_failed': 'failure',
  'auth/locked': 'failure',
  'auth/register': 'failure',
} as const satisfies Record<CountedType, 'failure' | undefined>

/** How long events are counted before they are recorded, milliseconds. */
const TOGETHER_MS = 60_000

/** As long as the id of a user, for decoys. */
export const nobodysId = `usr_${'0'.repeat(32)}`

/** One time that something happened to an e-mail. */
export interface Happened {
  type: CountedType
  /** Whether it is counted here; otherwise it has a record of its own, and as much is written here. */
  counted: boolean
  /** Of `auth/login_failed`. */
  failure?: SignInFailure
}

/** Counts what happened to an e-mail. For an e-mail that has records of its own, it reads and writes as much. */
export function countTogether(namespace: NamespaceState, { type, counted, failure }: Happened): void {
  const { ip, userAgent } = namespace.origin
  const row = namespace.find('untold', '') ?? {
    dueAtMs: namespace.nowMs + TOGETHER_MS,
    counts: {},
    ip,
    userAgent,
  }
  const count = row.counts[type] ?? 0
  namespace.put(['untold', ''], {
    dueAtMs: row.dueAtMs,
    counts: { ...row.counts, [type]: counted && failure === undefined ? count + 1 : count },
    failures: withFailure(row.failures, failure, counted),
    ...((!counted || row.ip === ip) && { ip: row.ip }),
    ...((!counted || row.userAgent === userAgent) && { userAgent: row.userAgent }),
  })
}

function withFailure(
  failures: NonNullable<UntoldRow['failures']> = {},
  failure: SignInFailure | undefined,
  counted: boolean,
): NonNullable<UntoldRow['failures']> {
  if (failure === undefined) return failures
  const { method, reason } = failure
  const before = failures[method] ?? { count: 0, reason }
  const same = before.reason === reason ? { reason } : {}
  return { ...failures, [method]: counted ? { count: before.count + 1, ...same } : before }
}

/** Records what was counted in the minute before: one record for each type, with its count. */
export function tellTogether(namespace: NamespaceState): void {
  const row = namespace.find('untold', '')
  if (row === undefined) return
  const leftMs = row.dueAtMs - namespace.nowMs
  // Longer only when the clock was set back.
  if (leftMs > 0 && leftMs <= TOGETHER_MS) return
  namespace.remove('untold', '')
  const { counts, failures = {}, ip, userAgent } = row
  for (const type of countedTypes) {
    const count = counts[type] ?? 0
    const outcome = outcomes[type]
    const origin = { ip, userAgent }
    if (count > 0) namespace.audit(type, { count, origin, ...(outcome !== undefined && { outcome }) })
    if (type !== 'auth/login_failed') continue
    for (const method of signInMethods) {
      const { count: failed = 0, ...why } = failures[method] ?? {}
      const failure = { method, ...why }
      if (failed > 0) namespace.audit(type, { count: failed, origin, outcome: 'failure', failure })
    }
  }
}

const countedTypes: readonly CountedType[] = [
  'auth/magic_link_sent',
  'auth/login_failed',
  'auth/locked',
  'auth/register',
]
