import type {
  PasskeyCreation,
  PasskeyDeleted,
  PasskeyPage,
  PasskeyRegistered,
  PasskeyRequest,
  MagicLinkVerified,
} from './auth-types.js'
import { ServiceError } from './errors.js'
import type { CallOptions } from './types.js'

/** The calls of the auth client that passkeys use. */
export interface PasskeyCalls {
  /** Sends a call with the token of the signed-in user. */
  asUser<R>(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    given: CallOptions & { body?: object },
  ): Promise<R>
  /** Sends a POST without a credential. */
  post<R>(path: string, body: object, options: CallOptions): Promise<R>
  /** Signs in without a credential; the answer contains the new session. */
  signIn(path: string, body: object, options: CallOptions): Promise<MagicLinkVerified>
}

type CreationOptions = PasskeyCreation['creation_options']
type RequestOptions = PasskeyRequest['request_options']

/**
 * Passkeys (WebAuthn) in a browser. Registration and sign-in work on pages of the origin that is configured
 * in the service, and the browser asks the user; if the user declines, the promise rejects with the browser's
 * NotAllowedError. Further errors: `passkeys_not_supported` (status 0) on a platform without passkeys, 501
 * `passkeys_not_configured`, 401 `passkey_failed`.
 */
export class PasskeyClient {
  readonly #calls: PasskeyCalls

  constructor(calls: PasskeyCalls) {
    this.#calls = calls
  }

  /**
   * Registers a passkey for the signed-in user. Errors: 401 `reauthentication_required` if the sign-in was
   * more than ten minutes ago, so the user must sign in again; 409 `passkey_exists` if the user has already
   * registered this passkey; 413 `too_large` if the user has too many passkeys.
   */
  async register(options: CallOptions = {}): Promise<PasskeyRegistered> {
    const credentials = platformCredentials()
    const path = '/passkey/register-challenge'
    const challenge = await this.#calls.asUser<PasskeyCreation>('POST', path, options)
    const created = await credentials.create({
      publicKey: creationOptionsOf(challenge.creation_options),
      ...(options.signal && { signal: options.signal }),
    })
    const body = { session_token: challenge.session_token, registration: registrationOf(keyOf(created)) }
    return this.#calls.asUser('POST', '/passkey/register', { ...options, body })
  }

  /**
   * Signs in.
   * @param email the account; without it, the user chooses among the passkeys that the browser knows
   */
  async signIn(email?: string, options: CallOptions = {}): Promise<MagicLinkVerified> {
    const credentials = platformCredentials()
    const account = email === undefined ? {} : { email }
    const path = '/passkey/authenticate-challenge'
    const challenge = await this.#calls.post<PasskeyRequest>(path, account, options)
    const credential = await credentials.get({
      publicKey: requestOptionsOf(challenge.request_options),
      ...(options.signal && { signal: options.signal }),
    })
    const body = { session_token: challenge.session_token, assertion: assertionOf(keyOf(credential)) }
    return this.#calls.signIn('/passkey/authenticate', body, options)
  }

  /** The passkeys of the signed-in user, oldest first. */
  list(options: CallOptions = {}): Promise<PasskeyPage> {
    return this.#calls.asUser('GET', '/passkeys', options)
  }

  /** Deletes a passkey, which can no longer be used to sign in. Errors: NotFoundError. */
  async delete(id: string, options: CallOptions = {}): Promise<PasskeyDeleted> {
    if (!/^[\w-]+$/.test(id)) throw new TypeError('Expected the id of a passkey')
    return this.#calls.asUser('DELETE', `/passkeys/${id}`, options)
  }
}

function platformCredentials(): CredentialsContainer {
  // Missing outside of browsers, and on pages of plain http.
  const credentials: CredentialsContainer | undefined = globalThis.navigator?.credentials
  if (credentials !== undefined && 'PublicKeyCredential' in globalThis) return credentials
  const message = 'Passkeys need a browser that supports them, and a page of https or localhost'
  throw new ServiceError(0, message, { code: 'passkeys_not_supported' })
}

/**
 * Not every browser and password manager has the JSON conversions of WebAuthn Level 3, so they are done here.
 */
function creationOptionsOf(options: CreationOptions): PublicKeyCredentialCreationOptions {
  return {
    ...options,
    challenge: fromBase64Url(options.challenge),
    user: { ...options.user, id: fromBase64Url(options.user.id) },
    excludeCredentials: options.excludeCredentials.map(descriptorOf),
  }
}

function requestOptionsOf({
  allowCredentials,
  ...options
}: RequestOptions): PublicKeyCredentialRequestOptions {
  return {
    ...options,
    challenge: fromBase64Url(options.challenge),
    ...(allowCredentials && { allowCredentials: allowCredentials.map(descriptorOf) }),
  }
}

type ExcludedCredential = CreationOptions['excludeCredentials'][number]

function descriptorOf({ id, type, transports }: ExcludedCredential): PublicKeyCredentialDescriptor {
  // Browsers ignore unknown transports, so any text is allowed.
  const hints = transports as AuthenticatorTransport[] | undefined
  return { id: fromBase64Url(id), type, ...(hints && { transports: hints }) }
}

function keyOf(credential: Credential | null): PublicKeyCredential {
  // Password managers may return objects that are not instances of the browser's class, so the members are
  // checked.
  if (credential !== null && 'rawId' in credential) return credential as PublicKeyCredential
  throw new ServiceError(0, 'The browser returned no passkey', { code: 'passkeys_not_supported' })
}

function registrationOf({ rawId, response }: PublicKeyCredential): object {
  const attestation = response as AuthenticatorAttestationResponse
  return {
    ...identification(rawId),
    response: {
      clientDataJSON: toBase64Url(attestation.clientDataJSON),
      attestationObject: toBase64Url(attestation.attestationObject),
      // Missing in some browsers that have passkeys.
      transports: attestation.getTransports?.() ?? [],
    },
  }
}

function assertionOf({ rawId, response }: PublicKeyCredential): object {
  const assertion = response as AuthenticatorAssertionResponse
  return {
    ...identification(rawId),
    response: {
      clientDataJSON: toBase64Url(assertion.clientDataJSON),
      authenticatorData: toBase64Url(assertion.authenticatorData),
      signature: toBase64Url(assertion.signature),
      ...(assertion.userHandle && { userHandle: toBase64Url(assertion.userHandle) }),
    },
  }
}

function identification(rawId: ArrayBuffer): object {
  const id = toBase64Url(rawId)
  return { id, rawId: id, type: 'public-key', clientExtensionResults: {} }
}

/**
 * Encodes bytes as base64url without padding (RFC 4648, 5). Not every runtime has Buffer or
 * `Uint8Array.toBase64`.
 */
export function toBase64Url(bytes: ArrayBuffer): string {
  const binary = Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join('')
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Decodes base64url. @throws DOMException for other text */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}
