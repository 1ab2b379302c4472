import { commonPasswords } from './common-passwords.js'
import { foldPassword } from './password-policy.js'

let bundled: ReadonlySet<string> | undefined

/** The bundled common passwords of at least 8 characters, folded. The set is made at the first call, in some tens of milliseconds, and kept. */
export function bundledBlocklist(): ReadonlySet<string> {
  bundled ??= new Set(commonPasswords.split(/\s+/).filter(Boolean).map(foldPassword))
  return bundled
}
