import { type Checked, fields, isBytes, isFlag, isText, optional } from '../base/shape.js'
import type { TaskAnswers } from './pool-tasks.js'

/**
 * The settings of a password thread. `pepper` is 32 bytes that are mixed into every hash: without it, leaked
 * hashes cannot be attacked offline. It is never logged or stored.
 */
export const isPasswordSettings = fields({ pepper: isBytes })
export type PasswordSettings = Checked<typeof isPasswordSettings>

export interface HashTask {
  password: string
}

/**
 * `encoded` is absent without an account or password: the comparison takes the same time and never matches.
 */
export interface VerifyTask {
  password: string
  encoded?: string
}

/** `rehashed` is a new hash of a matching password whose stored hash has outdated parameters. */
const isVerification = fields({ matches: isFlag, rehashed: optional(isText) })
export type Verification = Checked<typeof isVerification>

/** The tasks of a password thread with their results. */
export interface PasswordTasks {
  hashPassword: { task: HashTask; found: string }
  verifyPassword: { task: VerifyTask; found: Verification }
}

export const passwordAnswers: TaskAnswers<PasswordTasks> = {
  hashPassword: isText,
  verifyPassword: isVerification,
}
