import { limits } from '../../src/base/limits/limits.js'
import type { LinkDraft, LinkPurpose } from '../../src/protocol/auth-messages.js'
import type { LinkRow } from '../store/tables/auth-rows.js'
import { consumeMailQuota, putMail } from './outbox.js'
import type { NamespaceState } from './namespace-state.js'

/** How long a link that can serve nobody is kept, milliseconds. */
const UNSERVED_MS = 60_000

/** Whom a link is for. */
export interface MailedLinkOwner {
  email: string
  /** Whether the link can serve anybody; if not, as much is written, but nothing is mailed. */
  served: boolean
}

/**
 * Keeps a link for an e-mail, which need not have an account, and mails it if it has a token to mail. A link whose mail
 * is over the mailbox's limit would replace one that was mailed, and its token would reach no reader: it is kept aside for a
 * short while, since as much has to be written.
 * @returns false when the mailbox has been mailed as many links of this purpose as it may
 */
export function putLink(
  namespace: NamespaceState,
  { email, served }: MailedLinkOwner,
  draft: LinkDraft,
): boolean {
  const { purpose: kind, mailToken: token } = draft
  if (token === undefined) {
    keepLink(namespace, email, draft)
    return consumeMailQuota(namespace, { kind, to: email, served })
  }
  const { expiresAtMs } = draft
  const mail = { kind, to: email, organismId: namespace.id, token, expiresAtMs }
  const inRoom = putMail(namespace, mail, served)
  const endsAtMs = served && inRoom ? expiresAtMs : Math.min(expiresAtMs, namespace.nowMs + UNSERVED_MS)
  // No e-mail begins with a space.
  keepLink(namespace, inRoom ? email : ` ${email}`, { ...draft, expiresAtMs: endsAtMs })
  return inRoom
}

function keepLink(namespace: NamespaceState, email: string, draft: LinkDraft): void {
  const { purpose, hash, expiresAtMs, mailToken } = draft
  makeRoom(namespace, email, purpose)
  const mailed = mailToken !== undefined
  const { line } = namespace
  const row: LinkRow = { purpose, email, mailed, expiresAtMs, ...(!mailed && line !== undefined && { line }) }
  namespace.put(['link', hash], row, expiresAtMs)
  namespace.put(['email-link', `${email}:${hash}`], true, expiresAtMs)
}

/** The link with a hash, if it is for `purpose` and has not expired. */
export function findLink(namespace: NamespaceState, hash: string, purpose: LinkPurpose): LinkRow | undefined {
  const row = namespace.find('link', hash)
  return row?.purpose === purpose && row.expiresAtMs > namespace.nowMs ? row : undefined
}

/** Removes a link and returns it: it works once. */
export function takeLink(namespace: NamespaceState, hash: string, purpose: LinkPurpose): LinkRow | undefined {
  const row = findLink(namespace, hash, purpose)
  if (row !== undefined) dropLink(namespace, row.email, hash)
  return row
}

/** Removes every link of an e-mail. */
export function dropLinks(namespace: NamespaceState, email: string): void {
  for (const hash of hashesOf(namespace, email)) dropLink(namespace, email, hash)
}

function dropLink(namespace: NamespaceState, email: string, hash: string): void {
  namespace.remove('link', hash)
  namespace.remove('email-link', `${email}:${hash}`)
}

/**
 * An e-mail has a bounded number of links for each purpose; a new one replaces the oldest. Links for other purposes
 * stay, so nobody can remove the owner's magic link by asking for mails of another purpose.
 */
function makeRoom(namespace: NamespaceState, email: string, purpose: LinkPurpose): void {
  const hashes = hashesOf(namespace, email)
  if (hashes.length < limits.linksPerPurposeMax) return
  const same = hashes
    .map((hash) => ({ hash, row: namespace.find('link', hash) }))
    .filter(({ row }) => row?.purpose === purpose)
    // Links for one purpose live equally long, so the oldest is the one that expires first.
    .toSorted((one, other) => (one.row?.expiresAtMs ?? 0) - (other.row?.expiresAtMs ?? 0))
  const tooMany = Math.max(0, same.length - limits.linksPerPurposeMax + 1)
  for (const { hash } of same.slice(0, tooMany)) dropLink(namespace, email, hash)
}

function hashesOf(namespace: NamespaceState, email: string): string[] {
  return namespace.ids('email-link', `${email}:`).map((id) => id.slice(email.length + 1))
}
