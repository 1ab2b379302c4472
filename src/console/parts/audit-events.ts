import type { PagedQueryBody, ServiceClient, WhereCondition } from '../../client/index.js'
import { isoOf } from './format.js'
import { type RecordRow, rowOfQuery } from './records/record-row.js'

/** The agent on whose strand the server records actions on itself (docs/FORMAT.md, The audit strand). */
export const serverAudit = 'server::audit'

const MEMBER_OF_ORGANISM = '::auth'

/** The agent that takes the audit records of an organism's users (docs/adr/0017-organisms.md). */
export function auditAgentOf(organism: string): string {
  return organism + MEMBER_OF_ORGANISM
}

/** What each type of audit record tells, in the order of the list of types. */
export const authMeanings: Record<string, string> = {
  'auth/login': 'Signed in by password',
  'auth/login_failed': 'Sign-in failed',
  'auth/locked': 'Locked after failed sign-ins',
  'auth/logout': 'Signed out',
  'auth/magic_link_sent': 'Magic link asked for',
  'auth/magic_link_login': 'Signed in by magic link',
  'auth/oauth_login': 'Signed in by a provider',
  'auth/passkey_login': 'Signed in by passkey',
  'auth/passkey_registered': 'Passkey added',
  'auth/passkey_removed': 'Passkey removed',
  'auth/register': 'Registered',
  'auth/email_verified': 'E-mail verified',
  'auth/password_changed': 'Password changed',
  'auth/token_revoked': 'Token revoked',
  'auth/refresh_reused': 'Refresh token used twice',
  'auth/app_metadata_updated': 'app_metadata replaced',
  'auth/user_metadata_updated': 'user_metadata replaced',
  'auth/user_deleted': 'User deleted',
  'auth/unlocked': 'Unlocked by an administrator',
  'auth/sessions_ended': 'Sessions ended by an administrator',
  'auth/namespace_initialised': 'Users of an organism began',
  'auth/key_rotated': 'Signing key of tokens changed',
}

/** What each type of record on the server's own strand tells (docs/FORMAT.md, The audit strand). */
export const serverMeanings: Record<string, string> = {
  'sys/api_key': 'API key',
  'sys/proposal': 'API key proposed',
  'sys/imported': 'Strand imported',
  'sys/restored': 'Server restored from a backup',
  'sys/loss_accepted': 'Loss of the cluster’s log accepted',
  'sys/license': 'License changed',
}

/** A span of time, Unix milliseconds; undefined for no bound. */
export interface Span {
  fromMs: number | undefined
  toMs: number | undefined
}

/** What of an audit strand is listed. */
export interface AuditFilter {
  span: Span
  /** One type; empty for all. */
  type: string
  outcome: '' | 'success' | 'failure'
  /** A user's id or the HMAC of an e-mail, 64 hex digits; empty for all. */
  user: string
}

/** The query of a filter. */
export function auditQuery(agent: string, { span, type, outcome, user }: AuditFilter): PagedQueryBody {
  const all = agent === serverAudit ? Object.keys(serverMeanings) : ['auth/*']
  const where: WhereCondition[] = []
  if (outcome !== '') where.push({ field: 'outcome', op: 'eq', value: outcome })
  if (user !== '') {
    const field = /^[0-9a-f]{64}$/.test(user) ? 'email_hmac' : 'user_id'
    where.push({ field, op: 'eq', value: user })
  }
  return {
    type: 'time_range',
    order: 'desc',
    types: type === '' ? all : [type],
    ...(where.length > 0 && { where }),
    ...(span.fromMs !== undefined && { from_ts: isoOf(span.fromMs) }),
    ...(span.toMs !== undefined && { to_ts: isoOf(span.toMs) }),
  }
}

/** One page of audit records. */
export interface AuditRows {
  rows: RecordRow[]
  next: string | undefined
}

/** Reads one page of a query. */
export async function readAudit(
  service: ServiceClient,
  agent: string,
  { query, signal }: { query: PagedQueryBody; signal: AbortSignal },
): Promise<AuditRows> {
  const found = await service.agent<unknown>(agent).query(query, { signal })
  return { rows: found.records.map(rowOfQuery), next: found.next_cursor ?? undefined }
}

/** A failure, or some that one record stands for. */
export interface Failed {
  ms: number
  count: number
}

const FAILURES_MAX = 5_000
const FAILURES_PAGE = 1_000

/** The failures of a filter's span, newest first; `isCut` where there are more than are read. */
export async function readFailures(
  service: ServiceClient,
  agent: string,
  { filter, signal }: { filter: AuditFilter; signal: AbortSignal },
): Promise<{ failures: Failed[]; isCut: boolean }> {
  const query = { ...auditQuery(agent, { ...filter, outcome: 'failure' }), limit: FAILURES_PAGE }
  const failures: Failed[] = []
  for await (const record of service.agent<unknown>(agent).queryAll(query, { signal })) {
    const { ms, members, type } = rowOfQuery(record)
    // A lock is what failures led to, not one more.
    if (type === 'auth/locked') continue
    failures.push({ ms, count: typeof members.count === 'number' ? members.count : 1 })
    if (failures.length === FAILURES_MAX) return { failures, isCut: true }
  }
  return { failures, isCut: false }
}

/** Seqs from one record to another, both included. */
export interface SeqSpan {
  from: number
  to: number
}

/** The first and the last record of a strand in a span, of whatever type; undefined where there is none. */
export async function seqsOfSpan(
  service: ServiceClient,
  agent: string,
  span: Span,
): Promise<SeqSpan | undefined> {
  const body = { ...auditQuery(agent, { span, type: '*', outcome: '', user: '' }), limit: 1 }
  const handle = service.agent<unknown>(agent)
  const [first, last] = await Promise.all([handle.query({ ...body, order: 'asc' }), handle.query(body)])
  const [from, to] = [first.records[0]?.seq, last.records[0]?.seq]
  return from === undefined || to === undefined ? undefined : { from, to }
}

/** An audit record in words. */
export interface ToldEvent {
  what: string
  who: string
  /** The whole of what `who` is the end of. */
  whoWhole: string
  address: string
  device: string
  outcome: string
}

const DIGITS = 8

/** What a record of an audit strand tells. */
export function toldBy({ type, members }: RecordRow): ToldEvent {
  const text = (name: string): string => {
    const value = members[name]
    return typeof value === 'string' ? value : ''
  }
  const meaning: string = { ...serverMeanings, ...authMeanings }[type] ?? type
  if (type.startsWith('sys/')) {
    const state = text('change') || text('state')
    const whoWhole = text('principal')
    return {
      what: [meaning, state, text('key_id') || text('agent')].filter((part) => part !== '').join(' '),
      who: whoWhole,
      whoWhole,
      address: '',
      device: '',
      outcome: text('code'),
    }
  }
  const { count } = members
  const [id, hmac] = [text('user_id'), text('email_hmac')]
  return {
    what:
      [meaning, text('method'), text('reason')].filter((part) => part !== '').join(' · ') +
      countText(type, count),
    who: whoText(id, hmac, count !== undefined),
    whoWhole: id === '' ? hmac : id,
    address: text('ip'),
    device: text('user_agent'),
    outcome: text('outcome'),
  }
}

/** What strangers do is counted and recorded together, without naming anybody (docs/adr/0032-strangers-and-devices.md). */
function whoText(id: string, hmac: string, isCounted: boolean): string {
  if (id !== '') return `…${id.slice(-DIGITS)}`
  if (hmac !== '') return `e-mail …${hmac.slice(-DIGITS)}`
  return isCounted ? 'counted together' : ''
}

/** Records of what ended count what they ended; others how often it happened. */
function countText(type: string, count: unknown): string {
  if (typeof count !== 'number') return ''
  if (type === 'auth/sessions_ended' || type === 'auth/passkey_removed') return `: ${count}`
  return count > 1 ? `, ${count} times` : ''
}
