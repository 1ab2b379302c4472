import { type Checked, fields, isBytes, isFlag, isText, optional } from '../base/shape.js'
import type { TaskAnswers } from './pool-tasks.js'

/**
 * What a password thread of the pool is started with. `pepper`: 32 bytes, mixed into every hash: if only the hashes leak,
 * passwords cannot be guessed by them. Never logged, never stored.
 */
export const isPasswordSettings = fields({ pepper: isBytes })
export type PasswordSettings = Checked<typeof isPasswordSettings>

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

/** `rehashed`: a new hash of the password that matched, where the stored one has weaker parameters than those in force. */
const isVerification = fields({ matches: isFlag, rehashed: optional(isText) })
export type Verification = Checked<typeof isVerification>

/** The tasks of a password thread: what each is given, and what it answers. */
export interface PasswordTasks {
  hashPassword: { task: HashTask; found: string }
  verifyPassword: { task: VerifyTask; found: Verification }
}

/** Checks of the answers. */
export const passwordAnswers: TaskAnswers<PasswordTasks> = {
  hashPassword: isText,
  verifyPassword: isVerification,
}
