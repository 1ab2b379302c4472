import { isOutboxMessage, type AuthMail, type OutboxMessage } from '../../src/auth/outbox-message.js'
import { assert } from '../../src/base/assert.js'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { seal, type SealContext, unseal } from '../../src/strand/seal.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { Decision, ShardState } from '../shard/state.js'
import type { AuthRows } from '../store/tables/auth-rows.js'
import { findMail, mailKey, mailsDue, mails } from '../store/tables/mails.js'
import type { NamespaceState } from './namespace-state.js'
import type { FeatureCommands } from '../shard/command-table.js'

/** The outbox of mails. */
export const mailCommands = {
  writes: {
    mailAttempted: { decide: mailAttempted },
  },
  reads: {
    mailDue: { answer: mailDue },
  },
} satisfies FeatureCommands

/** Mails are stored sealed, because they contain the token of a link; all other rows have only its hash. */
const sealContext: SealContext = { purpose: 'strandfast/mail/v1', boundTo: Buffer.from('outbox') }

const ID_BYTES = 16

/** How long a mail that is never sent is stored, milliseconds. */
const UNSENT_MS = 60_000

/**
 * Puts a mail into the outbox, in the transaction of its cause, within the quota of its mailbox and kind
 * (docs/adr/0032-strangers-and-devices.md). A mail that is not `served` or is over the quota is never sent,
 * but as much is computed and written, so that the response time does not reveal whether there is an account.
 * @returns whether the mail is within the quota
 */
export function putMail(namespace: NamespaceState, mail: AuthMail, served = true): boolean {
  const withinQuota = consumeMailQuota(namespace, { kind: mail.kind, to: mail.to, served })
  const id = Buffer.from(namespace.state.random(ID_BYTES)).toString('hex')
  const bytes = sealed(namespace.state, { id, attempts: 0, mail })
  if (served && withinQuota) namespace.queueMail(mailKey(namespace.nowMs, id), bytes)
  else namespace.put(['unsent-mail', id], bytes.toString('base64'), namespace.nowMs + UNSENT_MS)
  namespace.mailed = true
  return withinQuota
}

/** Mails whose next try is due, without those that cannot be read. */
function mailDue(state: ShardState, command: CommandOf<'mailDue'>): Outcome {
  const { environment, setAside } = state.store
  const mails: { key: string; message: OutboxMessage }[] = []
  for (const { key, sealed } of mailsDue(environment, state.clock())) {
    if (mails.length >= command.limit) break
    if (setAside.has(`mails ${key}`)) continue
    try {
      mails.push({ key, message: unsealed(state, sealed) })
    } catch (error) {
      setAside.add(`mails ${key}`, error)
    }
  }
  return { kind: 'mailDue', mails }
}

/** Removes a mail that was sent or has failed permanently, or schedules its next try. */
function mailAttempted(state: ShardState, command: CommandOf<'mailAttempted'>, group: CommitGroup): Decision {
  const { key, result } = command
  const bytes = findMail(state.store.environment, key)
  if (bytes !== undefined) {
    group.changes.of(mails).set(key, undefined)
    if (result.kind === 'failed' && result.retryAtMs !== undefined) {
      const message = { ...unsealed(state, bytes), attempts: result.attempts }
      group.changes.of(mails).set(mailKey(result.retryAtMs, message.id), sealed(state, message))
    }
  }
  return () => ({ kind: 'done' })
}

function sealed(state: ShardState, message: OutboxMessage): Buffer {
  const secret = Buffer.from(JSON.stringify(message))
  return seal(state.masterSeed, { ...sealContext, secret }, state.random)
}

function unsealed(state: ShardState, bytes: Buffer): OutboxMessage {
  const message: unknown = JSON.parse(unseal(state.masterSeed, sealContext, bytes).toString())
  assert(isOutboxMessage(message), 'the outbox contains mails')
  return message
}

/** A mail to check against the quota of its mailbox. */
interface MailQuotaRequest extends Pick<AuthMail, 'kind' | 'to'> {
  /**
   * Whether the mail can be sent; if not, it is checked against the quota at the same cost but not counted.
   */
  served: boolean
}

/**
 * Counts a mail against the quota of its mailbox. Each kind of mail has a separate quota, so that requests
 * for one kind cannot block another kind.
 * @returns whether the mail is within the quota
 */
export function consumeMailQuota(namespace: NamespaceState, { kind, to, served }: MailQuotaRequest): boolean {
  const row = namespace.find('mail-room', to) ?? {}
  const before = row[kind] ?? 0
  const fullAtMs = takeToken(before, namespace.nowMs)
  const quotas: AuthRows['mail-room'] = { ...row, [kind]: served ? (fullAtMs ?? before) : before }
  // The row expires as if the mail had been counted, so that it looks the same for a mail that cannot be
  // sent.
  namespace.put(['mail-room', to], quotas, Math.max(fullAtMs ?? before, ...Object.values(quotas)))
  return fullAtMs !== undefined
}

/**
 * Takes a token from the bucket of a mailbox. The bucket holds `mailsPerKindMax` tokens and gets one back
 * every `mailsPerKindEveryMs`; its state is a single number.
 * @param fullAtMs the time at which the bucket is full again, Unix milliseconds; 0 if no mail was sent yet
 * @returns the time at which it is full again after this mail; undefined if the bucket is empty
 */
export function takeToken(fullAtMs: number, nowMs: number): number | undefined {
  const { mailsPerKindMax, mailsPerKindEveryMs } = limits
  const deficitMaxMs = mailsPerKindMax * mailsPerKindEveryMs
  const deficitMs = Math.max(0, fullAtMs - nowMs)
  // A larger deficit than the size of the bucket means that the clock was set back: the bucket starts with
  // one token.
  const laterMs =
    (deficitMs > deficitMaxMs ? deficitMaxMs - mailsPerKindEveryMs : deficitMs) + mailsPerKindEveryMs
  return laterMs > deficitMaxMs ? undefined : nowMs + laterMs
}
