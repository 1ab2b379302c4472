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
import { authKey, pendingValue } from '../store/tables/auth-table.js'
import { findOrganism } from '../store/tables/organisms.js'

/** The most rows that one command looks through, such as the sessions of one user. */
const ROWS_MAX = 10_000

/** The most audit records that one command appends. */
const AUDIT_RECORDS_MAX = 20

/** What an audit record says. */
interface Audited extends Pick<AuditEvent, 'userId' | 'sid' | 'count' | 'failure'> {
  /** Written as its HMAC. */
  email?: string
  outcome?: AuditEvent['outcome']
  /** Where it came from, if not from whoever asked for the change. */
  origin?: Pick<AuditEvent, 'ip' | 'userAgent'>
}

/** Kinds of rows that are found by the hash of a single-use token. Nothing lists them. */
const worksOnce: ReadonlySet<AuthKind> = new Set(['link', 'passkey-session', 'oauth-state'])

/** What a change is written into. */
interface Writing {
  group: CommitGroup
  agent: Agent
  origin: AuthOrigin
  line?: string | undefined
}

/**
 * The result of a change. A plain refusal changed nothing; a function that returns a refusal wrote something, such as a
 * failed login.
 */
export type Changed = AuthAnswer | Refusal | (() => Refusal)

/**
 * The state of one auth namespace, as a command sees and changes it. It sees changes that earlier commands of the same
 * group made.
 */
export class NamespaceState {
  readonly state: ShardState
  /** The organism's, empty for the root namespace. */
  readonly id: string
  /** Whether this command put a mail into the outbox. */
  mailed = false
  /** The failed sign-in that this command recorded. */
  failure: AuthOutcome['failure']
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

  /** The namespace of a change; 404 without the audit agent, 503 clock_skew when its records could not be written. */
  static of(state: ShardState, command: AuthChange, group: CommitGroup): NamespaceState | Refusal {
    const agent = findAgent(state, group, command.agent)
    if (agent === undefined) return missingNamespace(state, command)
    if (agent.importing) return importOpen(agent.name)
    const skew = group.reserve(AUDIT_RECORDS_MAX)
    const { namespace, origin, line } = command
    return skew ?? new NamespaceState(state, namespace, { group, agent, origin, line })
  }

  get nowMs(): number {
    return this.state.clock()
  }

  /** A row. */
  find<Kind extends AuthKind>(kind: Kind, id: string): AuthRows[Kind] | undefined {
    const key = this.#key(kind, id)
    const pending = this.#writing?.group.authRows.get(key)
    if (pending === undefined) return this.state.store.auth.find(kind, key)
    return pendingValue(kind, pending)
  }

  /** Ids of the rows of a kind that begin with `prefix`, in order. */
  ids(kind: AuthKind, prefix: string, page: { after?: string; limit?: number } = {}): string[] {
    const before = authKey(this.id, kind, '')
    const after = page.after === undefined || page.after === '' ? '' : before + page.after
    const kept = this.state.store.auth.keys(before + prefix, { after, limit: page.limit ?? ROWS_MAX })
    const keys = new Set(kept)
    for (const [key, { value }] of this.#writing?.group.authRows ?? []) {
      if (!key.startsWith(before + prefix)) continue
      if (value === undefined) keys.delete(key)
      else keys.add(key)
    }
    return [...keys].map((key) => key.slice(before.length))
  }

  /** How many rows of a kind have ids that begin with `prefix`. */
  count(kind: AuthKind, prefix: string): number {
    return this.state.store.auth.count(authKey(this.id, kind, prefix))
  }

  /** Writes a row. @param expiresAtMs when it may be swept; absent: it stays */
  put<Kind extends AuthKind>([kind, id]: [Kind, string], row: AuthRows[Kind], expiresAtMs?: number): void {
    const value = JSON.stringify(row)
    this.#write.group.authRows.set(this.#key(kind, id), {
      value,
      ...(expiresAtMs !== undefined && { expiresAtMs }),
    })
  }

  remove(kind: AuthKind, id: string): void {
    this.#write.group.authRows.set(this.#key(kind, id), {})
  }

  /** Revokes the tokens that carry this id, until `untilMs`. */
  end(ended: Revocation): void {
    if (ended.untilMs <= this.nowMs) return
    this.#write.group.revocations.push({ ...ended, namespace: this.id })
  }

  /** Has the fronts take up the signing keys anew. */
  rotated(): void {
    this.#write.group.rotated.push(this.id)
  }

  /** Puts a sealed mail into the outbox. */
  queueMail(key: string, sealed: Buffer): void {
    this.#write.group.mails.set(key, sealed)
  }

  /** Has the front log a failed sign-in. */
  failed(failure: AuthOutcome['failure']): void {
    this.failure = failure
  }

  /** Who asked for the change. */
  get origin(): AuthOrigin {
    return this.#write.origin
  }

  /** The line of the key by which the change is asked for; undefined for users, and without a credential. */
  get line(): string | undefined {
    return this.#write.line
  }

  /** Appends an audit record, in the transaction of the change (docs/adr/0010-auth-state.md). */
  audit(type: AuditType, who: Audited): void {
    const { group, agent } = this.#write
    const record = group.append(agent, { type, body: this.#auditBody(who), signing: 'record' })
    assert(!('code' in record), 'the place of an audit record was reserved')
  }

  /** Costs as much as an audit record and leaves none, so that time does not reveal whether there is one. */
  auditNothing(type: AuditType, who: Audited): void {
    const { group, agent } = this.#write
    const bytes = group.decoy(agent, { type, body: this.#auditBody(who) })
    this.put(['decoy', ''], bytes.toString('base64'))
  }

  #auditBody({ email, outcome = 'success', origin = this.origin, ...event }: Audited): Buffer {
    const emailHmac = email === undefined ? undefined : this.emailHmac(email)
    return Buffer.from(auditBody({ ...event, ...origin, outcome, emailHmac }))
  }

  /**
   * Single-use rows are found only in the era in which they were made: a backup contains links that were used after it.
   */
  #key(kind: AuthKind, id: string): string {
    const { tokenEra } = this.state.auth
    const inEra = tokenEra > 0 && worksOnce.has(kind)
    return authKey(this.id, kind, inEra ? `${tokenEra}:${id}` : id)
  }

  /** The name of a mailbox in audit records; two namespaces name it differently. */
  emailHmac(email: string): string {
    return emailHmac(this.state.emailHmacKey, `${this.id}\0${email}`)
  }

  get #write(): Writing {
    assert(this.#writing !== undefined, 'only a change writes')
    return this.#writing
  }
}

/** Why there is no namespace: 404 organism_not_found, namespace_not_found, or agent_not_found outside organisms. */
function missingNamespace(state: ShardState, { agent, namespace }: AuthChange | AuthLookup): Refusal {
  if (namespace === '') return noSuchAgent(agent)
  if (findOrganism(state.store.environment, namespace) === undefined) return noSuchOrganism(namespace)
  return refuse(
    'namespace_not_found',
    `Expected an organism whose auth namespace was made, got "${namespace}"`,
  )
}
