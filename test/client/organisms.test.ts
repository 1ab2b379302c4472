import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NotFoundError, ServiceClient } from '../../src/client/index.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, type TestServer } from '../support/server/server.js'

let server: TestServer
let admin: ServiceClient

beforeAll(async () => {
  server = await startAuthServer()
  admin = new ServiceClient({ url: server.url, apiKey: server.rootKey })
  await admin.organisms.create({
    organism_id: 'acme',
    name: 'Acme',
    agents: [{ name: 'notes', zone: 'free' }],
  })
  await admin.organisms.initAuth('acme')
})
afterAll(() => server.stop())

const password = 'nine slow herons by the weir'

describe('administration of organisms', () => {
  it('creates, reads and lists organisms and their agents', async () => {
    const made = await admin.organisms.create({ name: 'Nameless' })
    expect(made.organism_id).toMatch(/^org_/)
    const seedHex = '5b'.repeat(32)
    const member = await admin.organisms.createAgent(made.organism_id, { name: 'a', zone: 'free', seedHex })
    expect(member.agent_id).toBe(`${made.organism_id}::a`)
    expect(await admin.organisms.get(made.organism_id)).toMatchObject({
      auth: false,
      agents: [member.agent_id],
    })
    const { organisms, total } = await admin.organisms.list()
    expect(organisms.map(({ organism_id: id }) => id)).toEqual(['acme', made.organism_id])
    expect(total).toBe(2)
  })

  it('returns the same answer for the same idempotency key, and an error for an unknown organism', async () => {
    const options = { idempotencyKey: 'client-once' }
    const first = await admin.organisms.create({ name: 'Once' }, options)
    expect(await admin.organisms.create({ name: 'Once' }, options)).toEqual(first)
    await expect(admin.organisms.get('unknown')).rejects.toBeInstanceOf(NotFoundError)
    await expect(admin.organisms.initAuth('acme')).rejects.toMatchObject({ code: 'namespace_exists' })
    const guest = new ServiceClient({ url: server.url })
    await expect(guest.organisms.list()).rejects.toMatchObject({ status: 401 })
  })
})

describe('the client of an organism', () => {
  it('signs in its users, and calls its agents with their tokens', async () => {
    const conditions = [{ field: 'owner', op: 'eq', value: '$jwt.sub' }]
    const body = { policies: [{ actions: ['read', 'write'], conditions }] }
    expect((await call(server, 'PUT /v1/agents/acme::notes/policies', { body })).status).toBe(200)
    const client = new ServiceClient({ url: server.url })
    const acme = client.organism('acme')
    expect(client.organism('acme')).toBe(acme)
    const { user_id: owner } = await acme.auth.register({ email: 'ada@example.org', password })
    expect(decodeJwt(acme.auth.session?.token ?? '').iss).toMatch(/\/v1\/organisms\/acme$/)
    expect(await acme.auth.me()).toMatchObject({ email: 'ada@example.org' })
    await acme.agent('acme::notes').write({ owner, text: 'hello' })
    expect((await acme.agent('acme::notes').latest()).records).toHaveLength(1)
    await acme.auth.refresh()
    expect((await acme.auth.logout()).sessions).toBe(1)
  })

  it('has a separate session from the client that created it', async () => {
    const client = new ServiceClient({ url: server.url, token: 'not.for.organisms' })
    await client.auth.register({ email: 'eve@example.org', password })
    const acme = client.organism('acme')
    expect(acme.auth.session).toBeUndefined()
    await expect(acme.auth.me()).rejects.toMatchObject({ status: 401, code: 'unauthorized' })
    await expect(acme.auth.login({ email: 'eve@example.org', password })).rejects.toMatchObject({
      code: 'invalid_credentials',
    })
    await expect(acme.auth.users.list()).rejects.toMatchObject({ status: 401 })
    const { users } = await admin.organism('acme').auth.users.list()
    expect(users.map(({ email }) => email)).toEqual(['ada@example.org'])
    expect(() => client.organism('..')).toThrow(TypeError)
  })
})
