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
 * Messages about the state of one auth namespace. The shard of the namespace's audit agent keeps that state, so that a
 * change and its audit record are one transaction (docs/adr/0010-auth-state.md).
 */

/** Who asked, as audit records say it. */
export interface AuthOrigin {
  ip: string
  userAgent: string
  requestId: string
}

/** One change of a namespace, with its audit record. */
export interface AuthChange {
  kind: 'authChange'
  /** The audit agent, which decides the shard. */
  agent: string
  /** Empty for the root namespace. */
  namespace: string
  change: Change
  origin: AuthOrigin
  /** The line of the key by which it is asked for; absent for users, and without a credential. */
  line?: string
  /** Empty: auth routes take no Idempotency-Key, since their answers hold secrets. */
  options: WriteOptions
}

/** One read of a namespace. */
export interface AuthLookup {
  kind: 'authLookup'
  agent: string
  namespace: string
  lookup: Lookup
}

/** Lists the revocations in all namespaces of the shard; sent at the start. */
export interface RevocationsList {
  kind: 'revocationsList'
}

/** Mails of the shard's outbox whose next try is due, the oldest first. */
export interface MailDue {
  kind: 'mailDue'
  limit: number
}

/** The result of a try to send a mail. */
export interface MailSettle {
  kind: 'mailSettle'
  /** Identifies the mail and its due time. */
  key: string
  result: { kind: 'done' } | { kind: 'failed'; attempts: number; retryAtMs?: number }
  options: WriteOptions
}

/** What a link is for. */
export type LinkPurpose = 'magicLink' | 'verifyEmail' | 'passwordReset'

/** A link to be stored, and mailed if there is a token. */
export interface LinkDraft {
  purpose: LinkPurpose
  /** SHA-256 of the token, 64 hex digits. */
  hash: string
  expiresAtMs: number
  /** The raw token for the mail; absent while mail is off. */
  mailToken?: string
}

/** A passkey session to be stored until its ceremony ends. */
export interface PasskeySessionDraft {
  /** SHA-256 of the session token, 64 hex digits. */
  hash: string
  /** What the authenticator has to sign, base64url. */
  challenge: string
  expiresAtMs: number
}

/** How far a logout reaches. */
export type LogoutScope = 'local' | 'others' | 'global'

/** A change of password within a session of its user, perhaps from a known device. */
interface PasswordToChange {
  userId: string
  sid: string
  /** The hash that the current password was compared with. */
  comparedHash: string
  passwordHash: string
  device?: DeviceClaim
}

/** What can be changed in a namespace. E-mails are as `normalizeEmail` gives them, passwords are hashes. */
export type Change =
  /** `verifyLink` is mailed to the new user if verification is required. */
  | { kind: 'register'; email: string; passwordHash: string; verifyLink?: LinkDraft }
  /** The password was right; `passwordHash` is the hash that it was compared with. */
  | { kind: 'loginSucceeded'; email: string; passwordHash: string; rehashed?: string; device?: DeviceClaim }
  | { kind: 'loginFailed'; email: string; device?: DeviceClaim }
  /** Any other sign-in that failed before the shard could decide on it; `email` or `passkeyId` where the caller named one. */
  | ({ kind: 'signInFailed'; email?: string; passkeyId?: string } & SignInFailure)
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
  /** The current password was right; `comparedHash` is the hash that it was compared with. */
  | ({ kind: 'passwordChange' } & PasswordToChange)
  | { kind: 'passkeyRegistration'; userId: string; sid: string; session: PasskeySessionDraft }
  /** Without an e-mail, any passkey of the namespace may be used. */
  | { kind: 'passkeyAuthentication'; email?: string; session: PasskeySessionDraft }
  /** Uses a passkey session up. `userId` is the user who registers, `passkeyId` the passkey that authenticates. */
  | { kind: 'passkeySessionTake'; hash: string; ceremony: Ceremony; userId?: string; passkeyId?: string }
  /** The registration was verified. `notify`: mail is on, so the owner gets a mail. */
  | { kind: 'passkeyRegister'; userId: string; sid: string; passkey: NewPasskey; notify: boolean }
  /** The assertion was verified with `publicKey`. */
  | { kind: 'passkeyLogin'; passkeyId: string; publicKey: string; assertion: VerifiedAssertion }
  | { kind: 'passkeyRemove'; userId: string; sid: string; passkeyId: string }
  /** Makes the next signing key the one in force. */
  | { kind: 'keyRotate' }
  /** Keeps a sign-in by a provider under the SHA-256 of its state, 64 hex digits. */
  | { kind: 'oauthStart'; stateHash: string; row: OauthStateRow }
  /** The browser is back; `browserHash` is the hash of its cookie. */
  | { kind: 'oauthReturn'; stateHash: string; provider: OauthProviderName; browserHash: string }
  /** The provider vouched for an identity; `email` only where it calls that verified. */
  | { kind: 'oauthLogin'; provider: OauthProviderName; subject: string; email?: string }
  /** Makes the namespace of an organism, with its audit agent. */
  | { kind: 'namespaceInit' }

/** A change by its kind. */
export type ChangeOf<K extends Change['kind']> = Extract<Change, { kind: K }>

/** What can be looked up in a namespace. */
export type Lookup =
  /** The lockout state for a login by password, for a known or unknown e-mail, from a known device or a stranger's. */
  | { kind: 'loginState'; email: string; device?: DeviceClaim }
  | { kind: 'user'; userId: string }
  /** Users whose e-mails begin with `prefix`. */
  | { kind: 'users'; prefix: string; after: string; limit: number }
  | { kind: 'sessions'; userId: string }
  | { kind: 'userSessions'; email: string }
  /** Whether a link can be used. */
  | { kind: 'link'; hash: string; purpose: LinkPurpose }
  | { kind: 'passkeys'; userId: string }
  | { kind: 'keyEpochs' }

/** A lookup by its kind. */
export type LookupOf<K extends Lookup['kind']> = Extract<Lookup, { kind: K }>

/** A user as the front thread sees it: without the password's hash. */
export type AuthUser = Omit<UserRow, 'passwordHash'>

/** A user as administrators see it. `emailHmac` names it in audit records of logins; `passkeys` is how many it has. */
export type ListedUser = AuthUser & { lockedUntilMs: number; emailHmac: string; passkeys: number }

/** Somebody is signed in: a session, with the generation of the refresh token in the answer. */
export interface SignedIn {
  kind: 'signedIn'
  user: AuthUser
  session: SessionRow
  generation: number
}

/** Signing keys of a namespace: the epoch in force, and those before it whose tokens may still be valid. */
export interface KeyEpochs {
  kind: 'keyEpochs'
  epoch: number
  retired: { epoch: number; untilMs: number }[]
}

/** What a namespace answers. */
export type AuthAnswer =
  | SignedIn
  | KeyEpochs
  /** Registered, but the e-mail must be verified before anything else; the same where it was taken. */
  | { kind: 'registered' }
  | { kind: 'user'; user: AuthUser }
  | { kind: 'users'; users: ListedUser[]; total: number; after?: string }
  | { kind: 'sessions'; sessions: SessionRow[] }
  | { kind: 'userSessions'; userId: string; sessions: SessionRow[] }
  /** How many sessions ended. */
  | { kind: 'ended'; sessions: number }
  /** The sessions of a user were ended by an administrator. */
  | { kind: 'loggedOut'; userId: string; sessions: number }
  /** `untilMs`: until when logins were locked, Unix milliseconds; 0 where they were not. */
  | { kind: 'unlocked'; userId: string; untilMs: number }
  /** `device`: the device belongs to the account, and this is its own lockout. */
  | { kind: 'loginState'; device?: true; lockedForMs: number; failures: number; passwordHash?: string }
  | { kind: 'link'; usable: boolean }
  /** Where the browser goes next. */
  | ({ kind: 'oauthReturn' } & Pick<OauthStateRow, 'redirectUri' | 'mode'>)
  | { kind: 'passkeys'; passkeys: PasskeyRow[] }
  /** A registration may begin; `passkeys` are those that the user has. */
  | { kind: 'passkeyRegistration'; user: AuthUser; passkeys: PasskeyRow[] }
  /** An authentication may begin with one of these passkeys; absent for any. */
  | { kind: 'passkeyAuthentication'; allowed?: string[] }
  /**
   * A valid passkey session; `passkey` is present if the given passkey may be used. `named`: it began with an e-mail, which
   * authentications have.
   */
  | { kind: 'passkeySession'; challenge: string; named: boolean; email?: string; passkey?: PasskeyRow }
  | { kind: 'initialised'; createdAtMs: number }
  | { kind: 'done' }

/** A session, token or user whose tokens are refused from now on, until they have expired. */
export interface Revocation {
  /** A session, a token or a user. */
  what: 'sid' | 'jti' | 'sub'
  id: string
  untilMs: number
}

/** The answer of a namespace, with what else the front must know. */
export interface AuthOutcome {
  kind: 'auth'
  answer: AuthAnswer | Refusal
  /** A mail was put into the outbox. */
  mailed?: boolean
  /** A sign-in failed, of this user if it is known. */
  failure?: SignInFailure & { userId?: string }
}

/** All revocations, with their namespaces. */
export interface RevocationsOutcome {
  kind: 'revocations'
  rows: (Revocation & { namespace: string })[]
}

/** Mails that are due. */
export interface MailDueOutcome {
  kind: 'mailDue'
  mails: { key: string; message: OutboxMessage }[]
}

/** The auth settings that shards need. */
export interface AuthRules {
  lockout: LockoutPolicy
  refreshExpirySecs: number
  jwtExpirySecs: number
  requireEmailVerify: boolean
  metadataBytesMax: number
  /** Another number after each restore, so that links and begun ceremonies from before are not found. */
  tokenEra: number
}
