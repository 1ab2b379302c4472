import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ApiKeyCreate, ApiKeyMadeOutcome } from '../../src/protocol/api-key-messages.js'
import type { Outcome } from '../../src/protocol/messages.js'
import type { WriteOptions } from '../../src/protocol/command-options.js'
import { apiKeys } from '../../workers/store/tables/api-keys.js'
import { idempotency, idempotencyRow } from '../../workers/store/tables/idempotency.js'
import { codeOf, keyed, TestShard } from '../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})
afterEach(() => shard.remove())

function create(options: WriteOptions): ApiKeyCreate {
  return {
    kind: 'apiKeyCreate',
    name: 'reader',
    scopes: ['records:read'],
    agents: [],
    maker: 'root',
    options,
  }
}

function madeOf(outcome: Outcome | undefined): ApiKeyMadeOutcome {
  if (outcome?.kind !== 'apiKeyMade') throw new Error(`Expected a key, got ${JSON.stringify(outcome)}`)
  return outcome
}

const rowOf = (key: string) => idempotencyRow('test', '', key)

describe('creating a key under one Idempotency-Key', () => {
  it('creates one key in a group of many commands, and stores the same answer', () => {
    const outcomes = shard.run(create(keyed('k')), create(keyed('k')), create({})).map(madeOf)
    expect(outcomes.map(({ replayed }) => replayed === true)).toEqual([false, true, false])
    expect(outcomes[1]).toEqual({ ...outcomes[0], replayed: true })
    expect(outcomes[2]?.key).not.toBe(outcomes[0]?.key)
    expect(shard.store.tables.of(apiKeys).page({ after: '', limit: 9 }).rows).toHaveLength(2)
    expect(madeOf(shard.ask(create(keyed('k'))))).toEqual(outcomes[1])
  })

  it('reports a key that was deleted since then as not live, also in the same group', async () => {
    const made = madeOf(shard.ask(create(keyed('k'))))
    const { keyId } = made.row
    const [again] = shard.run(create(keyed('k')), {
      kind: 'apiKeyDelete',
      keyId,
      maker: 'root',
      options: keyed('d'),
    })
    expect(again).toEqual({ ...made, live: false, replayed: true })
    await shard.reopen()
    expect(shard.ask(create(keyed('k')))).toEqual({ ...made, live: false, replayed: true })
    expect(shard.ask({ kind: 'apiKeyDelete', keyId, maker: 'root', options: keyed('d') })).toMatchObject({
      replayed: true,
    })
    expect(codeOf(shard.ask({ kind: 'apiKeyDelete', keyId, maker: 'root', options: {} }))).toBe('not_found')
  })
})

describe('the stored answer of a creation', () => {
  it('is sealed in the store, differently each time', () => {
    const made = [create(keyed('one')), create(keyed('two'))].map((command) => madeOf(shard.ask(command)))
    const stored = ['one', 'two'].map(
      (key) => shard.store.tables.of(idempotency).find(rowOf(key), shard.nowMs)?.outcome,
    )
    for (const [index, outcome] of stored.entries()) {
      expect(outcome).toEqual({ kind: 'sealed', box: expect.any(String) })
      expect(JSON.stringify(outcome)).not.toContain(made[index]?.key)
    }
    expect(stored[0]).not.toEqual(stored[1])
  })

  it('cannot be unsealed in the row of another Idempotency-Key or after a change', () => {
    shard.ask(create(keyed('one')))
    shard.ask(create(keyed('two')))
    const { idempotency, root } = shard.environment
    const put = (key: string, value: Buffer): void => {
      root.transactionSync(() => idempotency.put(rowOf(key), value))
    }
    const one = idempotency.get(rowOf('one')) ?? Buffer.alloc(0)
    put('two', one)
    expect(codeOf(shard.ask(create(keyed('two'))))).toBe('internal_error')
    const flipped = one
      .toString()
      .replace(/("box":".)(.)/, (_all, before, digit) => before + (digit === 'A' ? 'B' : 'A'))
    put('one', Buffer.from(flipped))
    expect(codeOf(shard.ask(create(keyed('one'))))).toBe('internal_error')
  })
})

it('treats keys from before creators were stored as keys of the root key, each with a separate lineage', async () => {
  const row = {
    keyId: 'key_old',
    name: 'old',
    scopes: ['admin:*'],
    agents: [],
    digest: '00',
    createdAtMs: shard.nowMs,
  }
  const { apiKeys: table, root } = shard.environment
  root.transactionSync(() => table.put(Buffer.from(row.keyId), Buffer.from(JSON.stringify(row))))
  await shard.reopen()
  const listed = shard.ask({ kind: 'apiKeyList', after: '', limit: 10 })
  expect(listed).toEqual({
    kind: 'apiKeys',
    rows: [{ ...row, madeBy: 'root', line: 'key_old' }],
    more: false,
  })
  const child = madeOf(shard.ask({ ...create({}), maker: 'key_old' }))
  expect(child.row).toMatchObject({ madeBy: 'key_old', line: 'key_old' })
})

it('adds the later scopes for deleting and erasing to keys that had these permissions before, and lists them', async () => {
  const scopes = ['records:read', 'records:write', 'ingest']
  const old = {
    keyId: 'key_old',
    name: 'old',
    scopes,
    agents: [],
    digest: '00',
    createdAtMs: shard.nowMs,
    madeBy: 'root',
    line: 'key_old',
  }
  const { apiKeys: table, root } = shard.environment
  root.transactionSync(() => table.put(Buffer.from(old.keyId), Buffer.from(JSON.stringify(old))))
  await shard.reopen()
  const made = madeOf(shard.ask({ ...create({}), scopes })).row.keyId
  const scopesOf = () =>
    Object.fromEntries(
      shard.store.tables
        .of(apiKeys)
        .page({ after: '', limit: 9 })
        .rows.map(({ keyId, scopes: its }) => [keyId, its]),
    )
  const expected = {
    key_old: ['records:read', 'records:write', 'records:delete', 'records:erase', 'ingest'],
    [made]: scopes,
  }
  expect(scopesOf()).toEqual(expected)
  // A row that is written again keeps its scopes.
  const uses: [string, number][] = [
    ['key_old', 7],
    [made, 7],
  ]
  shard.ask({ kind: 'apiKeysUsed', uses, options: {} })
  await shard.reopen()
  expect(scopesOf()).toEqual(expected)
})

it('stores the last use of keys, and does not restore a deleted key', () => {
  const { keyId } = madeOf(shard.ask(create({}))).row
  const uses = (ids: string[], atMs: number) =>
    ({ kind: 'apiKeysUsed', uses: ids.map((id): [string, number] => [id, atMs]), options: {} }) as const
  shard.ask(uses([keyId, 'key_none'], 7))
  const rows = () => shard.store.tables.of(apiKeys).page({ after: '', limit: 9 }).rows
  expect(rows()).toMatchObject([{ keyId, lastUsedAtMs: 7 }])
  shard.run({ kind: 'apiKeyDelete', keyId, maker: 'root', options: {} }, uses([keyId], 8))
  expect(rows()).toEqual([])
})

it('notifies the fronts of created and deleted keys, and audits them in the same commit', () => {
  const { row } = madeOf(shard.ask(create({})))
  expect(shard.notices).toEqual([{ kind: 'apiKeysChanged', changes: { created: [row], removed: [] } }])
  const commits = shard.commits
  shard.ask({ kind: 'apiKeyDelete', keyId: row.keyId, maker: 'root', options: {} })
  expect(shard.notices).toEqual([{ kind: 'apiKeysChanged', changes: { created: [], removed: [row.keyId] } }])
  expect(shard.commits).toBe(commits + 1)
  expect(shard.store.agents.find('server::audit')?.head.seq).toBe(2)
})
