import { limits } from '../../src/base/limits/limits.js'
import type { LinkDraft, LinkPurpose } from '../../src/protocol/auth-messages.js'
import type { AuthRows } from '../store/tables/auth-rows.js'
import { consumeMailQuota, putMail } from './outbox.js'
import type { NamespaceState } from './namespace-state.js'

/** How long a link that no client can use is stored, milliseconds. */
const UNSERVED_MS = 60_000

/** The mailbox for which a link is made. */
export interface MailedLinkOwner {
  email: string
  /** Whether the link can be used; if not, as much is written, but no mail is sent. */
  served: boolean
}

/**
 * Stores a link for an e-mail, with or without an account, and mails it if it has a token to mail. A link
 * over the mailbox's quota must not replace a link that was mailed; it is stored under another key for a
 * short time, so that as much is written.
 * @returns false if the quota of the mailbox for this purpose is used up
 */
export function putLink(
  namespace: NamespaceState,
  { email, served }: MailedLinkOwner,
  draft: LinkDraft,
): boolean {
  const { purpose: kind, mailToken: token } = draft
  if (token === undefined) {
    storeLink(namespace, email, draft)
    return consumeMailQuota(namespace, { kind, to: email, served })
  }
  const { expiresAtMs } = draft
  const mail = { kind, to: email, organismId: namespace.id, token, expiresAtMs }
  const withinQuota = putMail(namespace, mail, served)
  const endsAtMs = served && withinQuota ? expiresAtMs : Math.min(expiresAtMs, namespace.nowMs + UNSERVED_MS)
  // No e-mail begins with a space.
  storeLink(namespace, withinQuota ? email : ` ${email}`, { ...draft, expiresAtMs: endsAtMs })
  return withinQuota
}

function storeLink(namespace: NamespaceState, email: string, draft: LinkDraft): void {
  const { purpose, hash, expiresAtMs, mailToken } = draft
  evictOldest(namespace, email, purpose)
  const mailed = mailToken !== undefined
  const { line } = namespace
  const row: AuthRows['link'] = {
    purpose,
    email,
    mailed,
    expiresAtMs,
    ...(!mailed && line !== undefined && { line }),
  }
  namespace.put(['link', hash], row, expiresAtMs)
  namespace.put(['email-link', `${email}:${hash}`], true, expiresAtMs)
}

/** The link with a hash; undefined if it has another purpose or has expired. */
export function findLink(
  namespace: NamespaceState,
  hash: string,
  purpose: LinkPurpose,
): AuthRows['link'] | undefined {
  const row = namespace.find('link', hash)
  return row?.purpose === purpose && row.expiresAtMs > namespace.nowMs ? row : undefined
}

/** Removes and returns a link, which works only once. */
export function takeLink(
  namespace: NamespaceState,
  hash: string,
  purpose: LinkPurpose,
): AuthRows['link'] | undefined {
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
 * Removes the oldest links of an e-mail beyond `limits.linksPerPurposeMax`. The limit is per purpose, so that
 * requests for another purpose cannot remove the owner's magic link.
 */
function evictOldest(namespace: NamespaceState, email: string, purpose: LinkPurpose): void {
  const hashes = hashesOf(namespace, email)
  if (hashes.length < limits.linksPerPurposeMax) return
  const same = hashes
    .map((hash) => ({ hash, row: namespace.find('link', hash) }))
    .filter(({ row }) => row?.purpose === purpose)
    // Links for one purpose have the same lifetime, so the oldest expires first.
    .toSorted((one, other) => (one.row?.expiresAtMs ?? 0) - (other.row?.expiresAtMs ?? 0))
  const excess = Math.max(0, same.length - limits.linksPerPurposeMax + 1)
  for (const { hash } of same.slice(0, excess)) dropLink(namespace, email, hash)
}

function hashesOf(namespace: NamespaceState, email: string): string[] {
  return namespace.ids('email-link', `${email}:`).map((id) => id.slice(email.length + 1))
}
