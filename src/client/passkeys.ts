import type {
  PasskeyCreation,
  PasskeyDeleted,
  PasskeyPage,
  PasskeyRegistered,
  PasskeyRequest,
  PasskeySignedIn,
} from './auth-types.js'
import { ServiceError } from './errors.js'
import type { CallOptions } from './types.js'

/** What passkeys use of the auth part. */
export interface PasskeyCalls {
  /** With the token of whoever is signed in. */
  asUser<R>(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    given: CallOptions & { body?: object },
  ): Promise<R>
  /** Without a credential. */
  post<R>(path: string, body: object, options: CallOptions): Promise<R>
  /** Without a credential; the answer is the new session. */
  signIn(path: string, body: object, options: CallOptions): Promise<PasskeySignedIn>
}

type CreationOptions = PasskeyCreation['creation_options']
type RequestOptions = PasskeyRequest['request_options']

/**
 * Passkeys (WebAuthn) of a browser. Registering and signing in ask the user, from a page of the origin that the service
 * is configured with; when the user declines, the promise rejects with the browser's NotAllowedError. Errors besides
 * those of all calls: `passkeys_not_supported` (status 0) where there are no passkeys, 501 `passkeys_not_configured`,
 * 401 `passkey_failed`.
 */
export class PasskeyClient {
  readonly #calls: PasskeyCalls

  constructor(calls: PasskeyCalls) {
    this.#calls = calls
  }

  /**
   * Registers a passkey for whoever is signed in. Errors: 401 `reauthentication_required` when the sign-in is more than
   * ten minutes ago, after which the user has to sign in again; 413 `too_large` for a user who has too many.
   */
  async register(options: CallOptions = {}): Promise<PasskeyRegistered> {
    const credentials = platformCredentials()
    const path = '/passkey/register-challenge'
    const begun = await this.#calls.asUser<PasskeyCreation>('POST', path, options)
    const made = await credentials.create({
      publicKey: creationOptionsOf(begun.creation_options),
      ...(options.signal && { signal: options.signal }),
    })
    const body = { session_token: begun.session_token, registration: registrationOf(keyOf(made)) }
    return this.#calls.asUser('POST', '/passkey/register', { ...options, body })
  }

  /** Signs in. @param email whose passkey to use; without it the user chooses among those that the browser knows */
  async signIn(email?: string, options: CallOptions = {}): Promise<PasskeySignedIn> {
    const credentials = platformCredentials()
    const named = email === undefined ? {} : { email }
    const path = '/passkey/authenticate-challenge'
    const begun = await this.#calls.post<PasskeyRequest>(path, named, options)
    const got = await credentials.get({
      publicKey: requestOptionsOf(begun.request_options),
      ...(options.signal && { signal: options.signal }),
    })
    const body = { session_token: begun.session_token, assertion: assertionOf(keyOf(got)) }
    return this.#calls.signIn('/passkey/authenticate', body, options)
  }

  /** The passkeys of whoever is signed in, the oldest first. */
  list(options: CallOptions = {}): Promise<PasskeyPage> {
    return this.#calls.asUser('GET', '/passkeys', options)
  }

  /** Deletes one of them, which cannot sign in any more. Errors: NotFoundError. */
  async delete(id: string, options: CallOptions = {}): Promise<PasskeyDeleted> {
    if (!/^[\w-]+$/.test(id)) throw new TypeError('Expected the id of a passkey')
    return this.#calls.asUser('DELETE', `/passkeys/${id}`, options)
  }
}

function platformCredentials(): CredentialsContainer {
  // Missing outside browsers, and in browsers on pages of plain http.
  const credentials: CredentialsContainer | undefined = globalThis.navigator?.credentials
  if (credentials !== undefined && 'PublicKeyCredential' in globalThis) return credentials
  const message = 'Expected a browser with passkeys, on a page of https or localhost'
  throw new ServiceError(0, message, { code: 'passkeys_not_supported' })
}

/** Converted by hand, since not every browser and password manager has the JSON conversions of WebAuthn Level 3. */
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
  // Browsers ignore transports that they do not know, so any text is allowed.
  const hints = transports as AuthenticatorTransport[] | undefined
  return { id: fromBase64Url(id), type, ...(hints && { transports: hints }) }
}

function keyOf(credential: Credential | null): PublicKeyCredential {
  // Recognised by its members: an object of a password manager may not be an instance of the browser's class.
  if (credential !== null && 'rawId' in credential) return credential as PublicKeyCredential
  throw new ServiceError(0, 'Expected the browser to give a passkey', { code: 'passkeys_not_supported' })
}

function registrationOf({ rawId, response }: PublicKeyCredential): object {
  const made = response as AuthenticatorAttestationResponse
  return {
    ...named(rawId),
    response: {
      clientDataJSON: toBase64Url(made.clientDataJSON),
      attestationObject: toBase64Url(made.attestationObject),
      // Missing in some browsers that have passkeys.
      transports: made.getTransports?.() ?? [],
    },
  }
}

function assertionOf({ rawId, response }: PublicKeyCredential): object {
  const said = response as AuthenticatorAssertionResponse
  return {
    ...named(rawId),
    response: {
      clientDataJSON: toBase64Url(said.clientDataJSON),
      authenticatorData: toBase64Url(said.authenticatorData),
      signature: toBase64Url(said.signature),
      ...(said.userHandle && { userHandle: toBase64Url(said.userHandle) }),
    },
  }
}

function named(rawId: ArrayBuffer): object {
  const id = toBase64Url(rawId)
  return { id, rawId: id, type: 'public-key', clientExtensionResults: {} }
}

/** Bytes as base64url without padding (RFC 4648, 5). Buffer and `Uint8Array.toBase64` are not in every runtime. */
export function toBase64Url(bytes: ArrayBuffer): string {
  const binary = Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join('')
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** The bytes of base64url. @throws DOMException for other text */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}
