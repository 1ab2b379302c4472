import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RowPolicy, ServiceClient } from '../../src/client/index.js'
import { startServer, testRootKey, type TestServer } from '../support/server/server.js'

let server: TestServer
let root: ServiceClient
/** Decides about the proposals of the root key. */
let decider: ServiceClient

beforeAll(async () => {
  server = await startServer()
  root = new ServiceClient({ url: server.url, apiKey: testRootKey })
  const made = await fetch(`${server.url}/v1/admin/api-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${testRootKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'decider', scopes: ['proposals:decide'], agents: [] }),
  })
  const { key }: { key: string } = JSON.parse(await made.text())
  decider = new ServiceClient({ url: server.url, apiKey: key })
})
afterAll(() => server.stop())

describe('proposals, against a running server', () => {
  it('are created, listed, approved, rejected and cancelled', async () => {
    await root.createAgent('guarded', undefined, 'protected')
    const guarded = root.agent('guarded')
    const ids: string[] = []
    for (const n of [1, 2, 3]) {
      const proposed = await guarded.deleteRecord((await guarded.write({ n })).id)
      if (!('proposal_id' in proposed)) throw new Error('Expected a proposal')
      ids.push(proposed.proposal_id)
    }
    const [first = '', second = '', third = ''] = ids
    const listed: string[] = []
    for await (const one of decider.proposals.listAll({ agent: 'guarded', state: 'proposed', limit: 2 })) {
      listed.push(one.proposal_id)
    }
    expect(listed).toEqual(ids)
    await expect(root.proposals.approve(first)).rejects.toMatchObject({ status: 403 })
    expect(await decider.proposals.approve(first)).toMatchObject({ state: 'applied' })
    expect(await decider.proposals.reject(second)).toMatchObject({ state: 'rejected' })
    expect(await root.proposals.cancel(third)).toMatchObject({ state: 'cancelled' })
    await expect(decider.proposals.approve(third)).rejects.toMatchObject({ code: 'proposal_closed' })
    expect((await guarded.latest()).records.map(({ data }) => data['n'])).toEqual([3, 2])
  })

  it('are created by changes of an agent, unless its zone is free, where changes apply immediately', async () => {
    await root.createAgent('open', undefined, 'free')
    const open = root.agent('open')
    const rotated = await open.rotateKey()
    expect(rotated).toMatchObject({ agent_id: 'open', public_key: (await open.status()).public_key })
    expect(await open.setZone('protected')).toMatchObject({ zone: 'protected' })
    expect(await open.setZone('free')).toMatchObject({ state: 'proposed', effective_at_ms: null })
    expect(await open.rotateKey('ab'.repeat(32))).toMatchObject({ state: 'proposed' })
  })
})

describe('row policies, against a running server', () => {
  it('are replaced immediately or by a proposal, with warnings, and read', async () => {
    await root.createAgent('shared', undefined, 'free')
    const shared = root.agent('shared')
    expect(await shared.policies()).toEqual({ agent_id: 'shared', policies: [], pending: null })
    const own: RowPolicy = {
      actions: ['read'],
      conditions: [{ field: 'owner', op: 'eq', value: '$jwt.email' }],
    }
    const replaced = await shared.setPolicies([own])
    expect(replaced).toMatchObject({ policies: [own], seq: 1 })
    expect(replaced).toMatchObject({ warnings: [expect.stringContaining('$jwt.email')] })
    expect((await shared.policies()).policies).toEqual([own])
    await shared.setZone('protected')
    expect(await shared.setPolicies([])).toMatchObject({ state: 'proposed' })
    await expect(shared.setPolicies([])).rejects.toMatchObject({ status: 409, code: 'proposal_open' })
    expect((await shared.policies()).policies).toEqual([own])
    await expect(decider.agent('shared').policies()).rejects.toMatchObject({ status: 403 })
  })
})

describe('erasing, against a running server', () => {
  it('leaves a record without its data, and an export that verifies', async () => {
    await root.createAgent('erased', undefined, 'free')
    const erased = root.agent('erased')
    const { id } = await erased.write({ name: 'Ada' })
    expect(await erased.eraseRecord(id)).toMatchObject({ record_id: id, state: 'erased' })
    expect(await erased.get(id)).toMatchObject({ data: null, payload: null, erased: true })
    expect((await erased.latest()).records).toEqual([])
    const { public_key: publicKey } = await erased.status()
    const exported = await root.exportStrand({ agent: 'erased' })
    expect(await root.verify(exported, { publicKey })).toMatchObject({ ok: true, erased: 1 })
  })
})
