import { expect } from 'vitest'
import { checkedCall, newAgent } from '../http/answers.js'
import type { TestAnswer, TestServer } from '../server/server.js'

/** A user with a password, and the tokens of its first session. */
export interface Account {
  email: string
  password: string
  userId: string
  token: string
  refreshToken: string
}

/** The password of accounts in tests that are not about passwords. */
export const usualPassword = 'nine slow herons by the weir'

/** Registers a user. */
export async function register(
  server: TestServer,
  email: string,
  password = usualPassword,
): Promise<Account> {
  const answer = await checkedCall(server, 'POST /v1/auth/register', { key: null, body: { email, password } })
  expect(answer.status, answer.text).toBe(201)
  const { user_id: userId, token, refresh_token: refreshToken } = answer.body
  return { email, password, userId, token, refreshToken }
}

/** Registers users in batches, because the queue for passwords is limited. */
export async function registerMany(server: TestServer, emails: readonly string[]): Promise<Account[]> {
  const accounts: Account[] = []
  for (let from = 0; from < emails.length; from += 32) {
    const batch = emails.slice(from, from + 32)
    accounts.push(...(await Promise.all(batch.map((email) => register(server, email)))))
  }
  return accounts
}

/** Attempts a login by password. */
export function tryLogin(server: TestServer, email: string, password: string): Promise<TestAnswer> {
  return checkedCall(server, 'POST /v1/auth/login', { key: null, body: { email, password } })
}

/** Signs in to an account again. */
export async function logIn(
  server: TestServer,
  { email, password }: Pick<Account, 'email' | 'password'>,
): Promise<{ token: string; refreshToken: string }> {
  const { status, body, text } = await tryLogin(server, email, password)
  expect(status, text).toBe(200)
  return { token: body.token, refreshToken: body.refresh_token }
}

/** Requests a link with the root key while mail is off. @returns its token */
export async function linkToken(
  server: TestServer,
  kind: 'magic-link/send' | 'verify-email/send' | 'password/reset-request',
  email: string,
): Promise<string> {
  const { status, body } = await checkedCall(server, `POST /v1/auth/${kind}`, { body: { email } })
  expect([status, body.sent]).toEqual([200, false])
  return body.token
}

/** Creates an agent of zone `free`; users can read and write its records whose `owner` is their id. */
export async function ownedAgent(server: TestServer, name: string): Promise<string> {
  await newAgent(server, name)
  const conditions = [{ field: 'owner', op: 'eq', value: '$jwt.sub' }]
  const body = { policies: [{ actions: ['read', 'write'], conditions }] }
  expect((await checkedCall(server, `PUT /v1/agents/${name}/policies`, { body })).status).toBe(200)
  return name
}

/** The outcome of a call, such as `200` or `401 token_revoked`. */
export async function outcomeOf(calling: Promise<TestAnswer>): Promise<string> {
  const { status, body } = await calling
  return status < 400 ? String(status) : `${status} ${body?.code}`
}

/** The number of occurrences of each value. */
export function tally(values: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return Object.fromEntries(counts)
}
