import type { PolicyClaims } from '../auth/row-policy.js'

/* Options that commands of several kinds have. */

/** How the records of one commit group are signed (docs/FORMAT.md, Signed and sealed). */
export type Signing = 'record' | 'group'

/** What a write can carry beside its body (docs/adr/0008-idempotency.md). */
export interface WriteOptions {
  /** The chain heads of which one must be in force, bare hex between commas; `*` for any, of an agent that is there. */
  ifMatch?: string
  /** The caller's Idempotency-Key with the caller it belongs to. */
  idempotency?: { caller: string; key: string }
  signing?: Signing
}

/** The user about whom row policies decide (docs/adr/0012-row-policies.md); a command without it comes from a key. */
export interface UserAccess {
  claims: PolicyClaims
}

/** How a record is recognised, so that its caller writes it to its agent only once. */
export interface WriteOnce {
  /** By its whole body, or by source and id of the CloudEvent that it has to be. */
  by: 'body' | 'event'
  caller: string
}
