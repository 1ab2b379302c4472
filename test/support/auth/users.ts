import { decodeJwt } from 'jose'
import { expect } from 'vitest'
import { logIn, register } from './accounts.js'
import { ask } from '../http/answers.js'
import type { TestServer } from '../server/server.js'

/**
 * Registers a user of the root namespace and gives a token of it.
 * `app` is what the root key has set in its app_metadata, `own` what the user has set in its user_metadata.
 */
export async function signUp(
  server: TestServer,
  email: string,
  { app, own }: { app?: object; own?: object } = {},
): Promise<string> {
  const account = await register(server, email)
  if (app === undefined && own === undefined) return account.token
  if (app !== undefined) {
    const set = await ask(server, `PATCH /v1/auth/users/${email}/app-metadata`, { body: { metadata: app } })
    expect(set.status, set.text).toBe(200)
  }
  if (own !== undefined) {
    const call = { key: account.token, body: { metadata: own } }
    const set = await ask(server, 'PATCH /v1/auth/me/user-metadata', call)
    expect(set.status, set.text).toBe(200)
  }
  // Metadata is in the tokens that are made from now on.
  const { token } = await logIn(server, account)
  return token
}

/** Whose token it is: the claim `sub`. */
export function subjectOf(token: string): string {
  const { sub = '' } = decodeJwt(token)
  return sub
}
