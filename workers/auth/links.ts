import { limits } from '../../src/base/limits.js'
import type { LinkDraft, LinkPurpose } from '../../src/protocol/auth-messages.js'
import { putMail } from './outbox.js'
import type { AuthSpace } from './space.js'

/** A link that works once, found by the SHA-256 of its token. */
export interface LinkRow {
  purpose: LinkPurpose
  email: string
  /** Whether the token went out by mail, so that who brings it has shown to receive mail there. */
  mailed: boolean
  expiresAtMs: number
}

/** Keeps a link for an e-mail, which need not have an account, and mails it where it has a token to mail. */
export function putLink(space: AuthSpace, email: string, draft: LinkDraft): void {
  const { purpose, hash, expiresAtMs, mailToken } = draft
  makeRoom(space, email, purpose)
  const row: LinkRow = { purpose, email, mailed: mailToken !== undefined, expiresAtMs }
  space.put(['link', hash], row, expiresAtMs)
  space.put(['email-link', `${email}:${hash}`], true, expiresAtMs)
  if (mailToken === undefined) return
  const organismId = space.namespace
  putMail(space, { kind: purpose, to: email, organismId, token: mailToken, expiresAtMs })
}

/** The link of a hash that is for `purpose` and has not expired. */
export function findLink(space: AuthSpace, hash: string, purpose: LinkPurpose): LinkRow | undefined {
  const row = space.find<LinkRow>('link', hash)
  return row?.purpose === purpose && row.expiresAtMs > space.nowMs ? row : undefined
}

/** Takes a link out: it works once. */
export function takeLink(space: AuthSpace, hash: string, purpose: LinkPurpose): LinkRow | undefined {
  const row = findLink(space, hash, purpose)
  if (row !== undefined) dropLink(space, row.email, hash)
  return row
}

/** Takes out every link of an e-mail. */
export function dropLinks(space: AuthSpace, email: string): void {
  for (const hash of hashesOf(space, email)) dropLink(space, email, hash)
}

function dropLink(space: AuthSpace, email: string, hash: string): void {
  space.remove('link', hash)
  space.remove('email-link', `${email}:${hash}`)
}

/**
 * An e-mail has a bounded number of links for each purpose: of too many, the oldest goes. Those for other purposes stay,
 * so that nobody ends the owner's way in by asking for mails that let nobody in.
 */
function makeRoom(space: AuthSpace, email: string, purpose: LinkPurpose): void {
  const hashes = hashesOf(space, email)
  if (hashes.length < limits.linksPerPurposeMax) return
  const same = hashes
    .map((hash) => ({ hash, row: space.find<LinkRow>('link', hash) }))
    .filter(({ row }) => row?.purpose === purpose)
    // Links for one purpose live equally long, so the oldest is the one that ends first.
    .toSorted((one, other) => (one.row?.expiresAtMs ?? 0) - (other.row?.expiresAtMs ?? 0))
  const tooMany = Math.max(0, same.length - limits.linksPerPurposeMax + 1)
  for (const { hash } of same.slice(0, tooMany)) dropLink(space, email, hash)
}

function hashesOf(space: AuthSpace, email: string): string[] {
  return space.ids('email-link', `${email}:`).map((id) => id.slice(email.length + 1))
}
