import type { PolicyClaims } from '../auth/row-policy.js'

/* Options of several kinds of commands. */

/** How the records of a commit group are signed (docs/FORMAT.md, Signed and sealed). */
export type Signing = 'record' | 'group'

/** Options of a write beside its body (docs/adr/0008-idempotency.md). */
export interface WriteOptions {
  /** The chain heads of which one must be current, hex separated by commas; `*` for any existing agent. */
  ifMatch?: string
  idempotency?: { caller: string; key: string }
  signing?: Signing
}

/** The user to whom row policies apply (docs/adr/0012-row-policies.md); a command of a key has none. */
export interface UserAccess {
  claims: PolicyClaims
}

/** How a repeated record is recognised, so that a caller writes it to its agent only once. */
export interface WriteOnce {
  /** By its whole body, or by source and id of the CloudEvent that it must be. */
  by: 'body' | 'event'
  caller: string
}
