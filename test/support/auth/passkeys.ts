import { expect } from 'vitest'
import { checkedCall } from '../http/answers.js'
import type { Deviation, SentAssertion, SentRegistration } from './authenticator.js'
import { SoftAuthenticator } from './authenticator.js'
import type { TestAnswer, TestServer } from '../server/server.js'

/** The relying party of test servers. */
export const testRelyingParty = { rpId: 'example.org', origin: 'https://app.example.org' }

/** The settings of a test server with passkeys. */
export const passkeyEnv = {
  SERVICE_WEBAUTHN_RP_ID: testRelyingParty.rpId,
  SERVICE_WEBAUTHN_ORIGIN: testRelyingParty.origin,
}

/** Begins a registration of the user of a token. */
export async function beginRegistration(server: TestServer, token: string) {
  const answer = await checkedCall(server, 'POST /v1/auth/passkey/register-challenge', { key: token })
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}

/** Begins an authentication with an e-mail, or with any passkey. */
export async function beginSignIn(server: TestServer, email?: string) {
  const body = email === undefined ? {} : { email }
  const answer = await checkedCall(server, 'POST /v1/auth/passkey/authenticate-challenge', {
    key: null,
    body,
  })
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}

/** Finishes a registration. */
export function finishRegistration(
  server: TestServer,
  token: string,
  body: { session_token: string; registration: SentRegistration },
): Promise<TestAnswer> {
  return checkedCall(server, 'POST /v1/auth/passkey/register', { key: token, body })
}

/** Finishes an authentication. */
export function finishSignIn(
  server: TestServer,
  body: { session_token: string; assertion: SentAssertion },
): Promise<TestAnswer> {
  return checkedCall(server, 'POST /v1/auth/passkey/authenticate', { key: null, body })
}

/** Registers a new passkey of the user of a token. */
export async function addPasskey(server: TestServer, token: string): Promise<SoftAuthenticator> {
  const authenticator = new SoftAuthenticator(testRelyingParty)
  const { session_token, creation_options } = await beginRegistration(server, token)
  const registration = authenticator.register(creation_options)
  const answer = await finishRegistration(server, token, { session_token, registration })
  expect(answer.status, answer.text).toBe(200)
  return authenticator
}

/** Signs in with a passkey, optionally with an e-mail. */
export async function signInBy(
  server: TestServer,
  authenticator: SoftAuthenticator,
  { email, ...deviation }: Deviation & { email?: string } = {},
): Promise<TestAnswer> {
  const { session_token, request_options } = await beginSignIn(server, email)
  const assertion = authenticator.assert(request_options, deviation)
  return finishSignIn(server, { session_token, assertion })
}
