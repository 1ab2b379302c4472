import { auditBody, type AuditEvent, type AuditType } from '../../src/auth/audit.js'
import { emailHmac } from '../../src/auth/email.js'
import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import type {
  AuthAnswer,
  AuthChange,
  AuthLookup,
  AuthOrigin,
  AuthOutcome,
  Revocation,
} from '../../src/protocol/auth-messages.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { findAgent, importOpen, noSuchAgent, noSuchOrganism, type ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import type { AuthKind, AuthRows } from '../store/tables/auth-rows.js'
import { keyBytesMax } from '../store/tables/checked-table.js'
import { authKey, pendingValue, auth } from '../store/tables/auth-table.js'
import { findOrganism } from '../store/tables/organisms.js'
import { mails } from '../store/tables/mails.js'

/** The maximum number of rows that a command reads, such as the sessions of a user. */
const ROWS_MAX = 10_000

/** The maximum number of audit records that a command appends. */
const AUDIT_RECORDS_MAX = 30

interface AuditContent extends Pick<AuditEvent, 'userId' | 'sid' | 'count' | 'failure'> {
  /** Written as its HMAC. */
  email?: string
  outcome?: AuditEvent['outcome']
  origin?: Pick<AuditEvent, 'ip' | 'userAgent'>
}

/** Kinds of rows that are found by the hash of a single-use token and are never listed. */
const singleUse: ReadonlySet<AuthKind> = new Set(['link', 'passkey-session', 'oauth-state'])

interface Writing {
  group: CommitGroup
  agent: Agent
  origin: AuthOrigin
  lineage?: string | undefined
}

/**
 * The result of a change. A refusal means that nothing was written; a function that returns a refusal means
 * that something was, such as a failed login.
 */
export type ChangeResult = AuthAnswer | Refusal | (() => Refusal)

/** The state of an auth namespace as of a commit group, with the changes of earlier commands in the group. */
export class NamespaceState {
  readonly state: ShardState
  /** The id of the organism; empty for the root namespace. */
  readonly id: string
  /** Whether this command put a mail into the outbox. */
  mailed = false
  /** The failed sign-in that this command recorded. */
  failure: AuthOutcome['failure']
  /** The user of whom tokens were revoked. */
  endedUser: string | undefined
  readonly #writing: Writing | undefined

  constructor(state: ShardState, id: string, writing?: Writing) {
    this.state = state
    this.id = id
    this.#writing = writing
  }

  /** The namespace of a lookup; 404 without the audit agent. */
  static toRead(state: ShardState, command: AuthLookup): NamespaceState | Refusal {
    if (state.store.agents.find(command.agent) === undefined) return missingNamespace(state, command)
    return new NamespaceState(state, command.namespace)
  }

  /** The namespace of a change; 404 without the audit agent, 503 clock_skew. */
  static of(state: ShardState, command: AuthChange, group: CommitGroup): NamespaceState | Refusal {
    const agent = findAgent(state, group, command.agent)
    if (agent === undefined) return missingNamespace(state, command)
    if (agent.importing) return importOpen(agent.name)
    const skew = group.reserve(AUDIT_RECORDS_MAX)
    const { namespace, origin, line: lineage } = command
    return skew ?? new NamespaceState(state, namespace, { group, agent, origin, lineage: lineage })
  }

  get nowMs(): number {
    return this.state.clock()
  }

  find<Kind extends AuthKind>(kind: Kind, id: string): AuthRows[Kind] | undefined {
    const key = this.#key(kind, id)
    const pending = this.#writing?.group.changes.find(auth)?.rows.get(key)
    if (pending === undefined) return this.state.store.tables.of(auth).find(kind, key)
    return pendingValue(kind, pending)
  }

  /** A row by its id; undefined, too, if it is invalid, which sets it aside. */
  findValid<Kind extends AuthKind>(kind: Kind, id: string): AuthRows[Kind] | undefined {
    return this.state.store.setAside.unlessInvalid(() => this.find(kind, id))
  }

  /** The ids of a kind that begin with `prefix`, in order. */
  ids(kind: AuthKind, prefix: string, page: { after?: string; limit?: number } = {}): string[] {
    const before = authKey(this.id, kind, '')
    const after = page.after === undefined || page.after === '' ? '' : before + page.after
    const stored = this.state.store.tables
      .of(auth)
      .keys(before + prefix, { after, limit: page.limit ?? ROWS_MAX })
    const keys = new Set(stored)
    for (const [key, { value }] of this.#writing?.group.changes.find(auth)?.rows ?? []) {
      if (!key.startsWith(before + prefix)) continue
      if (value === undefined) keys.delete(key)
      else keys.add(key)
    }
    return [...keys].map((key) => key.slice(before.length))
  }

  /** The number of stored rows of a kind whose ids begin with `prefix`, at most `countedRowsMax`. */
  countSome(kind: AuthKind, prefix: string): number {
    return this.state.store.tables.of(auth).countSome(authKey(this.id, kind, prefix))
  }

  /** The number of all stored rows of a kind. */
  total(kind: AuthKind): number {
    return this.state.store.tables.of(auth).total(this.id, kind)
  }

  /** Writes a row. @param expiresAtMs the time from which it may be swept; absent if it stays */
  put<Kind extends AuthKind>([kind, id]: [Kind, string], row: AuthRows[Kind], expiresAtMs?: number): void {
    const value = JSON.stringify(row)
    this.#write.group.changes.of(auth).rows.set(this.#keyToWrite(kind, id), {
      value,
      ...(expiresAtMs !== undefined && { expiresAtMs }),
    })
  }

  remove(kind: AuthKind, id: string): void {
    this.#write.group.changes.of(auth).rows.set(this.#keyToWrite(kind, id), {})
  }

  /** Revokes the tokens of a user with an id until `untilMs`. */
  revoke(userId: string, revocation: Revocation): void {
    if (revocation.untilMs <= this.nowMs) return
    this.endedUser = userId
    this.#write.group.changes.of(auth).revocations.push({ ...revocation, namespace: this.id })
  }

  /** Makes the fronts reload the signing keys. */
  notifyRotation(): void {
    this.#write.group.changes.of(auth).rotated.push(this.id)
  }

  /** Puts a sealed mail into the outbox. */
  queueMail(key: string, sealed: Buffer): void {
    this.#write.group.changes.of(mails).set(key, sealed)
  }

  /** Makes the front log a failed sign-in. */
  reportFailure(failure: AuthOutcome['failure']): void {
    this.failure = failure
  }

  /** The client that requested the change. */
  get origin(): AuthOrigin {
    return this.#write.origin
  }

  /** The lineage of the API key that requested the change; undefined for users and without a credential. */
  get line(): string | undefined {
    return this.#write.lineage
  }

  /** Appends an audit record, in the transaction of the change (docs/adr/0010-auth-state.md). */
  audit(type: AuditType, who: AuditContent): void {
    const { group, agent } = this.#write
    const record = group.append(agent, { type, body: this.#auditBody(who), signing: 'record' })
    assert(!('code' in record), 'the clock reading of an audit record was reserved')
  }

  /**
   * Does as much work as `audit` but appends no record, so that the response time does not reveal the
   * difference.
   */
  auditDecoy(type: AuditType, who: AuditContent): void {
    const { group, agent } = this.#write
    const bytes = group.decoy(agent, { type, body: this.#auditBody(who) })
    this.put(['decoy', ''], bytes.toString('base64'))
  }

  #auditBody({ email, outcome = 'success', origin = this.origin, ...event }: AuditContent): Buffer {
    const emailHmac = email === undefined ? undefined : this.emailHmac(email)
    return Buffer.from(auditBody({ ...event, ...origin, outcome, emailHmac }))
  }

  /**
   * Binds single-use rows to the era in which they were made, because a backup contains links that were used
   * after it.
   */
  #key(kind: AuthKind, id: string): string {
    const { tokenEra } = this.state.auth
    const inEra = tokenEra > 0 && singleUse.has(kind)
    return authKey(this.id, kind, inEra ? `${tokenEra}:${id}` : id)
  }

  /** The id can be a text of a changed row; the store would refuse it only after the commit. */
  #keyToWrite(kind: AuthKind, id: string): string {
    const key = this.#key(kind, id)
    assert(Buffer.byteLength(key) <= keyBytesMax, 'the key of a row of auth state fits')
    return key
  }

  /** The pseudonym of a mailbox in audit records, which differs between namespaces. */
  emailHmac(email: string): string {
    return emailHmac(this.state.emailHmacKey, `${this.id}\0${email}`)
  }

  get #write(): Writing {
    assert(this.#writing !== undefined, 'only a change writes')
    return this.#writing
  }
}

/**
 * The refusal for a missing namespace: 404 organism_not_found, namespace_not_found, or agent_not_found
 * outside organisms.
 */
function missingNamespace(state: ShardState, { agent, namespace }: AuthChange | AuthLookup): Refusal {
  if (namespace === '') return noSuchAgent(agent)
  if (findOrganism(state.store.environment, namespace) === undefined) return noSuchOrganism(namespace)
  return refuse('namespace_not_found', `Organism "${namespace}" has no auth namespace: create it first`)
}
