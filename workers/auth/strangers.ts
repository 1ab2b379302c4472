import type { CountedType } from '../store/auth-rows.js'
import type { NamespaceState } from './namespace-state.js'

/*
 * What strangers do to e-mails that no account has, or do to one e-mail again and again: it is counted, and told of
 * together. A record for each would be one that stays for ever for whatever somebody makes up.
 */

/** What is told of so, and how it went. */
const outcomes = {
  'auth/magic_link_sent': undefined,
  'auth/login_failed': 'failure',
  'auth/locked': 'failure',
  'auth/register': 'failure',
} as const satisfies Record<CountedType, 'failure' | undefined>

/** How long is counted before it is told of, milliseconds. */
const TOGETHER_MS = 60_000

/** As long as the id of a user, for what is computed and not written. */
export const nobodysId = `usr_${'0'.repeat(32)}`

/** One time that something happened to an e-mail. */
export interface Happened {
  type: CountedType
  /** Whether it is counted here: else it is told of by itself, and as much is written here. */
  counted: boolean
}

/** Counts what happened to an e-mail. It reads and writes as much for an e-mail that is told of by itself. */
export function countTogether(namespace: NamespaceState, { type, counted }: Happened): void {
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
    counts: { ...row.counts, [type]: counted ? count + 1 : count },
    ...((!counted || row.ip === ip) && { ip: row.ip }),
    ...((!counted || row.userAgent === userAgent) && { userAgent: row.userAgent }),
  })
}

/** Tells of what was counted in a minute that is over: one record of a type, with its count. */
export function tellTogether(namespace: NamespaceState): void {
  const row = namespace.find('untold', '')
  if (row === undefined) return
  const leftMs = row.dueAtMs - namespace.nowMs
  // Longer only when the clock was set back.
  if (leftMs > 0 && leftMs <= TOGETHER_MS) return
  namespace.remove('untold', '')
  const { counts, ip, userAgent } = row
  for (const type of countedTypes) {
    const count = counts[type] ?? 0
    const outcome = outcomes[type]
    const origin = { ip, userAgent }
    if (count > 0) namespace.audit(type, { count, origin, ...(outcome !== undefined && { outcome }) })
  }
}

const countedTypes: readonly CountedType[] = [
  'auth/magic_link_sent',
  'auth/login_failed',
  'auth/locked',
  'auth/register',
]
