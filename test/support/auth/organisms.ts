import { expect } from 'vitest'
import { usualPassword, type Account } from './accounts.js'
import { ask } from '../http/answers.js'
import type { TestServer } from '../server/server.js'

/** An organism's id; undefined stands for the root namespace. */
export type Space = string | undefined

/** Where the auth routes of a namespace are. */
export function authBase(space: Space): string {
  return space === undefined ? '/v1/auth' : `/v1/organisms/${space}/auth`
}

/** The agent that takes the audit records of a namespace. */
export function auditAgent(space: Space): string {
  return space === undefined ? 'default' : `${space}::auth`
}

/** Makes an organism with agents of zone `free`, and its auth namespace unless told otherwise. */
export async function newOrganism(
  server: TestServer,
  id: string,
  { agents = [], auth = true }: { agents?: string[]; auth?: boolean } = {},
): Promise<string> {
  const body = { organism_id: id, name: id, agents: agents.map((name) => ({ name, zone: 'free' })) }
  const made = await ask(server, 'POST /v1/organisms', { body })
  expect(made.status, made.text).toBe(201)
  if (!auth) return id
  const initialised = await ask(server, `POST ${authBase(id)}/init`)
  expect(initialised.status, initialised.text).toBe(201)
  return id
}

/** Registers a user of a namespace. */
export async function registerIn(server: TestServer, space: Space, email: string): Promise<Account> {
  const body = { email, password: usualPassword }
  const answer = await ask(server, `POST ${authBase(space)}/register`, { key: null, body })
  expect(answer.status, answer.text).toBe(201)
  const { user_id: userId, token, refresh_token: refreshToken } = answer.body
  return { email, password: usualPassword, userId, token, refreshToken }
}
