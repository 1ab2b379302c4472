import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Change, Lookup, SignedIn } from '../../src/protocol/auth-messages.js'
import type { Command, Outcome } from '../../src/protocol/messages.js'
import { seal, unseal, type SealContext } from '../../src/strand/seal.js'
import { checkStore } from '../../workers/store/check/store-check.js'
import type { Environment } from '../../workers/store/environment.js'
import type { CheckedTable } from '../../workers/store/tables/checked-table.js'
import { changedValues } from '../support/changed-values.js'
import { AuthShard } from '../support/shard/auth-shard.js'
import { fillShard } from '../support/shard/full-shard.js'
import { appendNumber, codeOf, keyed, replyOf } from '../support/shard/shard.js'

/*
 * A data directory whose rows were changed: each member of each row gets the values at its edges. No command
 * ends the thread, the commands of others are carried out, and no strand is left with half a write. That a
 * restore names an invalid row is tested in store-check.test.ts.
 */

let shard: AuthShard
let hashes: { deleted: string; erased: string }

beforeEach(() => {
  shard = new AuthShard()
  hashes = fillShard(shard)
  replyOf(shard.ask(appendNumber('another', 0)))
})
afterEach(() => shard.remove())

const origin = { ip: '192.0.2.1', userAgent: 'test', requestId: 'r-1' }
const email = 'eve@example.com'

type TableOf = (environment: Environment) => CheckedTable

/** The rows of a table, to be written again. */
function rowsIn(table: CheckedTable): Map<string, Buffer> {
  return new Map([...table.getRange({})].map(({ key, value }) => [key.toString('hex'), Buffer.from(value)]))
}

const keysOf = (table: CheckedTable) => Array.from(table.getKeys({}), (key) => Buffer.from(key))

function restore(table: CheckedTable, rows: ReadonlyMap<string, Buffer>): void {
  for (const key of keysOf(table)) if (!rows.has(key.toString('hex'))) table.remove(key)
  for (const [key, value] of rows) table.put(Buffer.from(key, 'hex'), value)
}

/** Versions of a row in which a JSON member, or the bytes of another row, are changed. */
function* versionsOf(value: Buffer): Generator<Buffer> {
  yield Buffer.from('no JSON')
  const text = value.toString()
  if (text.startsWith('{')) {
    for (const version of changedValues(JSON.parse(text))) yield Buffer.from(JSON.stringify(version))
    return
  }
  yield* [Buffer.alloc(0), value.subarray(1), Buffer.alloc(value.length), Buffer.alloc(value.length, 0xff)]
}

let changes = 0

/** Changes each row of a table that is not of the agent `another` to each version, and carries out commands that use it. */
function tryAll(tableOf: TableOf, uses: readonly Command[]): number {
  let versions = 0
  const table = tableOf(shard.environment)
  const { auth, authEnded, authExpiries, mails, apiKeys, organisms, idempotency, expiries } =
    shard.environment
  const tables = [table, auth, authEnded, authExpiries, mails, apiKeys, organisms, idempotency, expiries]
  const before = tables.map((one) => [one, rowsIn(one)] as const)
  for (const [key, value] of rowsIn(table)) {
    if (`${Buffer.from(key, 'hex').toString()} ${value.toString()}`.includes('another')) continue
    for (const version of versionsOf(value)) {
      versions++
      table.put(Buffer.from(key, 'hex'), version)
      tryOne(`${Buffer.from(key, 'hex').toString()}: ${version.toString()}`, uses)
      for (const [one, rows] of before) restore(one, rows)
    }
  }
  return versions
}

function tryOne(version: string, uses: readonly Command[]): void {
  const { agents } = shard.store
  // Agents in memory are not read from their rows.
  agents.evictIdle()
  agents.evictIdle()
  const outcomes = outcomesOf(version, [
    appendNumber('another', ++changes),
    ...uses,
    { kind: 'proposalsSweep', options: {} },
  ])
  expect([version, codeOf(outcomes[0])]).toEqual([version, 'reply'])
  const failed = outcomes.findIndex((outcome) => codeOf(outcome) === 'internal_error')
  const isReported = shard.store.setAside.count > 0 || shard.notices.some(({ kind }) => kind === 'failed')
  if (failed >= 0) expect([version, isReported]).toEqual([version, true])
}

function outcomesOf(version: string, commands: readonly Command[]): Outcome[] {
  try {
    return shard.run(...commands)
  } catch (error) {
    throw new Error(`The thread ended: ${version}`, { cause: error })
  }
}

/** The check of the store after all rows have their values again. */
async function expectWhole(): Promise<void> {
  const { path } = shard
  await shard.close()
  expect((await checkStore({ path, shard: 0 }, () => {})).faults).toEqual([])
}

const query = (agent: string): Command => ({ kind: 'recordQuery', agent, order: 'asc', limit: 10 })
const edges = (direction: 'in' | 'out', agent: string): Command => {
  return { kind: 'edgeList', agent, direction, limit: 10, lookMax: 10 }
}

function ofAgent(agent: string): Command[] {
  const chunk = Buffer.from(
    [agent, 'another'].map((name) => JSON.stringify({ agent: name, data: {} })).join('\n'),
  )
  const body = Buffer.from(JSON.stringify({ records: [{ data: { n: 1 } }] }))
  return [
    appendNumber(agent, 1),
    { kind: 'agentStatus', agent },
    query(agent),
    edges('out', agent),
    { kind: 'edgeAdd', agent, dst: 'feed', edgeType: 'feeds', weight: 3, options: {} },
    { kind: 'edgeRemove', agent, dst: 'feed', edgeType: 'feeds', principal: 'ann', options: {} },
    { kind: 'policiesGet', agent },
    { kind: 'ingestChunk', agent: '', chunk, firstLine: 1, mode: 'skip', options: {} },
    { kind: 'ingestChunk', agent: '', chunk, firstLine: 1, mode: 'reject', options: {} },
    { kind: 'batchAppend', agent, emerge: true, body, options: {} },
    { kind: 'recordMutate', agent, hash: hashes.deleted, action: 'restore', principal: 'ann', options: {} },
    { kind: 'proposalList', agent, limit: 10, keys: true },
    { kind: 'agentCreate', agent, zone: 'free', options: {} },
  ]
}

const all: Command[] = [
  { kind: 'agentList', prefix: '', after: '', limit: 100, statuses: true },
  { kind: 'headsMoved', after: { ms: 0, counter: 0 } },
  { kind: 'headsAll', fromNo: 0 },
  { kind: 'logPage', after: { ms: 0, counter: 0 }, limit: 10 },
]

describe('a directory with a changed row of an agent', () => {
  it('is served without that agent', async () => {
    const count = tryAll(({ agents }) => agents, [...ofAgent('notes'), ...ofAgent('feed'), ...all])
    expect(count).toBeGreaterThan(300)
    await expectWhole()
  })

  it('is served if its name was changed', async () => {
    tryAll(({ names }) => names, [...ofAgent('notes'), ...all])
    await expectWhole()
  })
})

describe('a directory with a changed row beside a strand', () => {
  it.each<[string, TableOf]>([
    ['edges', ({ edges }) => edges],
    ['edgesIn', ({ edgesIn }) => edgesIn],
    ['edgeHistory', ({ edgeHistory }) => edgeHistory],
    ['mutations', ({ mutations }) => mutations],
    ['erasures', ({ erasures }) => erasures],
    ['zoneChanges', ({ zoneChanges }) => zoneChanges],
    ['proposalTargets', ({ proposalTargets }) => proposalTargets],
    ['publicKeys', ({ publicKeys }) => publicKeys],
  ])('is served: %s', (_name, tableOf) => {
    const claim: Command = { kind: 'keyClaim', publicKey: 'ab'.repeat(32), agent: 'notes' }
    shard.ask(claim)
    const uses = [claim, ...ofAgent('notes'), ...ofAgent('watched'), edges('in', 'feed'), ...all]
    expect(tryAll(tableOf, uses)).toBeGreaterThan(3)
  })
})

describe('a directory with a changed idempotent answer', () => {
  it('is served, and the key of that answer gets 500', async () => {
    const one = appendNumber('notes', 6, keyed('b key'))
    const chunk = Buffer.from('{"data":{"n":1}}\nno JSON\n')
    const lines = {
      kind: 'ingestChunk',
      agent: 'notes',
      chunk,
      firstLine: 1,
      mode: 'skip',
      options: keyed('c key'),
    } as const
    const key: Command = {
      kind: 'apiKeyCreate',
      name: 'k',
      scopes: ['records:read'],
      agents: [],
      maker: 'root',
      options: keyed('d key'),
    }
    const uses = [appendNumber('notes', 5, keyed('a key')), one, lines, key]
    expect(shard.run(...uses).map(codeOf)).toEqual(['reply', 'reply', 'ingested', 'apiKeyMade'])
    expect(tryAll(({ idempotency }) => idempotency, uses)).toBeGreaterThan(200)
    await expectWhole()
  })

  it('expires answers that can be read', () => {
    const { idempotency, expiries } = shard.environment
    shard.ask(appendNumber('notes', 6, keyed('b key')))
    const [first] = idempotency.getKeys({})
    const [due] = expiries.getKeys({})
    idempotency.put(Buffer.from(first ?? []), Buffer.from('no JSON'))
    idempotency.raw.putSync(Buffer.from('damaged'), Buffer.from('damaged'))
    expiries.raw.putSync(
      Buffer.concat([Buffer.from(due ?? []).subarray(0, 6), Buffer.from('damaged')]),
      Buffer.alloc(0),
    )
    shard.nowMs += 2 * 86_400_000
    replyOf(shard.ask(appendNumber('notes', 7, keyed('c key'))))
    expect(shard.store.setAside.count).toBe(2)
    expect([...expiries.raw.getKeys({})]).toHaveLength(1)
  })
})

describe('a directory with a changed API key', () => {
  it('is served without that key', async () => {
    const create = (scopes: string[]): Command => {
      return {
        kind: 'apiKeyCreate',
        name: 'key',
        scopes,
        agents: ['x*'],
        expiresInSecs: 9_999,
        maker: 'root',
        options: {},
      }
    }
    const made = shard.run(create(['records:read']), create(['admin:*']))
    const ids = made.flatMap((outcome) => (outcome.kind === 'apiKeyMade' ? [outcome.row.keyId] : []))
    const uses = ids.flatMap((keyId): Command[] => [
      { kind: 'apiKeyList', after: '', limit: 10 },
      { kind: 'apiKeyList', after: '', limit: 10, keyId },
      create(['proposals:decide']),
      { kind: 'apiKeysUsed', uses: [[keyId, shard.nowMs]], options: {} },
      { kind: 'apiKeyDelete', keyId, maker: 'root', options: {} },
    ])
    expect(tryAll(({ apiKeys }) => apiKeys, uses)).toBeGreaterThan(200)
    await expectWhole()
  })
})

describe('a directory with a changed organism', () => {
  it('is served without that organism', async () => {
    const create = (organismId: string): Command => {
      const members = [{ name: 'notes', zone: 'free' } as const]
      return {
        kind: 'organismCreate',
        agent: `${organismId}::auth`,
        organismId,
        name: 'Test',
        members,
        options: {},
      }
    }
    const change = { kind: 'namespaceInit' } as const
    shard.run(create('acme'), create('other'))
    const uses: Command[] = [
      create('acme'),
      { kind: 'organismGet', agent: 'acme::auth', organismId: 'acme' },
      { kind: 'organismList', after: '', limit: 10 },
      { kind: 'authChange', agent: 'acme::auth', namespace: 'acme', change, origin, options: {} },
    ]
    expect(tryAll(({ organisms }) => organisms, uses)).toBeGreaterThan(50)
    await expectWhole()
  })
})

describe('a directory with a changed row of auth state', () => {
  it('is served, and only the account of that row is not', async () => {
    const uses = authUses()
    expect(tryAll(({ auth }) => auth, uses)).toBeGreaterThan(500)
    await expectWhole()
  })

  it('accepts no revoked token, whatever the row of its revocation', () => {
    shard.change({ kind: 'userLogout', email: 'ada@example.com' })
    const list = { kind: 'revocationsList' } as const
    const revoked = shard.ask(list)
    expect(revoked).toMatchObject({ rows: [{ what: 'sid', namespace: '' }] })
    const table = shard.environment.authEnded
    for (const key of keysOf(table)) table.put(key, Buffer.from('no JSON'))
    expect(shard.ask(list)).toEqual(revoked)
  })
})

/** Fills the namespace with every kind of row. @returns commands that use them */
function authUses(): Command[] {
  const userId = signedIn(shard.register(email)).user.userId
  const passkey = {
    id: 'cGFzc2tleQ',
    publicKey: 'cHVibGlj',
    counter: 1,
    backupEligible: true,
    transports: ['usb'],
  }
  const login = signedIn(shard.change({ kind: 'loginSucceeded', email, passwordHash: `hash of ${email}` }))
  const { sid } = login.session
  shard.change({ kind: 'passkeyRegister', userId, sid, passkey, notify: true })
  shard.change({ kind: 'oauthLogin', provider: 'google', subject: 'sub', email })
  const hash = shard.sendLink({ purpose: 'magicLink', email })
  const reset = shard.sendLink({ purpose: 'passwordReset', email })
  const session = { hash: 'ab'.repeat(32), challenge: 'Y2hhbGxlbmdl', expiresAtMs: shard.nowMs + 60_000 }
  const row = {
    provider: 'google',
    browserHash: 'cd'.repeat(32),
    redirectUri: 'https://x.example/',
    mode: 'query',
    expiresAtMs: shard.nowMs + 60_000,
  } as const
  const stateHash = 'ef'.repeat(32)
  const fails: Change[] = [
    { kind: 'loginFailed', email },
    { kind: 'loginFailed', email: 'none@example.com' },
    { kind: 'signInFailed', email, method: 'oauth', reason: 'access_denied' },
    { kind: 'passkeyAuthentication', email, session },
    { kind: 'oauthStart', stateHash, row },
    { kind: 'keyRotate' },
  ]
  for (const change of fails) shard.change(change)
  const lookups: Lookup[] = [
    { kind: 'loginState', email },
    { kind: 'user', userId },
    { kind: 'users', prefix: '', after: '', limit: 10 },
    { kind: 'sessions', userId },
    { kind: 'userSessions', email },
    { kind: 'link', hash, purpose: 'magicLink' },
    { kind: 'passkeys', userId },
    { kind: 'keyEpochs' },
  ]
  const changing: Change[] = [
    ...fails,
    { kind: 'loginSucceeded', email, passwordHash: `hash of ${email}` },
    { kind: 'refresh', sid, generation: 0 },
    { kind: 'userMetadata', userId, sid, metadata: {} },
    { kind: 'appMetadata', email, metadata: {} },
    { kind: 'userUnlock', email },
    { kind: 'passkeySessionTake', hash: session.hash, ceremony: 'authenticate', passkeyId: passkey.id },
    {
      kind: 'passkeyLogin',
      passkeyId: passkey.id,
      publicKey: passkey.publicKey,
      assertion: { counter: 2, backupEligible: true },
    },
    { kind: 'oauthReturn', stateHash, provider: 'google', browserHash: row.browserHash },
    { kind: 'oauthLogin', provider: 'google', subject: 'sub', email },
    { kind: 'magicLinkVerify', hash },
    { kind: 'passwordReset', hash: reset, passwordHash: 'new' },
    { kind: 'passkeyRemove', userId, sid, passkeyId: passkey.id },
    { kind: 'logout', userId, sid, scope: 'global' },
    { kind: 'userDelete', email },
  ]
  const look = (lookup: Lookup): Command => ({ kind: 'authLookup', agent: 'default', namespace: '', lookup })
  return [...lookups.map(look), ...changing.map((change) => shard.command(change))]
}

function signedIn(answer: ReturnType<AuthShard['change']>): SignedIn {
  if (!('kind' in answer) || answer.kind !== 'signedIn') throw new Error(JSON.stringify(answer))
  return answer
}

describe('a directory with a changed mail', () => {
  it('is served, and the other mails are sent', () => {
    const place: SealContext = { purpose: 'strandfast/mail/v1', boundTo: Buffer.from('outbox') }
    const masterSeed = Buffer.alloc(32, 7)
    shard.sendLink({ purpose: 'magicLink', email: 'ada@example.com' })
    const { mails } = shard.environment
    const rows = rowsIn(mails)
    for (const [key, sealed] of rows) {
      const message: unknown = JSON.parse(unseal(masterSeed, place, sealed).toString())
      for (const version of changedValues(message)) {
        const secret = Buffer.from(JSON.stringify(version))
        mails.put(
          Buffer.from(key, 'hex'),
          seal(masterSeed, { ...place, secret }, (count) => Buffer.alloc(count)),
        )
        const retry = { kind: 'failed', attempts: 1, retryAtMs: shard.nowMs } as const
        tryOne(secret.toString(), [
          { kind: 'mailDue', limit: 10 },
          { kind: 'mailAttempted', key, result: retry, options: {} },
          { kind: 'mailAttempted', key, result: { kind: 'done' }, options: {} },
        ])
        restore(mails, rows)
      }
    }
  })
})
