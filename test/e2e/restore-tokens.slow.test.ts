import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { outcomeOf, type Account } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { backUp, restore } from '../support/server/backup.js'
import { authBase, newOrganism, registerIn, type Space } from '../support/auth/organisms.js'
import { testRootKey as rootKey, type TestServer } from '../support/server/server.js'

const spaces: Space[] = [undefined, 'acme']
const email = (name: string) => `${name}@example.org`

/** The credentials of one namespace from before and after the backup. */
interface NamespaceCredentials {
  space: Space
  revoked: Account
  deleted: Account
  signedOut: Account
  /** A token signed with the key that followed the next key of the backup. */
  rotated: string
  usedLink: string
  openLink: string
  kids: string[]
}

let directory: string
let server: TestServer
const credentials: NamespaceCredentials[] = []

async function keysOf(space: Space): Promise<string[]> {
  const { body } = await checkedCall(server, `GET ${authBase(space)}/jwks`, { key: null })
  return body.keys.map(({ kid }: { kid: string }) => kid)
}

function me(space: Space, token: string): Promise<string> {
  return outcomeOf(checkedCall(server, `GET ${authBase(space)}/me`, { key: token }))
}

function refresh(space: Space, refreshToken: string): Promise<string> {
  const body = { refresh_token: refreshToken }
  return outcomeOf(checkedCall(server, `POST ${authBase(space)}/refresh`, { key: null, body }))
}

function useLink(space: Space, token: string): Promise<string> {
  return outcomeOf(
    checkedCall(server, `POST ${authBase(space)}/magic-link/verify`, { key: null, body: { token } }),
  )
}

async function signIn(space: Space, { password, ...account }: Account): Promise<Account> {
  const body = { email: account.email, password }
  const answer = await checkedCall(server, `POST ${authBase(space)}/login`, { key: null, body })
  expect(answer.status, answer.text).toBe(200)
  return { ...account, password, token: answer.body.token, refreshToken: answer.body.refresh_token }
}

async function linkOf(space: Space, name: string): Promise<string> {
  const { body } = await checkedCall(server, `POST ${authBase(space)}/magic-link/send`, {
    key: null,
    body: { email: email(name) },
  })
  return body.token
}

/** Restores the backup and starts a server on the restored directory. */
async function startRestored(name: string): Promise<void> {
  const dataDir = join(directory, name)
  const restored = await restore(join(directory, 'backup'), dataDir)
  expect([restored.code, restored.stdout]).toEqual([0, expect.stringContaining('users must sign in again')])
  server = await startAuthServer({ dataDir, env: { SERVICE_ROOT_API_KEY: rootKey } })
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-tokens-'))
  server = await startAuthServer({ dataDir: join(directory, 'data'), env: { SERVICE_SHARDS: '2' } })
  await newOrganism(server, 'acme')
  for (const space of spaces) {
    const [revoked, deleted, signedOut] = [
      await registerIn(server, space, email('revoked')),
      await registerIn(server, space, email('deleted')),
      await registerIn(server, space, email('signed-out')),
    ]
    const [usedLink, openLink] = [await linkOf(space, 'revoked'), await linkOf(space, 'revoked')]
    const kids = await keysOf(space)
    credentials.push({ space, revoked, deleted, signedOut, rotated: '', usedLink, openLink, kids })
  }
  expect((await backUp(server.dataDir, join(directory, 'backup'))).code).toBe(0)
  for (const one of credentials) {
    const base = authBase(one.space)
    const ended = [
      await checkedCall(server, `POST ${base}/revoke`, { key: one.revoked.token }),
      await checkedCall(server, `DELETE ${base}/users/${one.deleted.email}`),
      await checkedCall(server, `POST ${base}/logout?scope=global`, { key: one.signedOut.token }),
    ]
    expect(ended.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(await useLink(one.space, one.usedLink)).toBe('200')
    for (let rotations = 0; rotations < 2; rotations++) {
      expect((await checkedCall(server, `POST ${base}/keys/rotate`)).status).toBe(200)
      one.kids.push(...(await keysOf(one.space)))
    }
    one.rotated = (await signIn(one.space, one.revoked)).token
    expect(await me(one.space, one.rotated)).toBe('200')
  }
  await server.halt()
}, 120_000)

afterAll(async () => {
  await server.halt()
  rmSync(directory, { recursive: true, force: true })
})

describe('a restored backup', { timeout: 120_000 }, () => {
  it('accepts no token from before or after the backup, in any namespace', async () => {
    await startRestored('restored')
    for (const { space, revoked, deleted, signedOut, rotated } of credentials) {
      for (const token of [revoked.token, deleted.token, signedOut.token, rotated]) {
        expect(await me(space, token)).toBe('401 invalid_token')
        expect(await outcomeOf(checkedCall(server, 'GET /v1/agents/default/head', { key: token }))).toBe(
          '401 invalid_token',
        )
      }
    }
  })

  it('has new keys', async () => {
    for (const { space, kids } of credentials) {
      const now = await keysOf(space)
      expect(now).toHaveLength(2)
      expect(kids).toEqual(expect.not.arrayContaining(now.slice(0, 1)))
      expect(kids).toEqual(expect.not.arrayContaining(now.slice(1)))
    }
  })

  it('accepts no refresh token and no link from before', async () => {
    for (const { space, revoked, deleted, signedOut, usedLink, openLink } of credentials) {
      for (const { refreshToken } of [revoked, deleted, signedOut])
        expect(await refresh(space, refreshToken)).toBe('401 refresh_invalid')
      for (const link of [usedLink, openLink]) expect(await useLink(space, link)).toBe('401 invalid_token')
    }
  })

  it('lets users sign in again, and their new tokens stay valid after a rotation and a restart', async () => {
    const accounts: [Space, Account, string][] = []
    for (const { space, revoked } of credentials) {
      const account = await signIn(space, revoked)
      accounts.push([space, account, await linkOf(space, 'revoked')])
      expect((await checkedCall(server, `POST ${authBase(space)}/keys/rotate`)).status).toBe(200)
    }
    const { dataDir } = server
    await server.halt()
    server = await startAuthServer({ dataDir, env: { SERVICE_ROOT_API_KEY: rootKey } })
    for (const [space, account, link] of accounts) {
      expect(await me(space, account.token)).toBe('200')
      expect(await refresh(space, account.refreshToken)).toBe('200')
      expect(await useLink(space, link)).toBe('200')
      expect(await useLink(space, link)).toBe('401 invalid_token')
    }
  })

  it('accepts no token of the first restore after a second one', async () => {
    const first = await signIn(undefined, credentials[0]?.revoked ?? Object.assign({}))
    const format = JSON.parse(readFileSync(join(server.dataDir, 'format.json'), 'utf8'))
    await server.halt()
    await startRestored('again')
    expect(await me(undefined, first.token)).toBe('401 invalid_token')
    expect(await refresh(undefined, first.refreshToken)).toBe('401 refresh_invalid')
    const again = JSON.parse(readFileSync(join(server.dataDir, 'format.json'), 'utf8'))
    expect(again).toEqual({ ...format, token_era: expect.any(Number) })
    expect(again.token_era).not.toBe(format.token_era)
  })

  it('is refused if its token era is not a number', async () => {
    const file = join(server.dataDir, 'format.json')
    await server.halt()
    const format = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...format, token_era: -1 }), { mode: 0o600 })
    await expect(startAuthServer({ dataDir: server.dataDir })).rejects.toThrow('is damaged')
  })
})
