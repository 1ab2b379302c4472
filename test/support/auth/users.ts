import { decodeJwt } from 'jose'
import { expect } from 'vitest'
import { logIn, register } from './accounts.js'
import { checkedCall } from '../http/answers.js'
import type { TestServer } from '../server/server.js'

/**
 * Registers a user of the root namespace with `app` as app_metadata and `own` as user_metadata.
 * @returns a token
 */
export async function signUp(
  server: TestServer,
  email: string,
  { app, own }: { app?: object; own?: object } = {},
): Promise<string> {
  const account = await register(server, email)
  if (app === undefined && own === undefined) return account.token
  if (app !== undefined) {
    const set = await checkedCall(server, `PATCH /v1/auth/users/${email}/app-metadata`, {
      body: { metadata: app },
    })
    expect(set.status, set.text).toBe(200)
  }
  if (own !== undefined) {
    const call = { key: account.token, body: { metadata: own } }
    const set = await checkedCall(server, 'PATCH /v1/auth/me/user-metadata', call)
    expect(set.status, set.text).toBe(200)
  }
  // Only new tokens contain the metadata.
  const { token } = await logIn(server, account)
  return token
}

/** The claim `sub` of a token. */
export function subjectOf(token: string): string {
  const { sub = '' } = decodeJwt(token)
  return sub
}
