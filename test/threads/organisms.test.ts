import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AuthChange, AuthLookup, Change } from '../../src/protocol/auth-messages.js'
import type { CommandOf } from '../../src/protocol/messages.js'
import type { WriteOptions } from '../../src/protocol/command-options.js'
import { codeOf, keyed, replyOf, TestShard } from '../support/shard/shard.js'

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
  it('is made once, of all that ask in one group, and is there after a restart', async () => {
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

  it('is answered again under its idempotency key', async () => {
    const first = replyOf(shard.ask(create('acme', keyed('k'))))
    shard.nowMs += 60_000
    await shard.reopen()
    const again = shard.ask(create('acme', keyed('k')))
    expect(replyOf(again)).toEqual(first)
    expect(again).toMatchObject({ replayed: true })
  })
})

describe('what a claimed request draws', () => {
  const claim = (key: string, body = 'x') =>
    shard.ask({ kind: 'requestClaim', agent: key, body: Buffer.from(body), options: keyed(key) })

  it('is the same for the same request, over a restart, and another for another key', async () => {
    const first = claim('k')
    expect(first).toMatchObject({ kind: 'claimed', drawn: expect.stringMatching(/^[0-9a-f]{24}$/) })
    await shard.reopen()
    expect(claim('k')).toEqual(first)
    expect(claim('other')).not.toEqual(first)
    expect(codeOf(claim('k', 'y'))).toBe('idempotency_key_reused')
  })
})

describe('making a namespace', () => {
  it('is one commit of agent, genesis and audit record', () => {
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
    if (page.kind !== 'rows') throw new Error(`Expected rows, got ${page.kind}`)
    const types = page.rows.map((row) => JSON.parse(String(row)).type)
    expect(types).toEqual(['sys/genesis', 'auth/namespace_initialised'])
  })

  it('happens once, of all that ask in one group, and not before its organism', () => {
    expect(codeOf(shard.ask(init('acme')))).toBe('organism_not_found')
    const outcomes = shard.run(create('acme'), init('acme'), init('acme'), register('acme'))
    expect(outcomes.map(codeOf)).toEqual(['reply', 'auth', 'namespace_exists', 'auth'])
    expect(outcomes[3]).toMatchObject({ answer: { kind: 'signedIn' } })
  })
})

describe('a namespace that is not there', () => {
  it('is refused to looks and to changes, which write nothing', () => {
    shard.ask(create('acme'))
    const { commits } = shard
    expect(shard.run(look('acme'), register('acme')).map(codeOf)).toEqual([
      'namespace_not_found',
      'namespace_not_found',
    ])
    expect(shard.run(look('nobody'), register('nobody')).map(codeOf)).toEqual([
      'organism_not_found',
      'organism_not_found',
    ])
    expect([shard.commits, storedRows()]).toEqual([commits, 0])
    shard.ask(init('acme'))
    expect(shard.ask(look('acme'))).toMatchObject({ answer: { kind: 'loginState', failures: 0 } })
  })
})
