import { createHash, generateKeyPairSync } from 'node:crypto'
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import {
  COSEALG,
  decodeAttestationObject,
  decodeClientDataJSON,
  isoCBOR,
} from '@simplewebauthn/server/helpers'
import { limits } from '../base/limits/limits.js'
import {
  type AssertionCredential,
  type CreationOptions,
  type ExpectedAssertion,
  type NewPasskey,
  type PasskeyRow,
  type RegistrationCredential,
  type RelyingParty,
  type RequestOptions,
  userHandleOf,
  type VerifiedAssertion,
} from './passkey.js'
import type { SignInReason } from './sign-in-failure.js'

/** Accepted signature algorithms. Every authenticator and browser supports at least one of them. */
const algorithms = [COSEALG.EdDSA, COSEALG.ES256, COSEALG.RS256]

/** Credential ids have at most 1,023 bytes (WebAuthn Level 3, 7.1). */
const ID_BYTES_MAX = 1_023

const transportsKnown = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']

const timeout = limits.passkeySessionSecs * 1_000

/**
 * Registration and authentication for one relying party (WebAuthn Level 3, 7.1 and 7.2). User verification is
 * required, passkeys are discoverable, attestation is ignored.
 */
export class PasskeyCeremony {
  readonly #party: RelyingParty

  constructor(party: RelyingParty) {
    this.#party = party
  }

  /** The origins of pages, for `/.well-known/webauthn` (WebAuthn Level 3, 5.11.1). */
  get webOrigins(): readonly string[] {
    return this.#party.origins.filter((origin) => origin.startsWith('https:'))
  }

  /** The options of `navigator.credentials.create`. @param passkeys the existing passkeys of the user */
  creationOptions(
    challenge: string,
    { userId, email }: { userId: string; email: string },
    passkeys: readonly Pick<PasskeyRow, 'id' | 'transports'>[],
  ): Promise<CreationOptions> {
    const { rpId, name } = this.#party
    return generateRegistrationOptions({
      rpID: rpId,
      rpName: name,
      userID: new Uint8Array(Buffer.from(userId)),
      userName: email,
      userDisplayName: email,
      challenge: new Uint8Array(Buffer.from(challenge, 'base64url')),
      timeout,
      attestationType: 'none',
      excludeCredentials: passkeys.map(({ id, transports }) => ({ id, transports })),
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      supportedAlgorithmIDs: algorithms,
    })
  }

  /**
   * The options of `navigator.credentials.get`. They have no transports, which decoys lack and would reveal
   * real ids.
   */
  requestOptions(challenge: string, allowed: readonly string[] | undefined): Promise<RequestOptions> {
    return generateAuthenticationOptions({
      rpID: this.#party.rpId,
      challenge: new Uint8Array(Buffer.from(challenge, 'base64url')),
      timeout,
      userVerification: 'required',
      ...(allowed !== undefined && { allowCredentials: allowed.map((id) => ({ id })) }),
    })
  }

  /** Verifies a registration. @returns the new passkey; undefined if it is invalid */
  verifyRegistration(credential: RegistrationCredential, challenge: string): Promise<NewPasskey | undefined> {
    return unlessThrown(async () => {
      const { id, rawId, response } = credential
      if (isFramed(response.clientDataJSON)) return undefined
      const { verified, registrationInfo } = await verifyRegistrationResponse({
        response: {
          id,
          rawId,
          type: 'public-key',
          clientExtensionResults: {},
          response: {
            clientDataJSON: response.clientDataJSON,
            attestationObject: withoutAttestation(response.attestationObject),
          },
        },
        expectedChallenge: challenge,
        expectedOrigin: [...this.#party.origins],
        expectedRPID: this.#party.rpId,
        requireUserVerification: true,
        supportedAlgorithmIDs: algorithms,
      })
      if (!verified) return undefined
      const { credential: verifiedCredential, credentialDeviceType } = registrationInfo
      const idBytes = Buffer.from(verifiedCredential.id, 'base64url').length
      if (verifiedCredential.id !== id || idBytes === 0 || idBytes > ID_BYTES_MAX) return undefined
      if (verifiedCredential.publicKey.length > limits.passkeyKeyBytesMax) return undefined
      return {
        id: verifiedCredential.id,
        publicKey: Buffer.from(verifiedCredential.publicKey).toString('base64url'),
        counter: verifiedCredential.counter,
        backupEligible: credentialDeviceType === 'multiDevice',
        transports: transportsKnown.filter((one) => response.transports?.includes(one)),
      }
    })
  }

  /**
   * Verifies an assertion; undefined if it is invalid. The shard of the passkey checks the counter. Without a
   * passkey, the signature is verified with a dummy key, so that the response time does not reveal which ids
   * are real.
   */
  verifyAssertion(
    { id, rawId, response }: AssertionCredential,
    { challenge, named, passkey }: ExpectedAssertion,
  ): Promise<VerifiedAssertion | undefined> {
    return unlessThrown(async () => {
      const { clientDataJSON, authenticatorData, signature, userHandle } = response
      const publicKey = passkey === undefined ? dummyKey : Buffer.from(passkey.publicKey, 'base64url')
      const { verified, authenticationInfo } = await verifyAuthenticationResponse({
        response: {
          id,
          rawId,
          type: 'public-key',
          clientExtensionResults: {},
          response: { clientDataJSON, authenticatorData, signature },
        },
        expectedChallenge: challenge,
        expectedOrigin: [...this.#party.origins],
        expectedRPID: this.#party.rpId,
        requireUserVerification: true,
        credential: { id, publicKey: new Uint8Array(publicKey), counter: 0 },
      })
      if (!verified || passkey === undefined || isFramed(clientDataJSON)) return undefined
      const handle = userHandle ?? (named ? userHandleOf(passkey.userId) : undefined)
      if (handle !== userHandleOf(passkey.userId)) return undefined
      const { newCounter, credentialDeviceType } = authenticationInfo
      return { counter: newCounter, backupEligible: credentialDeviceType === 'multiDevice' }
    })
  }

  /** Why a registration did not verify. Faults of the page are reported before faults of the authenticator. */
  registrationFault({ response }: RegistrationCredential, challenge: string): SignInReason {
    const fault = this.#clientFault(response.clientDataJSON, { type: 'webauthn.create', challenge })
    if (fault !== undefined) return fault
    const data = authDataOf(response.attestationObject)
    return (data === undefined ? undefined : this.#authenticatorFault(data)) ?? 'malformed'
  }

  /** Why an assertion did not verify. Faults of the page are reported before faults of the passkey. */
  assertionFault(
    { response }: AssertionCredential,
    { challenge, named, passkey }: ExpectedAssertion,
  ): SignInReason {
    const { clientDataJSON, authenticatorData, userHandle = null } = response
    const fault =
      this.#clientFault(clientDataJSON, { type: 'webauthn.get', challenge }) ??
      this.#authenticatorFault(Buffer.from(authenticatorData, 'base64url'))
    if (fault !== undefined) return fault
    if (userHandle === null && !named) return 'malformed'
    if (passkey === undefined) return 'unknown_passkey'
    const owner = userHandleOf(passkey.userId)
    return (userHandle ?? owner) === owner ? 'bad_signature' : 'other_user'
  }

  #clientFault(
    clientDataJson: string,
    { type, challenge }: { type: string; challenge: string },
  ): SignInReason | undefined {
    const client = clientDataOf(clientDataJson)
    if (client?.type !== type) return 'malformed'
    if (client.challenge !== challenge) return 'wrong_challenge'
    const isKnown = client.origin !== undefined && this.#party.origins.includes(client.origin)
    return isKnown && client.crossOrigin !== true ? undefined : 'wrong_origin'
  }

  #authenticatorFault(data: Uint8Array): SignInReason | undefined {
    if (data.length <= RP_HASH_BYTES) return 'malformed'
    const rpHash = createHash('sha256').update(this.#party.rpId).digest()
    if (!rpHash.equals(data.subarray(0, RP_HASH_BYTES))) return 'wrong_rp'
    const flags = data[RP_HASH_BYTES] ?? 0
    return (flags & USER_VERIFIED) === USER_VERIFIED ? undefined : 'user_not_verified'
  }
}

function clientDataOf(clientDataJson: string): Partial<ReturnType<typeof decodeClientDataJSON>> | undefined {
  try {
    return decodeClientDataJSON(clientDataJson) ?? undefined
  } catch {
    // Not JSON.
    return undefined
  }
}

/** Authenticator data begins with the SHA-256 of the relying party id, then flags (WebAuthn Level 3, 6.1). */
const RP_HASH_BYTES = 32
const USER_VERIFIED = 0x05

/** The authenticator data of a registration; undefined if it is malformed. */
function authDataOf(attestationObject: string): Uint8Array | undefined {
  try {
    return decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url'))).get(
      'authData',
    )
  } catch {
    // Not CBOR.
    return undefined
  }
}

/** The library throws an Error for any invalid input. */
async function unlessThrown<T>(verify: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await verify()
  } catch {
    return undefined
  }
}

/** Whether the ceremony ran in a frame on a page of another site, which is not allowed (7.1, step 10). */
function isFramed(clientDataJson: string): boolean {
  return decodeClientDataJSON(clientDataJson).crossOrigin === true
}

/**
 * Removes the attestation statement, if any. It proves nothing without trusted roots, and the library could
 * fetch addresses from its certificates.
 */
function withoutAttestation(attestationObject: string): string {
  const decoded = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url')))
  const none = new Map<string, string | Uint8Array | Map<string, never>>([
    ['fmt', 'none'],
    ['attStmt', new Map<string, never>()],
    ['authData', decoded.get('authData')],
  ])
  return Buffer.from(isoCBOR.encode(none)).toString('base64url')
}

/** A COSE public key (P-256) whose private key is discarded. */
function createDummyKey(): Uint8Array {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const coordinate = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'))
  // kty EC2, alg ES256, crv P-256 (RFC 9053, 7.1.1).
  return isoCBOR.encode(
    new Map<number, number | Uint8Array>([
      [1, 2],
      [3, COSEALG.ES256],
      [-1, 1],
      [-2, coordinate(x)],
      [-3, coordinate(y)],
    ]),
  )
}

const dummyKey = createDummyKey()
