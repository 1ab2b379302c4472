import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { deriveSeed } from '../strand/keys.js'

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

/**
 * Lengths of credential ids in bytes, drawn with equal chance from these sixteen, so that each is as frequent as with
 * real authenticators: password managers and phones 16 and 20, platforms and browsers 32, security keys 48 and 64.
 */
const lengths = [16, 16, 16, 16, 16, 20, 20, 20, 32, 32, 32, 32, 32, 48, 48, 64] as const

/** The key of made-up credential ids, 32 bytes, derived from the master seed: the same after every restart. */
export function decoyKey(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, 'strandfast/passkey-decoy/v1')
}

/** The mailbox of a namespace for which ids are made up. */
interface DecoyOwner {
  namespace: string
  /** As `normalizeEmail` gives it. */
  email: string
}

/**
 * Made-up credential ids, always the same for one mailbox. They stand among real ones so that a list shows neither
 * whether an account exists nor how many passkeys it has (docs/adr/0016-passkeys.md).
 * @returns base64url texts
 */
export function decoyIds(key: Uint8Array, { namespace, email }: DecoyOwner, count: number): string[] {
  return Array.from({ length: count }, (_, place) => {
    // No namespace or e-mail contains NUL.
    const chosen = createHmac('sha512', key).update(`id\0${namespace}\0${email}\0${place}`).digest()
    const length = lengths[(chosen[chosen.length - 1] ?? 0) % lengths.length] ?? 32
    const first = chosen.subarray(0, length / 2)
    return Buffer.concat([first, sealOf(key, namespace, first)]).toString('base64url')
  })
}

/**
 * Whether an id is made up. Registering one is refused like registering another user's; otherwise an attempt would show
 * which ids of a list are real. One that was made up in another namespace is as any other id of an authenticator there: only the
 * namespace that it stands in may know it. A real id is mistaken for a made-up one with a chance below 2^-63.
 */
export function isDecoy(key: Uint8Array, namespace: string, id: string): boolean {
  const bytes = Buffer.from(id, 'base64url')
  if (!lengths.some((length) => length === bytes.length)) return false
  const first = bytes.subarray(0, bytes.length / 2)
  return timingSafeEqual(bytes.subarray(bytes.length / 2), sealOf(key, namespace, first))
}

/** The second half of a made-up id, by which the server recognises it; without the key it looks random. */
function sealOf(key: Uint8Array, namespace: string, first: Uint8Array): Buffer {
  // The ids of the root namespace stay as they were before seals named the namespace.
  const place = namespace === '' ? 'seal\0' : `seal\0${namespace}\0`
  return createHmac('sha256', key).update(place).update(first).digest().subarray(0, first.length)
}
