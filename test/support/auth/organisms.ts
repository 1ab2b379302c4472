import { expect } from 'vitest'
import { usualPassword, type Account } from './accounts.js'
import { checkedCall } from '../http/answers.js'
import type { TestServer } from '../server/server.js'

/** A namespace: the id of an organism, or undefined for the root namespace. */
export type Space = string | undefined

/** The path of the auth routes of a namespace. */
export function authBase(space: Space): string {
  return space === undefined ? '/v1/auth' : `/v1/organisms/${space}/auth`
}

/** The agent with the audit records of a namespace. */
export function auditAgent(space: Space): string {
  return space === undefined ? 'default' : `${space}::auth`
}

/** Creates an organism with agents of zone `free`, and, unless `auth` is false, its auth namespace. */
export async function newOrganism(
  server: TestServer,
  id: string,
  { agents = [], auth = true }: { agents?: string[]; auth?: boolean } = {},
): Promise<string> {
  const body = { organism_id: id, name: id, agents: agents.map((name) => ({ name, zone: 'free' })) }
  const created = await checkedCall(server, 'POST /v1/organisms', { body })
  expect(created.status, created.text).toBe(201)
  if (!auth) return id
  const initialised = await checkedCall(server, `POST ${authBase(id)}/init`)
  expect(initialised.status, initialised.text).toBe(201)
  return id
}

/** Registers a user of a namespace. */
export async function registerIn(server: TestServer, space: Space, email: string): Promise<Account> {
  const body = { email, password: usualPassword }
  const answer = await checkedCall(server, `POST ${authBase(space)}/register`, { key: null, body })
  expect(answer.status, answer.text).toBe(201)
  const { user_id: userId, token, refresh_token: refreshToken } = answer.body
  return { email, password: usualPassword, userId, token, refreshToken }
}
