import { Type, type Static } from 'typebox'
import { documented } from './documented.js'
import { ada, oneTimeToken } from './example-values.js'
import { UnixMs } from './primitives.js'

/*
 * Bodies and answers of the passkey routes (docs/adr/0016-passkeys.md). Options and credentials are the JSON
 * of WebAuthn Level 3: the input of `PublicKeyCredential.parseCreationOptionsFromJSON` and the output of
 * `toJSON`.
 */

const base64url = '^[A-Za-z0-9_-]+$'
const Base64Url = Type.String({ pattern: base64url, description: 'Bytes in base64url without padding' })

/** A credential id: at most 1,023 bytes. */
export const PasskeyId = Type.String({
  pattern: base64url,
  maxLength: 1_364,
  description: 'Credential id in base64url',
})

const SessionToken = Type.String({
  description: 'Must be sent once, within 300 seconds, with the answer of the browser',
})
const Challenge = Type.String({ pattern: base64url, description: 'The value that the authenticator signs' })
const Timeout = Type.Integer({ minimum: 1, description: 'Milliseconds' })
const Required = Type.Literal('required')

const Named = Type.Object({
  id: PasskeyId,
  type: Type.Literal('public-key'),
  transports: Type.Optional(Type.Array(Type.String())),
})

const challenge = 'Yh1sGWVo0rCzFGqHk3xk8gSAhGQXbzQYKf0PpQ1wqvE'
const passkeyId = 'F6h2Qm0bT3yUeXo4tWzJ1w'
const passkey = { id: passkeyId, type: 'public-key' }
const credential = { ...passkey, rawId: passkeyId, clientExtensionResults: {} }
const clientDataJSON = 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0'

/** Answer of POST /v1/auth/passkey/register-challenge. */
export const PasskeyCreation = Type.Object({
  session_token: SessionToken,
  creation_options: Type.Object({
    rp: Type.Object({ id: Type.String(), name: Type.String() }),
    user: Type.Object({ id: Base64Url, name: Type.String(), displayName: Type.String() }),
    challenge: Challenge,
    pubKeyCredParams: Type.Array(Type.Object({ type: Type.Literal('public-key'), alg: Type.Integer() })),
    timeout: Timeout,
    attestation: Type.Literal('none'),
    excludeCredentials: Type.Array(Named, { description: 'The existing passkeys of the user' }),
    authenticatorSelection: Type.Object({
      residentKey: Required,
      requireResidentKey: Type.Literal(true),
      userVerification: Required,
    }),
    extensions: Type.Object({ credProps: Type.Literal(true) }),
    hints: Type.Array(Type.String()),
  }),
})
export type PasskeyCreation = Static<typeof PasskeyCreation>
documented('PasskeyCreation', PasskeyCreation, {
  options: {
    session_token: oneTimeToken,
    creation_options: {
      rp: { id: 'example.org', name: 'Strandfast' },
      user: { id: 'EXAMPLE', name: ada.email, displayName: ada.email },
      challenge,
      pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
      timeout: 300_000,
      attestation: 'none',
      excludeCredentials: [],
      authenticatorSelection: {
        residentKey: 'required',
        requireResidentKey: true,
        userVerification: 'required',
      },
      extensions: { credProps: true },
      hints: [],
    },
  },
})

/** Body of POST /v1/auth/passkey/register. */
export const PasskeyRegisterBody = Type.Object(
  {
    session_token: SessionToken,
    registration: Type.Record(Type.String(), Type.Unknown(), {
      description: 'The RegistrationResponseJSON of WebAuthn: `toJSON()` of the new credential',
    }),
  },
  { additionalProperties: false },
)
export type PasskeyRegisterBody = Static<typeof PasskeyRegisterBody>
documented('PasskeyRegisterBody', PasskeyRegisterBody, {
  registration: {
    session_token: oneTimeToken,
    registration: {
      ...credential,
      response: { clientDataJSON, attestationObject: 'EXAMPLE', transports: ['internal'] },
    },
  },
})

/** Answer to the registration of a passkey. */
export const PasskeyRegistered = Type.Object({ verified: Type.Literal(true) })
export type PasskeyRegistered = Static<typeof PasskeyRegistered>
documented('PasskeyRegistered', PasskeyRegistered, { registered: { verified: true } })

/** Body of POST /v1/auth/passkey/authenticate-challenge. Without an e-mail, the user chooses a passkey. */
export const PasskeyAuthenticateBody = Type.Object(
  {
    email: Type.Optional(
      Type.String({
        description: 'Restricts the passkeys to those of one user; any passkey of the namespace if absent',
      }),
    ),
  },
  { additionalProperties: false },
)
export type PasskeyAuthenticateBody = Static<typeof PasskeyAuthenticateBody>
documented('PasskeyAuthenticateBody', PasskeyAuthenticateBody, {
  named: { email: ada.email },
  'any passkey': {},
})

/** Answer of POST /v1/auth/passkey/authenticate-challenge. */
export const PasskeyRequest = Type.Object({
  session_token: SessionToken,
  request_options: Type.Object({
    rpId: Type.String(),
    challenge: Challenge,
    timeout: Timeout,
    userVerification: Required,
    allowCredentials: Type.Optional(
      Type.Array(Named, {
        description:
          'The list has the same length for every e-mail: it is filled up with made-up ids, which never change',
      }),
    ),
  }),
})
export type PasskeyRequest = Static<typeof PasskeyRequest>
documented('PasskeyRequest', PasskeyRequest, {
  options: {
    session_token: oneTimeToken,
    request_options: {
      rpId: 'example.org',
      challenge,
      timeout: 300_000,
      userVerification: 'required',
      allowCredentials: [passkey],
    },
  },
})

/** Body of POST /v1/auth/passkey/authenticate. */
export const PasskeyAssertionBody = Type.Object(
  {
    session_token: SessionToken,
    assertion: Type.Record(Type.String(), Type.Unknown(), {
      description: 'The AuthenticationResponseJSON of WebAuthn: `toJSON()` of the assertion',
    }),
  },
  { additionalProperties: false },
)
export type PasskeyAssertionBody = Static<typeof PasskeyAssertionBody>
documented('PasskeyAssertionBody', PasskeyAssertionBody, {
  assertion: {
    session_token: oneTimeToken,
    assertion: {
      ...credential,
      response: { clientDataJSON, authenticatorData: 'EXAMPLE', signature: 'EXAMPLE', userHandle: 'EXAMPLE' },
    },
  },
})

/** Answer of GET /v1/auth/passkeys, oldest first. */
export const PasskeyPage = Type.Object({
  passkeys: Type.Array(
    Type.Object({
      id: PasskeyId,
      created_at_ms: UnixMs,
      last_used_at_ms: Type.Union([UnixMs, Type.Null()], { description: 'Null before the first sign-in' }),
    }),
  ),
})
export type PasskeyPage = Static<typeof PasskeyPage>
documented('PasskeyPage', PasskeyPage, {
  passkeys: {
    passkeys: [{ id: passkeyId, created_at_ms: 1_760_000_000_000, last_used_at_ms: 1_760_000_360_000 }],
  },
})

/** Answer of DELETE /v1/auth/passkeys/:passkey_id. */
export const PasskeyDeleted = Type.Object({ deleted: Type.Literal(true), id: PasskeyId })
export type PasskeyDeleted = Static<typeof PasskeyDeleted>
documented('PasskeyDeleted', PasskeyDeleted, { deleted: { deleted: true, id: passkeyId } })

/** Answer of GET /.well-known/webauthn. */
export const RelatedOrigins = Type.Object({ origins: Type.Array(Type.String()) })
export type RelatedOrigins = Static<typeof RelatedOrigins>
documented('RelatedOrigins', RelatedOrigins, {
  origins: { origins: ['https://app.example.org', 'https://example.co.uk'] },
})

/** Bytes of a credential: some programs send base64 or padding. */
const Bytes = Type.String({ pattern: '^[A-Za-z0-9_+/-]+={0,2}$' })
const CredentialId = Type.String({ pattern: '^[A-Za-z0-9_+/-]+={0,2}$', maxLength: 1_366 })

/**
 * A new credential from a browser. It is checked separately from the body: an invalid one is a failed
 * attempt, which consumes the session, not a malformed request.
 */
export const Registration = Type.Object({
  id: CredentialId,
  rawId: CredentialId,
  type: Type.Literal('public-key'),
  response: Type.Object({
    clientDataJSON: Bytes,
    attestationObject: Bytes,
    transports: Type.Optional(Type.Array(Type.String())),
  }),
})

/** An assertion from a browser. */
export const Assertion = Type.Object({
  id: CredentialId,
  rawId: CredentialId,
  type: Type.Literal('public-key'),
  response: Type.Object({
    clientDataJSON: Bytes,
    authenticatorData: Bytes,
    signature: Bytes,
    userHandle: Type.Optional(Type.Union([Bytes, Type.Null()])),
  }),
})
