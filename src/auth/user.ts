import type { RandomBytes } from '../base/random.js'

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
