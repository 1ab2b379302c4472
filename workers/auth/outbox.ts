import { isOutboxMessage, type AuthMail, type OutboxMessage } from '../../src/auth/outbox-message.js'
import { assert } from '../../src/base/assert.js'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf, Outcome } from '../../src/protocol/messages.js'
import { seal, type SealedPlace, unseal } from '../../src/strand/seal.js'
import type { CommitGroup } from '../shard/commit-group.js'
import type { Decision, ShardState } from '../shard/state.js'
import type { RoomsRow } from '../store/tables/auth-rows.js'
import { findMail, mailKey, mailsDue } from '../store/tables/mails.js'
import type { NamespaceState } from './namespace-state.js'

/** Mails are sealed in the store: they contain the token of a link, of which everything else keeps only the hash. */
const place: SealedPlace = { purpose: 'strandfast/mail/v1', owner: Buffer.from('outbox') }

const ID_BYTES = 16

/** How long a mail that serves nobody is kept, milliseconds. */
const UNSENT_MS = 60_000

/**
 * Puts a mail into the outbox, in the transaction of its cause, unless its mailbox was sent enough mails of its kind
 * (docs/adr/0032-strangers-and-devices.md). A mail that is not `served`, or for which there is no room, is never sent, but the
 * same is computed and written, so that time does not reveal who has an account.
 * @returns whether there was room for it
 */
export function putMail(namespace: NamespaceState, mail: AuthMail, served = true): boolean {
  const inRoom = consumeMailQuota(namespace, { kind: mail.kind, to: mail.to, served })
  const id = Buffer.from(namespace.state.random(ID_BYTES)).toString('hex')
  const bytes = sealed(namespace.state, { id, attempts: 0, mail })
  if (served && inRoom) namespace.queueMail(mailKey(namespace.nowMs, id), bytes)
  else namespace.put(['unsent-mail', id], bytes.toString('base64'), namespace.nowMs + UNSENT_MS)
  namespace.mailed = true
  return inRoom
}

/** Mails whose next try is due. */
export function mailDue(state: ShardState, command: CommandOf<'mailDue'>): Outcome {
  const due = mailsDue(state.store.environment, { nowMs: state.clock(), limit: command.limit })
  const mails = due.map(({ key, sealed }) => ({ key, message: opened(state, sealed) }))
  return { kind: 'mailDue', mails }
}

/** Removes a mail that was sent or given up, or puts it back for its next try. */
export function mailSettle(
  state: ShardState,
  command: CommandOf<'mailSettle'>,
  group: CommitGroup,
): Decision {
  const { key, result } = command
  const bytes = findMail(state.store.environment, key)
  if (bytes !== undefined) {
    group.mails.set(key, undefined)
    if (result.kind === 'failed' && result.retryAtMs !== undefined) {
      const message = { ...opened(state, bytes), attempts: result.attempts }
      group.mails.set(mailKey(result.retryAtMs, message.id), sealed(state, message))
    }
  }
  return () => ({ kind: 'done' })
}

function sealed(state: ShardState, message: OutboxMessage): Buffer {
  const secret = Buffer.from(JSON.stringify(message))
  return seal(state.masterSeed, { ...place, secret }, state.random)
}

function opened(state: ShardState, bytes: Buffer): OutboxMessage {
  const message: unknown = JSON.parse(unseal(state.masterSeed, place, bytes).toString())
  assert(isOutboxMessage(message), 'the outbox holds mails')
  return message
}

/** A mail, as far as the limit of its mailbox is concerned. */
interface MailQuotaRequest extends Pick<AuthMail, 'kind' | 'to'> {
  /** Whether it will be sent. One that serves nobody is checked against the limit but not counted, at the same cost. */
  served: boolean
}

/**
 * Counts a mail against the limit of its mailbox. Each kind of mail has a limit of its own, so nobody can block one
 * kind by asking for another.
 * @returns whether there was room
 */
export function consumeMailQuota(namespace: NamespaceState, { kind, to, served }: MailQuotaRequest): boolean {
  const row = namespace.find('mail-room', to) ?? {}
  const before = row[kind] ?? 0
  const fullAtMs = takeToken(before, namespace.nowMs)
  const rooms: RoomsRow = { ...row, [kind]: served ? (fullAtMs ?? before) : before }
  // Kept for as long as if the mail had been counted, so that the row of a mail that serves nobody looks the same.
  namespace.put(['mail-room', to], rooms, Math.max(fullAtMs ?? before, ...Object.values(rooms)))
  return fullAtMs !== undefined
}

/**
 * Takes one mail out of the bucket of a mailbox. The bucket holds `mailsPerKindMax` mails and gets one back each
 * `mailsPerKindEveryMs`; its state is a single number.
 * @param fullAtMs when the bucket is full again, Unix milliseconds; 0 when nothing was sent yet
 * @returns when it is full again after this mail; undefined when the bucket is empty
 */
export function takeToken(fullAtMs: number, nowMs: number): number | undefined {
  const { mailsPerKindMax, mailsPerKindEveryMs } = limits
  const deficitMaxMs = mailsPerKindMax * mailsPerKindEveryMs
  const deficitMs = Math.max(0, fullAtMs - nowMs)
  // No bucket lacks more than it can hold, unless the clock was set back: then one mail is sent and the bucket counts
  // from it.
  const laterMs =
    (deficitMs > deficitMaxMs ? deficitMaxMs - mailsPerKindEveryMs : deficitMs) + mailsPerKindEveryMs
  return laterMs > deficitMaxMs ? undefined : nowMs + laterMs
}
