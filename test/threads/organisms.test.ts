import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AuthChange, AuthLookup, Change } from '../../src/protocol/auth-messages.js'
import type { CommandOf } from '../../src/protocol/messages.js'
import type { WriteOptions } from '../../src/protocol/command-options.js'
import { codeOf, keyed, replyOf, rowsOf, TestShard } from '../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})
afterEach(() => shard.remove())

const origin = { ip: '192.0.2.1', userAgent: 'test', requestId: 'r-1' }

function create(organismId: string, options: WriteOptions = {}): CommandOf<'organismCreate'> {
  const members = [{ name: 'notes', zone: 'free' } as const]
  return { kind: 'organismCreate', agent: `${organismId}::auth`, organismId, name: 'Test', members, options }
}

function change(organismId: string, one: Change): AuthChange {
  const agent = `${organismId}::auth`
  return { kind: 'authChange', agent, namespace: organismId, change: one, origin, options: {} }
}

const init = (organismId: string) => change(organismId, { kind: 'namespaceInit' })
const register = (organismId: string) =>
  change(organismId, { kind: 'register', email: 'ada@example.com', passwordHash: 'hash' })

function look(organismId: string): AuthLookup {
  const lookup = { kind: 'loginState', email: 'ada@example.com' } as const
  return { kind: 'authLookup', agent: `${organismId}::auth`, namespace: organismId, lookup }
}

const storedRows = () => [...shard.environment.auth.getKeys({})].length

describe('the row of an organism', () => {
  it('is created once by several requests in one group, and exists after a restart', async () => {
    const outcomes = shard.run(create('acme'), create('acme'), create('other')).map(codeOf)
    expect(outcomes).toEqual(['reply', 'organism_exists', 'reply'])
    await shard.reopen()
    expect(codeOf(shard.ask(create('acme')))).toBe('organism_exists')
    const get = { kind: 'organismGet', agent: 'acme::auth', organismId: 'acme' } as const
    expect(shard.ask(get)).toMatchObject({
      row: { organismId: 'acme', name: 'Test', members: [{ name: 'notes', zone: 'free' }] },
      initialised: false,
    })
    expect(shard.ask({ kind: 'organismList', after: 'acme', limit: 10 })).toMatchObject({
      rows: [{ organismId: 'other' }],
      total: 2,
    })
  })

  it('has the same answer for a retry under its Idempotency-Key', async () => {
    const first = replyOf(shard.ask(create('acme', keyed('k'))))
    shard.nowMs += 60_000
    await shard.reopen()
    const again = shard.ask(create('acme', keyed('k')))
    expect(replyOf(again)).toEqual(first)
    expect(again).toMatchObject({ replayed: true })
  })
})

describe('the random value of a claimed request', () => {
  const claim = (key: string, body = 'x') =>
    shard.ask({ kind: 'requestClaim', agent: key, body: Buffer.from(body), options: keyed(key) })

  it('is the same for the same request, also after a restart, and different for another key', async () => {
    const first = claim('k')
    expect(first).toMatchObject({ kind: 'claimed', drawn: expect.stringMatching(/^[0-9a-f]{24}$/) })
    await shard.reopen()
    expect(claim('k')).toEqual(first)
    expect(claim('other')).not.toEqual(first)
    expect(codeOf(claim('k', 'y'))).toBe('idempotency_key_reused')
  })
})

describe('the creation of a namespace', () => {
  it('is one commit of agent, genesis record and audit record', () => {
    shard.ask(create('acme'))
    const { commits } = shard
    expect(shard.ask(init('acme'))).toMatchObject({ kind: 'auth', answer: { createdAtMs: shard.nowMs } })
    expect(shard.commits).toBe(commits + 1)
    const page = shard.ask({
      kind: 'recordQuery',
      agent: 'acme::auth',
      order: 'asc',
      limit: 10,
      types: ['sys/*', 'auth/*'],
    })
    const types = rowsOf(page).map(({ type }) => type)
    expect(types).toEqual(['sys/genesis', 'auth/namespace_initialised'])
  })

  it('succeeds once for several requests in one group, and not before its organism exists', () => {
    expect(codeOf(shard.ask(init('acme')))).toBe('organism_not_found')
    const outcomes = shard.run(create('acme'), init('acme'), init('acme'), register('acme'))
    expect(outcomes.map(codeOf)).toEqual(['reply', 'auth', 'namespace_exists', 'auth'])
    expect(outcomes[3]).toMatchObject({ answer: { kind: 'signedIn' } })
  })
})

describe('a namespace that does not exist', () => {
  it('causes lookups and changes to be refused, which write nothing', () => {
    shard.ask(create('acme'))
    const { commits } = shard
    expect(shard.run(look('acme'), register('acme')).map(codeOf)).toEqual([
      'namespace_not_found',
      'namespace_not_found',
    ])
    expect(shard.run(look('missing'), register('missing')).map(codeOf)).toEqual([
      'organism_not_found',
      'organism_not_found',
    ])
    expect([shard.commits, storedRows()]).toEqual([commits, 0])
    shard.ask(init('acme'))
    expect(shard.ask(look('acme'))).toMatchObject({ answer: { kind: 'loginState', failures: 0 } })
  })
})
