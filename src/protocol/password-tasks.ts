/** What a password thread of the pool is started with. */
export interface PasswordSettings {
  /** 32 bytes, mixed into every hash: hashes that leak alone cannot be guessed at. Never logged, never stored. */
  pepper: Uint8Array
}

export interface HashTask {
  password: string
}

/** `encoded` is absent when there is no account, or none with a password: it costs the same and never matches. */
export interface VerifyTask {
  password: string
  encoded?: string
}

export interface Verification {
  matches: boolean
  /** A new hash of the password that matched, where the stored one has weaker parameters than those in force. */
  rehashed?: string
}
