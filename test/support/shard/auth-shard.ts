import { makeOneTimeToken } from '../../../src/auth/one-time-token.js'
import type { OutboxMessage } from '../../../src/auth/outbox-message.js'
import { pooledRandom } from '../../../src/base/random.js'
import type {
  AuthChange,
  AuthOutcome,
  AuthOrigin,
  Change,
  LinkPurpose,
  Lookup,
} from '../../../src/protocol/auth-messages.js'
import type { Outcome } from '../../../src/protocol/messages.js'
import { rowsOf, TestShard } from './shard.js'

/** An audit record by its type and body. */
export interface AuditRecord {
  type: string
  body: Record<string, unknown>
}

/** A request for a link. */
export interface LinkRequest {
  purpose: LinkPurpose
  email: string
  /** Whether its token is mailed. */
  mailed?: boolean
}

/**
 * A shard with the agent `default`, which is the audit agent of the root namespace and of the organism
 * `acme`.
 */
export class AuthShard extends TestShard {
  origin: AuthOrigin = { ip: '192.0.2.1', userAgent: 'test', requestId: 'r-1' }

  constructor() {
    super()
    this.ask({ kind: 'agentCreate', agent: 'default', zone: 'governed', options: {} })
  }

  /** The command of a change. */
  command(change: Change, namespace = ''): AuthChange {
    return { kind: 'authChange', agent: 'default', namespace, change, origin: this.origin, options: {} }
  }

  /** Carries out a change. */
  change(change: Change, namespace = ''): AuthOutcome['answer'] {
    return answerOf(this.ask(this.command(change, namespace)))
  }

  lookUp(lookup: Lookup): AuthOutcome['answer'] {
    return answerOf(this.ask({ kind: 'authLookup', agent: 'default', namespace: '', lookup }))
  }

  /** Creates an account with a password. */
  register(email: string): AuthOutcome['answer'] {
    return this.change({ kind: 'register', email, passwordHash: `hash of ${email}` })
  }

  /** Requests a link. @returns the hash by which the link is used */
  sendLink({ purpose, email, mailed = true }: LinkRequest, namespace = ''): string {
    const { token, hash } = makeOneTimeToken(pooledRandom())
    const lifeMs = { magicLink: 900_000, verifyEmail: 86_400_000, passwordReset: 3_600_000 }[purpose]
    const link = { purpose, hash, expiresAtMs: this.nowMs + lifeMs, ...(mailed && { mailToken: token }) }
    this.change({ kind: 'linkSend', email, link }, namespace)
    return hash
  }

  /** Whether a link can be used. */
  isUsable(purpose: LinkPurpose, hash: string): boolean {
    const answer = this.lookUp({ kind: 'link', hash, purpose })
    return answer.kind === 'link' && answer.usable
  }

  /** The mails of the outbox that are due. */
  mails(): OutboxMessage['mail'][] {
    const outcome = this.ask({ kind: 'mailDue', limit: 1_000 })
    if (outcome.kind !== 'mailDue') throw new Error(`Expected mails, got ${outcome.kind}`)
    return outcome.mails.map(({ message }) => message.mail)
  }

  /** The audit records, in order. */
  audit(): AuditRecord[] {
    const query = { order: 'asc', limit: 1_000, types: ['auth/*'] } as const
    const page = this.ask({ kind: 'recordQuery', agent: 'default', ...query, types: [...query.types] })
    return rowsOf(page).map(({ type, payload }) => ({ type, body: payload }))
  }
}

/** The answer of an auth outcome. */
export function answerOf(outcome: Outcome): AuthOutcome['answer'] {
  if ('code' in outcome) return outcome
  if (outcome.kind !== 'auth') throw new Error(`Expected an auth outcome, got ${outcome.kind}`)
  return outcome.answer
}

/** The code of a refusal; the kind of any other answer. */
export function codeOf(answer: AuthOutcome['answer']): string {
  return 'code' in answer ? answer.code : answer.kind
}
