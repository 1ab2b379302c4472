import type { DeviceClaim } from '../auth/device-token.js'
import type { LockoutPolicy } from '../auth/lockout.js'
import type { OauthProviderName, OauthStateRow } from '../auth/oauth.js'
import type { OutboxMessage } from '../auth/outbox-message.js'
import type { Ceremony, NewPasskey, PasskeyRow, VerifiedAssertion } from '../auth/passkey.js'
import type { SessionRow } from '../auth/session.js'
import type { SignInFailure } from '../auth/sign-in-failure.js'
import type { Metadata, UserRow } from '../auth/user.js'
import type { Refusal } from '../base/errors.js'
import type { WriteOptions } from './command-options.js'

/*
 * Messages about the state of one auth namespace. That state is in the shard of the namespace's audit agent,
 * so that a change and its audit record are one transaction (docs/adr/0010-auth-state.md).
 */

/** The origin of a request, for audit records. */
export interface AuthOrigin {
  ip: string
  userAgent: string
  requestId: string
}

/** Changes a namespace and appends the audit record. */
export interface AuthChange {
  kind: 'authChange'
  /** The audit agent, which determines the shard. */
  agent: string
  /** Empty for the root namespace. */
  namespace: string
  change: Change
  origin: AuthOrigin
  /** The lineage of the caller's key; absent for users and without a credential. */
  line?: string
  /** Empty: auth routes take no Idempotency-Key, because their answers contain secrets. */
  options: WriteOptions
}

export interface AuthLookup {
  kind: 'authLookup'
  agent: string
  namespace: string
  lookup: Lookup
}

/** Lists the revocations in all namespaces of the shard; sent when a front starts. */
export interface RevocationsList {
  kind: 'revocationsList'
}

/** Reads mails of the shard's outbox whose next attempt is due, the oldest first. */
export interface MailDue {
  kind: 'mailDue'
  limit: number
}

/** Records the result of an attempt to send a mail. */
export interface MailAttempted {
  kind: 'mailAttempted'
  /** Identifies the mail and its due time. */
  key: string
  result: { kind: 'done' } | { kind: 'failed'; attempts: number; retryAtMs?: number }
  options: WriteOptions
}

export type LinkPurpose = 'magicLink' | 'verifyEmail' | 'passwordReset'

export interface LinkDraft {
  purpose: LinkPurpose
  /** SHA-256 of the token, 64 hex digits. */
  hash: string
  expiresAtMs: number
  /** The token for the mail; absent while mail is off. */
  mailToken?: string
}

/** A passkey session to be stored until its ceremony ends. */
export interface PasskeySessionDraft {
  /** SHA-256 of the session token, 64 hex digits. */
  hash: string
  /** The challenge that the authenticator must sign, base64url. */
  challenge: string
  expiresAtMs: number
}

/** The sessions that a logout ends. */
export type LogoutScope = 'local' | 'others' | 'global'

/** A password change in a session of the user, perhaps from a known device. */
interface PasswordToChange {
  userId: string
  sid: string
  comparedHash: string
  passwordHash: string
  device?: DeviceClaim
}

/** A change of a namespace. E-mails are normalized by `normalizeEmail`; passwords are hashes. */
export type Change =
  /** `verifyLink` is mailed to the new user if verification is required. */
  | { kind: 'register'; email: string; passwordHash: string; verifyLink?: LinkDraft }
  /** The password was right; `passwordHash` is the hash with which it was compared. */
  | { kind: 'loginSucceeded'; email: string; passwordHash: string; rehashed?: string; device?: DeviceClaim }
  | { kind: 'loginFailed'; email: string; device?: DeviceClaim }
  /**
   * Another sign-in that failed before the shard could decide; with `email` or `passkeyId` if the caller sent
   * one, with `userId` if a signed-in user did.
   */
  | ({ kind: 'signInFailed'; email?: string; passkeyId?: string; userId?: string } & SignInFailure)
  /** The token of a password reset is unknown, was used before or has expired. */
  | { kind: 'passwordResetFailed'; hash: string }
  | { kind: 'refresh'; sid: string; generation: number }
  | { kind: 'logout'; userId: string; sid: string; scope: LogoutScope }
  | { kind: 'sessionEnd'; userId: string; sid: string }
  | { kind: 'revoke'; userId: string; sid: string; jti: string; expiresAtMs: number }
  | { kind: 'userMetadata'; userId: string; sid: string; metadata: Metadata }
  | { kind: 'appMetadata'; email: string; metadata: Metadata; clearUserMetadata?: boolean }
  | { kind: 'userDelete'; email: string }
  | { kind: 'userUnlock'; email: string }
  | { kind: 'userLogout'; email: string }
  | { kind: 'linkSend'; email: string; link: LinkDraft }
  | { kind: 'magicLinkVerify'; hash: string }
  | { kind: 'emailVerify'; hash: string }
  | { kind: 'passwordReset'; hash: string; passwordHash: string; removePasskeys?: boolean }
  /** The current password was right; `comparedHash` is the hash with which it was compared. */
  | ({ kind: 'passwordChange' } & PasswordToChange)
  | { kind: 'passkeyRegistration'; userId: string; sid: string; session: PasskeySessionDraft }
  /** Without an e-mail, any passkey of the namespace may sign in. */
  | { kind: 'passkeyAuthentication'; email?: string; session: PasskeySessionDraft }
  /**
   * Consumes a passkey session. `userId` is the user who registers, `passkeyId` the passkey that
   * authenticates.
   */
  | { kind: 'passkeySessionTake'; hash: string; ceremony: Ceremony; userId?: string; passkeyId?: string }
  /** The registration was verified. `notify`: mail is on, so the owner is notified. */
  | { kind: 'passkeyRegister'; userId: string; sid: string; passkey: NewPasskey; notify: boolean }
  /** The assertion was verified with `publicKey`. */
  | { kind: 'passkeyLogin'; passkeyId: string; publicKey: string; assertion: VerifiedAssertion }
  | { kind: 'passkeyRemove'; userId: string; sid: string; passkeyId: string }
  /** Activates the next signing key. */
  | { kind: 'keyRotate' }
  /** Stores a pending OAuth sign-in under the SHA-256 of its state, 64 hex digits. */
  | { kind: 'oauthStart'; stateHash: string; row: OauthStateRow }
  /** The browser has returned; `browserHash` is the hash of its cookie. */
  | { kind: 'oauthReturn'; stateHash: string; provider: OauthProviderName; browserHash: string }
  /** The provider confirmed an identity; `email` only if the provider has verified it. */
  | { kind: 'oauthLogin'; provider: OauthProviderName; subject: string; email?: string }
  /** Creates the namespace of an organism with its audit agent. */
  | { kind: 'namespaceInit' }

export type ChangeOf<K extends Change['kind']> = Extract<Change, { kind: K }>

export type Lookup =
  /** The lockout state of a password login, for a known or unknown e-mail and device. */
  | { kind: 'loginState'; email: string; device?: DeviceClaim }
  | { kind: 'user'; userId: string }
  /** Users whose e-mails begin with `prefix`, or only the one with `userId`. */
  | { kind: 'users'; prefix: string; after: string; limit: number; userId?: string }
  | { kind: 'sessions'; userId: string }
  | { kind: 'userSessions'; email: string }
  /** Whether a link can be used. */
  | { kind: 'link'; hash: string; purpose: LinkPurpose }
  | { kind: 'passkeys'; userId: string }
  | { kind: 'keyEpochs' }

export type LookupOf<K extends Lookup['kind']> = Extract<Lookup, { kind: K }>

/** A user as the front thread sees it, without the password hash. */
export type AuthUser = Omit<UserRow, 'passwordHash'>

/** A user as administrators see it, with its name in audit records of logins and its number of passkeys. */
export type ListedUser = AuthUser & { lockedUntilMs: number; emailHmac: string; passkeys: number }

/** A sign-in: the session with the generation of the refresh token in the answer. */
export interface SignedIn {
  kind: 'signedIn'
  user: AuthUser
  session: SessionRow
  generation: number
}

/** The signing keys of a namespace: the current epoch, and earlier ones whose tokens may still be valid. */
export interface KeyEpochs {
  kind: 'keyEpochs'
  epoch: number
  retired: { epoch: number; untilMs: number }[]
}

export type AuthAnswer =
  | SignedIn
  | KeyEpochs
  /** The e-mail must be verified before the first sign-in; the same answer if it is already registered. */
  | { kind: 'registered' }
  | { kind: 'user'; user: AuthUser }
  | { kind: 'users'; users: ListedUser[]; total: number; after?: string }
  | { kind: 'sessions'; sessions: SessionRow[] }
  | { kind: 'userSessions'; userId: string; sessions: SessionRow[] }
  | { kind: 'ended'; sessions: number }
  /** An administrator ended the sessions of a user. */
  | { kind: 'loggedOut'; userId: string; sessions: number }
  /** `untilMs` is the end of the lockout, Unix milliseconds; 0 if there was none. */
  | { kind: 'unlocked'; userId: string; untilMs: number }
  /** `device`: a known device of the account, which has its own lockout. */
  | { kind: 'loginState'; device?: true; lockedForMs: number; failures: number; passwordHash?: string }
  | { kind: 'link'; usable: boolean }
  /** The next page of the browser. */
  | ({ kind: 'oauthReturn' } & Pick<OauthStateRow, 'redirectUri' | 'mode'>)
  | { kind: 'passkeys'; passkeys: PasskeyRow[] }
  /** A registration may begin; `passkeys` are the user's existing ones. */
  | { kind: 'passkeyRegistration'; user: AuthUser; passkeys: PasskeyRow[] }
  /** An authentication may begin with one of these passkeys; with any if absent. */
  | { kind: 'passkeyAuthentication'; allowed?: string[] }
  /** A valid passkey session, with the passkey if it may be used. `named`: the session has an e-mail. */
  | { kind: 'passkeySession'; challenge: string; named: boolean; email?: string; passkey?: PasskeyRow }
  | { kind: 'initialised'; createdAtMs: number }
  | { kind: 'done' }

/** A revoked session, token or user, whose tokens are refused until they expire. */
export interface Revocation {
  /** The kind of `id`: a session, a token or a user. */
  what: 'sid' | 'jti' | 'sub'
  id: string
  untilMs: number
}

/** The answer of a namespace, with further facts for the front. */
export interface AuthOutcome {
  kind: 'auth'
  answer: AuthAnswer | Refusal
  /** Whether a mail was added to the outbox. */
  mailed?: boolean
  /** The user of whom a token, a session or all of them were ended. */
  endedUser?: string
  /** A failed sign-in, with the user if known. */
  failure?: SignInFailure & { userId?: string }
}

export interface RevocationsOutcome {
  kind: 'revocations'
  rows: (Revocation & { namespace: string })[]
}

export interface MailDueOutcome {
  kind: 'mailDue'
  mails: { key: string; message: OutboxMessage }[]
}

export interface AuthRules {
  lockout: LockoutPolicy
  refreshExpirySecs: number
  jwtExpirySecs: number
  requireEmailVerify: boolean
  metadataBytesMax: number
  /** A new number after each restore, so that links and ceremonies from before are not found. */
  tokenEra: number
}

export type AuthCommand = AuthChange | AuthLookup | RevocationsList | MailDue | MailAttempted

export type AuthCommandOutcome = AuthOutcome | RevocationsOutcome | MailDueOutcome
