import type { RandomBytes } from '../base/random.js'
import { type Refusal, refuse } from '../base/errors.js'
import { canonicalJson } from '../strand/json.js'

/** A JSON object that an application fills as it likes. */
export type Metadata = Record<string, unknown>

/** A user as the store keeps it (docs/adr/0010-auth-state.md). */
export interface UserRow {
  /** `usr_` and 32 hex digits. */
  userId: string
  /** As `normalizeEmail` gives it. */
  email: string
  verified: boolean
  /**
   * Whether the user has signed in by means of the mailbox: by a mailed magic link or reset, or by a provider that
   * vouched for it. Neither a confirmed address nor a token that was returned in an answer instead of a mail proves it.
   */
  mailboxProven: boolean
  /** The argon2id string; absent for a user who never set a password. */
  passwordHash?: string
  /** Unix milliseconds: older device tokens are not valid any more. Absent: all are. */
  devicesSinceMs?: number
  appMetadata: Metadata
  userMetadata: Metadata
  createdAtMs: number
  lastLoginAtMs?: number
  /** Lines of keys that made the account, or were given a token in an answer that signs in to it. */
  reachedBy?: string[]
  /** The line of the key that last wrote `appMetadata`. */
  metadataBy?: string
}

const ID_BYTES = 16

/** A new user's id, `usr_<32 hex digits>`. */
export function newUserId(random: RandomBytes): string {
  return `usr_${Buffer.from(random(ID_BYTES)).toString('hex')}`
}

/** The two objects of one user that go into each of its tokens. */
interface UserMetadata {
  appMetadata: Metadata
  userMetadata: Metadata
}

/**
 * Checks both objects of a user together, as they would be stored.
 * @param bytesMax SERVICE_AUTH_METADATA_MAX_BYTES: the bytes of both canonical forms (RFC 8785)
 * @returns `metadata_too_large`, or `validation_failed` for a member named `__proto__`; nothing when it may be stored
 */
export function metadataRefusal(metadata: UserMetadata, bytesMax: number): Refusal | undefined {
  // Checked first, because making the canonical form throws for such a member.
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

/** Bytes that both objects take together in canonical form. */
export function metadataBytes(metadata: UserMetadata): number {
  const app = Buffer.byteLength(canonicalJson(metadata.appMetadata))
  return app + Buffer.byteLength(canonicalJson(metadata.userMetadata))
}

function hasProtoMember(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Object.hasOwn(value, '__proto__')) return true
  return Object.values(value).some(hasProtoMember)
}
