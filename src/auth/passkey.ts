import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Checked, isFlag, isKeyNumber, isText, listOf, optional, fields } from '../base/shape.js'
import { deriveSeed } from '../strand/keys.js'

/** Options of `navigator.credentials.create` and `.get`, as JSON (WebAuthn Level 3, 5.4 and 5.5). */
export type CreationOptions = PublicKeyCredentialCreationOptionsJSON
export type RequestOptions = PublicKeyCredentialRequestOptionsJSON

/** The relying party of passkeys (SERVICE_WEBAUTHN_…). */
export interface RelyingParty {
  readonly rpId: string
  /** The origins of the pages and Android apps that use passkeys. */
  readonly origins: readonly string[]
  /** Shown by browsers. */
  readonly name: string
}

export type Ceremony = 'register' | 'authenticate'

export const isPasskeyRow = fields({
  /** The credential id, base64url. */
  id: isText,
  /** The COSE public key, base64url. */
  publicKey: isText,
  /** The signature counter; 0 if the authenticator has none. */
  counter: isKeyNumber,
  /** Whether the key may be on several devices; it never changes (WebAuthn Level 3, 6.1.3). */
  backupEligible: isFlag,
  /** How browsers reach the authenticator, for `excludeCredentials`. */
  transports: listOf(isText),
  userId: isText,
  createdAtMs: isKeyNumber,
  lastUsedAtMs: optional(isKeyNumber),
})

export type PasskeyRow = Checked<typeof isPasskeyRow>

/** A verified passkey that is not stored yet. */
export type NewPasskey = Omit<PasskeyRow, 'userId' | 'createdAtMs' | 'lastUsedAtMs'>

/** A new credential, from `toJSON()` in the browser; binary values are base64url (WebAuthn Level 3, 5.1). */
export interface RegistrationCredential {
  id: string
  rawId: string
  type: 'public-key'
  response: { clientDataJSON: string; attestationObject: string; transports?: string[] }
}

/** An assertion, from `toJSON()` in the browser. */
export interface AssertionCredential {
  id: string
  rawId: string
  type: 'public-key'
  response: {
    clientDataJSON: string
    authenticatorData: string
    signature: string
    /** The user of the passkey; authenticators may omit it if the request had credential ids. */
    userHandle?: string | null
  }
}

export interface ExpectedAssertion {
  challenge: string
  /** Whether the ceremony began with an e-mail; otherwise the assertion must have a user handle. */
  named: boolean
  /** The passkey of the assertion; absent if it is unknown or must not be used. */
  passkey?: PasskeyRow
}

export interface VerifiedAssertion {
  counter: number
  backupEligible: boolean
}

/**
 * The `amr` of a sign-in by passkey (RFC 8176): proof of possession, several factors (the authenticator
 * verifies the user) and user presence. Not `hwk`, because without attestation it is unknown whether the key
 * is bound to hardware.
 */
export const passkeyAmr = ['pop', 'mfa', 'user'] as const

/** The user handle of a user, base64url, which discoverable passkeys contain. */
export function userHandleOf(userId: string): string {
  return Buffer.from(userId).toString('base64url')
}

/**
 * Whether a signature counter may follow the stored one: it is larger, or the authenticator has none and
 * sends 0 (WebAuthn Level 3, 6.1.1). A counter that does not grow indicates a cloned key.
 */
export function counterGrows(stored: number, received: number): boolean {
  return received > stored || (received === 0 && stored === 0)
}

/**
 * Lengths of decoy ids in bytes, as frequent as with real authenticators: password managers and phones 16 and
 * 20, platforms and browsers 32, security keys 48 and 64.
 */
const lengths = [16, 16, 16, 16, 16, 20, 20, 20, 32, 32, 32, 32, 32, 48, 48, 64] as const

/** The key of decoy credential ids, 32 bytes, derived from the master seed. */
export function decoyKey(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, 'strandfast/passkey-decoy/v1')
}

interface DecoyOwner {
  namespace: string
  /** The result of `normalizeEmail`. */
  email: string
}

/**
 * Made-up credential ids, always the same for one mailbox. They are mixed with real ids, so that a list does
 * not reveal whether an account exists and how many passkeys it has (docs/adr/0016-passkeys.md).
 * @returns base64url texts
 */
export function decoyIds(key: Uint8Array, { namespace, email }: DecoyOwner, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    // Namespaces and e-mails contain no NUL.
    const digest = createHmac('sha512', key).update(`id\0${namespace}\0${email}\0${index}`).digest()
    const length = lengths[(digest[digest.length - 1] ?? 0) % lengths.length] ?? 32
    const first = digest.subarray(0, length / 2)
    return Buffer.concat([first, sealOf(key, namespace, first)]).toString('base64url')
  })
}

/**
 * Whether an id is a decoy of this namespace. The registration of a decoy is refused like that of another
 * user's passkey; otherwise it would reveal which ids of a list are real. A real id is mistaken for a decoy
 * with a probability below 2^-63.
 */
export function isDecoy(key: Uint8Array, namespace: string, id: string): boolean {
  const bytes = Buffer.from(id, 'base64url')
  if (!lengths.some((length) => length === bytes.length)) return false
  const first = bytes.subarray(0, bytes.length / 2)
  return timingSafeEqual(bytes.subarray(bytes.length / 2), sealOf(key, namespace, first))
}

/** The second half of a decoy id, by which the server recognises it; without the key it looks random. */
function sealOf(key: Uint8Array, namespace: string, first: Uint8Array): Buffer {
  // The root namespace has no suffix, for compatibility with earlier versions.
  const prefix = namespace === '' ? 'seal\0' : `seal\0${namespace}\0`
  return createHmac('sha256', key).update(prefix).update(first).digest().subarray(0, first.length)
}
