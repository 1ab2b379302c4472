import { isBytes, isFlag, isText, members, optional, type Check } from '../base/shape.js'
import type { TaskAnswers } from './pool-tasks.js'

/** What a password thread of the pool is started with. */
export interface PasswordSettings {
  /**
   * 32 bytes, mixed into every hash: if only the hashes leak, passwords cannot be guessed by them. Never logged, never
   * stored.
   */
  pepper: Uint8Array
}

/** Whether a value is that. */
export const isPasswordSettings: Check<PasswordSettings> = members<PasswordSettings>({ pepper: isBytes })

export interface HashTask {
  password: string
}

/**
 * `encoded` is absent when there is no account, or none with a password: comparing takes the same time and never
 * matches.
 */
export interface VerifyTask {
  password: string
  encoded?: string
}

export interface Verification {
  matches: boolean
  /** A new hash of the password that matched, where the stored one has weaker parameters than those in force. */
  rehashed?: string
}

/** The tasks of a password thread: what each is given, and what it answers. */
export interface PasswordTasks {
  hashPassword: { task: HashTask; found: string }
  verifyPassword: { task: VerifyTask; found: Verification }
}

/** Checks of the answers. */
export const passwordAnswers: TaskAnswers<PasswordTasks> = {
  hashPassword: isText,
  verifyPassword: members<Verification>({ matches: isFlag, rehashed: optional(isText) }),
}
