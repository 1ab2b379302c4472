import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server'

/** Options of `navigator.credentials.create` and `.get`, as JSON (WebAuthn Level 3, 5.4 and 5.5). */
export type CreationOptions = PublicKeyCredentialCreationOptionsJSON
export type RequestOptions = PublicKeyCredentialRequestOptionsJSON

/** Whom passkeys are made for and where they are used (SERVICE_WEBAUTHN_…). */
export interface RelyingParty {
  /** The domain that passkeys belong to. */
  readonly rpId: string
  /** The origin of the pages that use them. */
  readonly origin: string
  /** Shown by browsers. */
  readonly name: string
}

/** What a ceremony is for. */
export type Ceremony = 'register' | 'authenticate'

/** A passkey that was verified and is to be kept. */
export interface NewPasskey {
  /** The credential id, base64url. */
  id: string
  /** The COSE public key, base64url. */
  publicKey: string
  /** The signature counter; 0 where the authenticator has none. */
  counter: number
  /** Whether the key may live on several devices; it never changes (WebAuthn Level 3, 6.1.3). */
  backupEligible: boolean
  /** How browsers reach the authenticator, for `excludeCredentials`. */
  transports: string[]
}

/** A passkey as the store keeps it. */
export interface PasskeyRow extends NewPasskey {
  userId: string
  createdAtMs: number
  lastUsedAtMs?: number
}

/** A new credential as a browser's `toJSON()` gives it; binary values are base64url (WebAuthn Level 3, 5.1). */
export interface RegistrationCredential {
  id: string
  rawId: string
  type: 'public-key'
  response: { clientDataJSON: string; attestationObject: string; transports?: string[] }
}

/** An assertion as a browser's `toJSON()` gives it. */
export interface AssertionCredential {
  id: string
  rawId: string
  type: 'public-key'
  response: {
    clientDataJSON: string
    authenticatorData: string
    signature: string
    /** Whose passkey it is; authenticators may leave it out where credential ids were named. */
    userHandle?: string | null
  }
}

/** What an assertion is checked against. */
export interface ExpectedAssertion {
  challenge: string
  /** Whether the ceremony began with an e-mail; if not, the assertion has to name the user. */
  named: boolean
  /** The passkey that it names; absent when no passkey may be used. */
  passkey?: PasskeyRow
}

/** What a verified assertion said. */
export interface VerifiedAssertion {
  counter: number
  backupEligible: boolean
}

/**
 * The `amr` of a sign-in by passkey (RFC 8176): proof of possession of a key, several factors, since the authenticator
 * verified its user, and the user's presence. Not `hwk`: a synchronised key is not bound to hardware, and without
 * attestation nobody knows whether it is.
 */
export const passkeyAmr = ['pop', 'mfa', 'user'] as const

/** The user handle of a user, base64url: it says whose a discoverable passkey is. */
export function userHandleOf(userId: string): string {
  return Buffer.from(userId).toString('base64url')
}

/**
 * Whether a signature counter may follow another: it grows, or the authenticator has none and says 0 (WebAuthn Level 3,
 * 6.1.1). A counter that does not grow means a copied key.
 */
export function counterGrows(kept: number, said: number): boolean {
  return said > kept || (said === 0 && kept === 0)
}
