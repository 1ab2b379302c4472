import { type SignInFailure, signInMethods } from '../../src/auth/sign-in-failure.js'
import type { CountedType, AuthRows } from '../store/tables/auth-rows.js'
import type { NamespaceState } from './namespace-state.js'

/*
 * Counts the events of unknown clients: those for e-mails without an account, and repeated ones for an
 * e-mail. They share audit records (docs/adr/0032-strangers-and-devices.md), so that unknown clients cannot
 * fill the strand.
 */

/** The outcomes of the counted types of audit record. */
const outcomes = {
  'auth/magic_link_sent': undefined,
  'auth/login_failed': 'failure',
  'auth/locked': 'failure',
  'auth/register': 'failure',
} as const satisfies Record<CountedType, 'failure' | undefined>

/** How long events are counted before they are recorded, milliseconds. */
const FLUSH_INTERVAL_MS = 60_000

/** A placeholder of the length of a user id, for decoys. */
export const placeholderUserId = `usr_${'0'.repeat(32)}`

/** An event of an e-mail. */
export interface AnonymousEvent {
  type: CountedType
  /** Whether the event is counted; if not, it has a separate audit record, and as much is written. */
  counted: boolean
  /** The failure, for type `auth/login_failed`. */
  failure?: SignInFailure
}

/** Counts an event; reads and writes as much if the event is not `counted`. */
export function countAnonymous(namespace: NamespaceState, { type, counted, failure }: AnonymousEvent): void {
  const { ip, userAgent } = namespace.origin
  const row = namespace.find('untold', '') ?? {
    dueAtMs: namespace.nowMs + FLUSH_INTERVAL_MS,
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
  failures: NonNullable<AuthRows['untold']['failures']> = {},
  failure: SignInFailure | undefined,
  counted: boolean,
): NonNullable<AuthRows['untold']['failures']> {
  if (failure === undefined) return failures
  const { method, reason } = failure
  const before = failures[method] ?? { count: 0, reason }
  const same = before.reason === reason ? { reason } : {}
  return { ...failures, [method]: counted ? { count: before.count + 1, ...same } : before }
}

/** Writes one audit record with the count of each type, once the events have been counted for a minute. */
export function flushAnonymous(namespace: NamespaceState): void {
  const row = namespace.find('untold', '')
  if (row === undefined) return
  const leftMs = row.dueAtMs - namespace.nowMs
  // A longer time means that the clock was set back.
  if (leftMs > 0 && leftMs <= FLUSH_INTERVAL_MS) return
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
