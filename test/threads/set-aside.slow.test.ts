import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CommandOf } from '../../src/protocol/messages.js'
import type { CheckedTable } from '../../workers/store/tables/checked-table.js'
import { expiryKey } from '../../workers/store/tables/tables.js'
import { auth as authTables, authKey } from '../../workers/store/tables/auth-table.js'
import { changedValues } from '../support/changed-values.js'
import { AuthShard } from '../support/shard/auth-shard.js'
import { appendNumber, replyOf, TestShard } from '../support/shard/shard.js'

/* A row whose handling fails is set aside: the thread continues with the other rows. */

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})
afterEach(() => shard.remove())

const sweep: CommandOf<'proposalsSweep'> = { kind: 'proposalsSweep', options: {} }
const DAY_MS = 86_400_000

/** An agent with an open proposal to delete a record, in a zone. @returns the key of the proposal's row */
function proposing(agent: string, zone: 'governed' | 'protected' = 'governed'): Buffer {
  replyOf(shard.ask({ kind: 'agentCreate', agent, zone, options: {} }))
  const { content_hash: hash } = replyOf(shard.ask(appendNumber(agent, 1)))
  const action = 'delete' as const
  replyOf(shard.ask({ kind: 'recordMutate', agent, hash, action, principal: 'root', options: {} }))
  const keys = [...shard.environment.proposals.getKeys({})].map((key) => Buffer.from(key))
  return keys.at(-1) ?? Buffer.alloc(0)
}

function rewrite(table: CheckedTable, key: Buffer, value: string): void {
  shard.environment.root.transactionSync(() => table.put(key, Buffer.from(value)))
  shard.store.flush()
}

const rowAt = (key: Buffer): string => shard.environment.proposals.find(key)?.toString() ?? ''
const stateOf = (key: Buffer): unknown => JSON.parse(rowAt(key)).state
const setAside = (): number => shard.frames.at(-1)?.figures.setAside ?? -1

describe('a sweep of proposals', () => {
  it('sets aside a proposal whose row is invalid, logs it once and applies the others', async () => {
    const bad = proposing('bad')
    const good = proposing('good')
    rewrite(
      shard.environment.proposals,
      bad,
      rowAt(bad).replace('"targetSeq":1', `"targetSeq":${2 ** 53 - 1}`),
    )
    shard.nowMs += DAY_MS
    expect(shard.ask(sweep)).toEqual({ kind: 'swept', left: false })
    expect([stateOf(good), setAside()]).toEqual(['applied', 1])
    expect(shard.notices.filter(({ kind }) => kind === 'failed')).toMatchObject([
      { kind: 'failed', failures: [expect.stringContaining('proposals ')] },
    ])
    shard.ask(sweep)
    expect([setAside(), shard.notices]).toEqual([1, []])
    replyOf(shard.ask(appendNumber('bad', 2)))
    await shard.reopen()
    shard.ask(sweep)
    expect(setAside()).toBe(1)
    replyOf(shard.ask(appendNumber('good', 2)))
  })

  it('takes back what a proposal did before its handling threw', () => {
    const key = proposing('halfway')
    const other = proposing('other')
    // A proposal to rotate the key, whose seed was removed from the row.
    const mutation = JSON.stringify({ action: 'rotate_key', publicKey: 'a'.repeat(64) })
    rewrite(
      shard.environment.proposals,
      key,
      rowAt(key).replace(/"mutation":\{[^}]*\}/, `"mutation":${mutation}`),
    )
    const { seq } = replyOf(shard.ask({ kind: 'agentHead', agent: 'halfway' }))
    shard.nowMs += DAY_MS
    shard.ask(sweep)
    expect([stateOf(key), stateOf(other), setAside()]).toEqual(['proposed', 'applied', 1])
    expect(replyOf(shard.ask(appendNumber('halfway', 2))).seq).toBe(seq + 1)
  })

  it('handles all others when more rows than one sweep takes are invalid', () => {
    const bad = Array.from({ length: 70 }, (_none, n) => proposing(`bad${n}`))
    const good = proposing('good')
    for (const key of bad) rewrite(shard.environment.proposals, key, 'no JSON')
    shard.nowMs += DAY_MS
    for (let left = true; left;) {
      const swept = shard.ask(sweep)
      left = swept.kind === 'swept' && swept.left
    }
    expect([stateOf(good), setAside()]).toEqual(['applied', 70])
  })
})

describe('a directory with a changed row of a proposal', () => {
  it.each(['governed', 'protected'] as const)('is swept and takes writes, in zone %s', async (zone) => {
    const versionsOf = (key: Buffer) => [...changedValues(JSON.parse(rowAt(key)))]
    const versions = versionsOf(proposing('unchanged', zone)).length
    for (let n = 0; n < versions; n++) {
      const key = proposing(`changed-${n}`, zone)
      rewrite(shard.environment.proposals, key, JSON.stringify(versionsOf(key)[n]))
      shard.nowMs += 8 * DAY_MS
      expect(shard.ask(sweep).kind).toBe('swept')
      expect(shard.ask({ kind: 'proposalAuthors' }).kind).toBe('authors')
      expect(shard.ask({ kind: 'authorsEnd', principals: ['root'], options: {} }).kind).toBe('authors')
      replyOf(shard.ask(appendNumber('another', n)))
      if (n % 40 === 39) await shard.reopen()
    }
    const { proposalsOpen } = shard.environment
    expect(proposalsOpen.getKeysCount({})).toBeLessThan(versions)
    expect(versions).toBeGreaterThan(150)
  })
})

describe('a row that expires', () => {
  it('is set aside if it is not JSON, and others are removed', () => {
    const { auth, authExpiries } = shard.environment
    for (const [id, value] of [
      ['bad', '{'],
      ['good', '{"value":1,"expiresAtMs":5}'],
    ] as const) {
      const key = Buffer.from(authKey('', 'unsent-mail', id))
      rewrite(auth, key, value)
      rewrite(authExpiries, expiryKey(5, key), '')
    }
    shard.store.environment.root.transactionSync(() =>
      shard.store.tables
        .of(authTables)
        .put(new Map([[authKey('', 'unsent-mail', 'new'), { value: '1' }]]), [], shard.nowMs),
    )
    const has = (id: string) => auth.find(Buffer.from(authKey('', 'unsent-mail', id))) !== undefined
    expect([has('bad'), has('good'), has('new'), shard.store.setAside.count]).toEqual([true, false, true, 1])
  })

  it('has a time that fits its key, whatever the time of the row', () => {
    for (const ms of [-1, 1.5, 2 ** 48, 2 ** 53 - 1, Number.NaN, Infinity]) {
      expect(expiryKey(ms, Buffer.alloc(0)).readUIntBE(0, 6)).toBe(2 ** 48 - 1)
    }
    expect(expiryKey(7, Buffer.alloc(0)).readUIntBE(0, 6)).toBe(7)
  })
})

describe('a session and a passkey whose rows are invalid', () => {
  it('are not listed, and the session ends with the others of its user', async () => {
    const email = 'ada@example.com'
    await shard.remove()
    const auth = new AuthShard()
    shard = auth
    const opened = [
      auth.register(email),
      auth.change({ kind: 'loginSucceeded', email, passwordHash: `hash of ${email}` }),
    ].map((answer) => {
      if (answer.kind !== 'signedIn') throw new Error(`Expected a session, got ${answer.kind}`)
      return answer.session
    })
    const [bad, good] = opened.map(({ sid }) => sid)
    const userId = opened[0]?.userId ?? ''
    rewrite(shard.environment.auth, Buffer.from(authKey('', 'session', bad ?? '')), 'damaged')
    rewrite(
      shard.environment.auth,
      Buffer.from(authKey('', 'user-passkey', `${userId}:key`)),
      '{"value":true}',
    )
    rewrite(shard.environment.auth, Buffer.from(authKey('', 'passkey', 'key')), 'damaged')
    expect(auth.lookUp({ kind: 'passkeys', userId })).toEqual({ kind: 'passkeys', passkeys: [] })
    expect(auth.lookUp({ kind: 'sessions', userId })).toMatchObject({ sessions: [{ sid: good }] })
    expect(auth.change({ kind: 'userLogout', email })).toEqual({ kind: 'loggedOut', userId, sessions: 2 })
    expect(setAside()).toBe(2)
    const ended = auth.ask({ kind: 'revocationsList' })
    const revoked = ended.kind === 'revocations' ? ended.rows.map(({ id }) => id) : []
    expect(revoked.toSorted()).toEqual([bad, good].toSorted())
    expect(auth.change({ kind: 'userLogout', email })).toMatchObject({ sessions: 0 })
  })
})

describe('the outbox', () => {
  it('returns the mails that it can read', () => {
    for (let n = 0; n < 5; n++) rewrite(shard.environment.mails, expiryKey(n, Buffer.from('bad')), 'damaged')
    expect(shard.ask({ kind: 'mailDue', limit: 2 })).toEqual({ kind: 'mailDue', mails: [] })
    expect(setAside()).toBe(5)
  })
})
