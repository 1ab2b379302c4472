/*
 * Examples of bodies of the auth routes, by the name of their schema (openapi-auth.ts). No token among them is one.
 */

const whose = { user_id: 'usr_5f0c2b7d9e1a4c3388d6b1f2a4097e5c', email: 'ada@example.org' }

const tokens = {
  token: 'eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.EXAMPLE.EXAMPLE',
  refresh_token: 'EXAMPLEaB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3',
  token_type: 'Bearer',
  expires_in: 3_600,
}

const deviceToken = 'EXAMPLE' + 'd3v1c3'.repeat(14) + 'end'
const signedIn = { ...tokens, device_token: deviceToken }

const metadata = { app_metadata: { role: 'editor' }, user_metadata: { display_name: 'Ada' } }

const user = {
  ...whose,
  verified: true,
  ...metadata,
  created_at_ms: 1_760_000_000_000,
  last_login_at_ms: 1_760_000_360_000,
}

const oneTimeToken = 'EXAMPLEq3v5w7x9y1z3a5b7c9d1e3f5g7h9j1k3l5m7'
const password = 'correct horse battery staple'
const sid = '8d1f6c3a5b7e4920a1c3e5f708192a3b'
const kid = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'
const nextKid = 'EXAMPLEnextKidcmxVWaYVA9wwBF6Iuo3vVzz7TxHC4'

const challenge = 'Yh1sGWVo0rCzFGqHk3xk8gSAhGQXbzQYKf0PpQ1wqvE'
const passkeyId = 'F6h2Qm0bT3yUeXo4tWzJ1w'
const passkey = { id: passkeyId, type: 'public-key' }
const credential = { ...passkey, rawId: passkeyId, clientExtensionResults: {} }
const clientDataJSON = 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0'

/** Schema name → example name → body. */
export const authExamples: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  AppMetadataUpdated: { updated: { email: whose.email, app_metadata: metadata.app_metadata } },
  AuthStatus: { on: { enabled: true }, off: { enabled: false } },
  EmailBody: { email: { email: whose.email } },
  EmailVerified: { verified: { verified: true, ...whose } },
  Jwks: {
    keys: {
      keys: [
        {
          kty: 'OKP',
          crv: 'Ed25519',
          x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
          kid,
          alg: 'EdDSA',
          use: 'sig',
        },
      ],
    },
  },
  KeyRotated: { rotated: { kid, next_kid: nextKid, retired_until_ms: 1_760_003_600_000 } },
  LinkSent: { mailed: { sent: true }, 'mail is off': { sent: false, token: oneTimeToken } },
  LoggedOut: { out: { logged_out: true, sessions: 1 } },
  LoginBody: {
    login: { email: whose.email, password },
    'from a device that has signed in before': { email: whose.email, password, device_token: deviceToken },
  },
  MagicLinkVerified: { signedIn: { ...signedIn, ...whose, verified: true } },
  Me: { me: user },
  MetadataBody: { metadata: { metadata: { role: 'editor' } } },
  OneTimeTokenBody: { token: { token: oneTimeToken } },
  PasskeyAssertionBody: {
    assertion: {
      session_token: oneTimeToken,
      assertion: {
        ...credential,
        response: {
          clientDataJSON,
          authenticatorData: 'EXAMPLE',
          signature: 'EXAMPLE',
          userHandle: 'EXAMPLE',
        },
      },
    },
  },
  PasskeyAuthenticateBody: { named: { email: whose.email }, 'any passkey': {} },
  PasskeyCreation: {
    options: {
      session_token: oneTimeToken,
      creation_options: {
        rp: { id: 'example.org', name: 'Strandfast' },
        user: { id: 'EXAMPLE', name: whose.email, displayName: whose.email },
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
  },
  PasskeyDeleted: { deleted: { deleted: true, id: passkeyId } },
  PasskeyPage: {
    passkeys: {
      passkeys: [{ id: passkeyId, created_at_ms: 1_760_000_000_000, last_used_at_ms: 1_760_000_360_000 }],
    },
  },
  PasskeyRegisterBody: {
    registration: {
      session_token: oneTimeToken,
      registration: {
        ...credential,
        response: { clientDataJSON, attestationObject: 'EXAMPLE', transports: ['internal'] },
      },
    },
  },
  PasskeyRegistered: { registered: { verified: true } },
  PasskeyRequest: {
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
  },
  PasswordChangeBody: { change: { current_password: password, new_password: 'seven green bicycles' } },
  PasswordChanged: { changed: { changed: true } },
  PasswordResetBody: {
    reset: { token: oneTimeToken, password },
    'with all passkeys': { token: oneTimeToken, password, remove_passkeys: true },
  },
  PasswordWasReset: { reset: { reset: true, ...whose } },
  RefreshBody: { refresh: { refresh_token: tokens.refresh_token } },
  RegisterBody: { register: { email: whose.email, password } },
  Registered: {
    signedIn: { ...whose, ...tokens },
    'to be verified': {
      user_id: null,
      email: whose.email,
      token: null,
      refresh_token: null,
      token_type: 'Bearer',
      expires_in: null,
    },
  },
  Revoked: { revoked: { revoked: true, jti: '0b6f2f5e7c1d4a3e9b8a7c6d5e4f3a2b' } },
  SessionEnded: { ended: { ended: true, sid } },
  SessionPage: {
    sessions: {
      sessions: [
        {
          sid,
          created_at_ms: 1_760_000_000_000,
          last_used_at_ms: 1_760_000_360_000,
          amr: ['pwd'],
          current: true,
        },
      ],
    },
  },
  Tokens: { tokens: signedIn },
  UserDeleted: { deleted: { deleted: true, ...whose } },
  UserMetadataUpdated: { updated: { email: whose.email, user_metadata: metadata.user_metadata } },
  UserPage: { page: { users: [{ ...user, locked_until_ms: null }], total: 1, next_cursor: null } },
}
