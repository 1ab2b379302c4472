import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NotFoundError, ServiceClient } from '../../src/client/index.js'
import { startServer, testRootKey, type TestServer } from '../support/server/server.js'

let server: TestServer
let root: ServiceClient

beforeAll(async () => {
  server = await startServer()
  root = new ServiceClient({ url: server.url, apiKey: testRootKey })
})
afterAll(() => server.stop())

const clientOf = (apiKey: string) => new ServiceClient({ url: server.url, apiKey })

describe('API keys, against a running server', () => {
  it('are created, listed page by page, and deleted', async () => {
    const made = await root.apiKeys.create({ name: 'Gateway', scopes: ['ingest'], agents: ['sensor-*'] })
    const reader = await root.apiKeys.create({
      name: 'Reader',
      scopes: ['records:read'],
      expires_in_secs: 60,
    })
    expect(made).not.toHaveProperty('proposal_id')
    expect(await clientOf(made.key).whoAmI()).toMatchObject({ principal: made.key_id, name: 'Gateway' })
    const listed: string[] = []
    for await (const { key_id: keyId } of root.apiKeys.listAll({ limit: 1 })) listed.push(keyId)
    expect(listed).toEqual([made.key_id, reader.key_id].sort())
    const { api_keys: rows } = await root.apiKeys.list()
    expect(rows.find(({ name }) => name === 'Gateway')).toMatchObject({
      agents: ['sensor-*'],
      made_by: 'root',
    })
    expect(await root.apiKeys.remove(made.key_id)).toEqual({ deleted: true, key_id: made.key_id })
    await expect(clientOf(made.key).whoAmI()).rejects.toMatchObject({ status: 401 })
    await expect(root.apiKeys.remove(made.key_id)).rejects.toBeInstanceOf(NotFoundError)
    await expect(clientOf(reader.key).apiKeys.list()).rejects.toMatchObject({ status: 403 })
  })

  it('are proposed if they may decide about proposals and two admin keys exist', async () => {
    const options = { idempotencyKey: 'client-once' }
    const first = await root.apiKeys.create({ name: 'First', scopes: ['admin:*'] }, options)
    expect(await root.apiKeys.create({ name: 'First', scopes: ['admin:*'] }, options)).toEqual(first)
    const second = await root.apiKeys.create({ name: 'Second', scopes: ['admin:*'] })
    const proposed = await root.apiKeys.create({ name: 'Decider', scopes: ['proposals:decide'] })
    if (!('proposal_id' in proposed)) throw new Error('Expected a proposal')
    await expect(clientOf(proposed.key).whoAmI()).rejects.toMatchObject({ status: 401 })
    expect(await clientOf(second.key).proposals.approve(proposed.proposal_id)).toMatchObject({
      state: 'applied',
    })
    expect(await clientOf(proposed.key).whoAmI()).toMatchObject({ scopes: ['proposals:decide'] })
  })
})
