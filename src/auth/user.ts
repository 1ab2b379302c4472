import {
  type Checked,
  isFlag,
  isKeyNumber,
  isObject,
  isText,
  listOf,
  optional,
  fields,
} from '../base/shape.js'
import type { RandomBytes } from '../base/random.js'
import { type Refusal, refuse } from '../base/errors.js'
import { canonicalJson } from '../strand/json.js'

/** A JSON object with any members that an application sets. */
export type Metadata = Record<string, unknown>

export const isUserRow = fields({
  /** `usr_` and 32 hex digits. */
  userId: isText,
  /** The result of `normalizeEmail`. */
  email: isText,
  verified: isFlag,
  /**
   * Whether the user has signed in through the mailbox (a mailed magic link or reset), or with a provider
   * that vouched for it. A confirmed address, or a token from an answer instead of a mail, proves nothing.
   */
  mailboxProven: isFlag,
  /** The argon2id string; absent if the user has no password. */
  passwordHash: optional(isText),
  /** Unix milliseconds: older device tokens are invalid. If absent, all are valid. */
  devicesSinceMs: optional(isKeyNumber),
  appMetadata: isObject,
  userMetadata: isObject,
  createdAtMs: isKeyNumber,
  lastLoginAtMs: optional(isKeyNumber),
  /** Key lineages that created the account, or received a token in an answer that can sign in to it. */
  reachedBy: optional(listOf(isText)),
  /** The lineage of the key that last wrote `appMetadata`. */
  metadataBy: optional(isText),
})

/** A stored user (docs/adr/0010-auth-state.md). */
export type UserRow = Checked<typeof isUserRow>

const ID_BYTES = 16

/** A new user id, `usr_<32 hex digits>`. */
export function newUserId(random: RandomBytes): string {
  return `usr_${Buffer.from(random(ID_BYTES)).toString('hex')}`
}

interface UserMetadata {
  appMetadata: Metadata
  userMetadata: Metadata
}

/**
 * Checks the metadata of a user.
 * @param bytesMax SERVICE_AUTH_METADATA_MAX_BYTES, for the canonical forms of both objects together
 * (RFC 8785)
 * @returns `metadata_too_large`, or `validation_failed` for a member named `__proto__`
 */
export function metadataRefusal(metadata: UserMetadata, bytesMax: number): Refusal | undefined {
  // Checked first, because `canonicalJson` throws for such a member.
  if (hasProtoMember(metadata.appMetadata) || hasProtoMember(metadata.userMetadata)) {
    return refuse('validation_failed', 'Expected no key named __proto__')
  }
  const bytes = metadataBytes(metadata)
  if (bytes <= bytesMax) return undefined
  return refuse(
    'metadata_too_large',
    `Expected app_metadata and user_metadata to take at most ${bytesMax} bytes together, not ${bytes}`,
  )
}

/** Bytes of both objects in canonical form. */
export function metadataBytes(metadata: UserMetadata): number {
  const app = Buffer.byteLength(canonicalJson(metadata.appMetadata))
  return app + Buffer.byteLength(canonicalJson(metadata.userMetadata))
}

function hasProtoMember(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Object.hasOwn(value, '__proto__')) return true
  return Object.values(value).some(hasProtoMember)
}
