import type { PagedQueryBody, ServiceClient, WhereCondition } from '../../client/index.js'
import { isoOf } from './format.js'
import { type RecordRow, rowOfQuery } from './records/record-row.js'

/** The agent with the audit records of the server itself (docs/FORMAT.md, The audit strand). */
export const serverAudit = 'server::audit'

const AUDIT_SUFFIX = '::auth'

/** The agent with the audit records of an organism's users (docs/adr/0017-organisms.md). */
export function auditAgentOf(organism: string): string {
  return organism + AUDIT_SUFFIX
}

/** The organism whose users' audit records an agent has; undefined for users without an organism. */
export function organismOf(agent: string): string | undefined {
  return agent.endsWith(AUDIT_SUFFIX) ? agent.slice(0, -AUDIT_SUFFIX.length) : undefined
}

/** The label of each type of audit record, in the order of the list of types. */
export const authMeanings: Record<string, string> = {
  'auth/login': 'Signed in by password',
  'auth/login_failed': 'Sign-in failed',
  'auth/locked': 'Locked after failed sign-ins',
  'auth/logout': 'Signed out',
  'auth/magic_link_sent': 'Magic link requested',
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
  'auth/namespace_initialised': 'Users of an organization initialized',
  'auth/key_rotated': 'Signing key of tokens changed',
}

/** The label of each type of record on the server's audit strand (docs/FORMAT.md, The audit strand). */
export const serverMeanings: Record<string, string> = {
  'sys/api_key': 'API key',
  'sys/proposal': 'API key proposed',
  'sys/imported': 'Strand imported',
  'sys/restored': 'Server restored from a backup',
  'sys/loss_accepted': 'Loss of the cluster’s log accepted',
  'sys/license': 'License changed',
}

/** A span of time in Unix milliseconds; undefined means unbounded. */
export interface Span {
  fromMs: number | undefined
  toMs: number | undefined
}

export interface AuditFilter {
  span: Span
  /** One record type; empty for all. */
  type: string
  outcome: '' | 'success' | 'failure'
  /** The id of a user, or the HMAC of an e-mail (64 hex digits); empty for all. */
  user: string
}

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

export interface AuditRows {
  rows: RecordRow[]
  next: string | undefined
}

export async function readAudit(
  service: ServiceClient,
  agent: string,
  { query, signal }: { query: PagedQueryBody; signal: AbortSignal },
): Promise<AuditRows> {
  const found = await service.agent<unknown>(agent).query(query, { signal })
  return { rows: found.records.map(rowOfQuery), next: found.next_cursor ?? undefined }
}

/** Failures that one record reports: one, or a number of aggregated ones. */
export interface FailureEntry {
  ms: number
  count: number
}

const FAILURES_MAX = 5_000
const FAILURES_PAGE = 1_000

/** Reads the failures of a filter's span, newest first; `isCut` if there are more than `FAILURES_MAX`. */
export async function readFailures(
  service: ServiceClient,
  agent: string,
  { filter, signal }: { filter: AuditFilter; signal: AbortSignal },
): Promise<{ failures: FailureEntry[]; isCut: boolean }> {
  const query = { ...auditQuery(agent, { ...filter, outcome: 'failure' }), limit: FAILURES_PAGE }
  const failures: FailureEntry[] = []
  for await (const record of service.agent<unknown>(agent).queryAll(query, { signal })) {
    const { ms, members, type } = rowOfQuery(record)
    // A lock is the consequence of failures, not another failure.
    if (type === 'auth/locked') continue
    failures.push({ ms, count: typeof members.count === 'number' ? members.count : 1 })
    if (failures.length === FAILURES_MAX) return { failures, isCut: true }
  }
  return { failures, isCut: false }
}

/** A range of seqs, both ends included. */
export interface SeqSpan {
  from: number
  to: number
}

/** The first and the last record of a strand in a span, of any type; undefined if there is none. */
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

interface EventDescription {
  event: string
  /** The API key or the agent that the event is about; empty if there is none. */
  about: string
  /** The author of an event of the server; empty for events of users. */
  principal: string
  /** The id of the user; empty if the record has none. */
  userId: string
  /** The text for a user without an id. */
  user: string
  /** The HMAC that `user` shows the last digits of. */
  hmac: string
  address: string
  device: string
  outcome: string
}

const DIGITS = 8

/** Describes a record of an audit strand. */
export function describeEvent({ type, members }: RecordRow): EventDescription {
  const text = (name: string): string => {
    const value = members[name]
    return typeof value === 'string' ? value : ''
  }
  const meaning: string = { ...serverMeanings, ...authMeanings }[type] ?? type
  if (type.startsWith('sys/')) {
    const stored = text('change') || text('state')
    // Records store `made` for a created key.
    const state = stored === 'made' ? 'created' : stored
    return {
      event: [meaning, state].filter((part) => part !== '').join(' '),
      about: text('key_id') || text('agent'),
      principal: text('principal'),
      userId: '',
      user: '',
      hmac: '',
      address: '',
      device: '',
      outcome: text('code'),
    }
  }
  const { count } = members
  const [id, hmac] = [text('user_id'), text('email_hmac')]
  return {
    event:
      [meaning, text('method'), text('reason')].filter((part) => part !== '').join(' · ') +
      countText(type, count),
    about: '',
    principal: '',
    userId: id,
    user: userText(hmac, count !== undefined),
    hmac,
    address: text('ip'),
    device: text('user_agent'),
    outcome: text('outcome'),
  }
}

/** Anonymous events are aggregated and name no user (docs/adr/0032-strangers-and-devices.md). */
function userText(hmac: string, isCounted: boolean): string {
  if (hmac !== '') return `e-mail …${hmac.slice(-DIGITS)}`
  return isCounted ? 'anonymous, aggregated' : ''
}

/** The count of a record: of ended sessions or removed passkeys, otherwise of occurrences. */
function countText(type: string, count: unknown): string {
  if (typeof count !== 'number') return ''
  if (type === 'auth/sessions_ended' || type === 'auth/passkey_removed') return `: ${count}`
  return count > 1 ? `, ${count} times` : ''
}
