import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { resolveGrant, type Policy, type PolicyClaims } from '../../src/auth/row-policy.js'
import { limits } from '../../src/base/limits/limits.js'
import type { Command } from '../../src/protocol/messages.js'
import type { UserAccess } from '../../src/protocol/command-options.js'
import { recordBySeq } from '../../workers/store/tables/records.js'
import { TestShard, codeOf, keyed, replyOf, rowsOf, testAuthRules } from '../support/shard/shard.js'

const own: Policy = {
  actions: ['read', 'write', 'delete'],
  conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }],
}

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  for (const agent of ['notes', 'bare']) {
    replyOf(shard.ask({ kind: 'agentCreate', agent, zone: 'free', options: {} }))
  }
})

afterEach(() => shard.remove())

function user(sub: string, more: Partial<PolicyClaims> = {}): UserAccess {
  return { claims: { sub, email: `${sub}@example.org`, app_metadata: {}, user_metadata: {}, ...more } }
}

const ann = user('usr_ann')
const bob = user('usr_bob')

function setPolicies(...policies: Policy[]): Command {
  return { kind: 'policiesSet', agent: 'notes', policies, principal: 'root', options: {} }
}

function append(data: object, access?: UserAccess, agent = 'notes'): Command {
  const body = Buffer.from(JSON.stringify({ data }))
  return withAccess({ kind: 'recordAppend', agent, emerge: false, body, options: {} }, access)
}

function batch(records: object[], { atomic, access }: { atomic: boolean; access: UserAccess }): Command {
  const body = Buffer.from(JSON.stringify({ records: records.map((data) => ({ data })), atomic }))
  return { kind: 'batchAppend', agent: 'notes', emerge: false, body, options: {}, access }
}

function withAccess<C extends object>(
  command: C,
  access: UserAccess | undefined,
): C & { access?: UserAccess } {
  return access === undefined ? command : { ...command, access }
}

function hashOf(command: Command): string {
  return replyOf(shard.ask(command)).content_hash
}

function get(hash: string, access: UserAccess, agent = 'notes'): Command {
  return { kind: 'recordGet', agent, hash, access }
}

function mutate(action: 'delete' | 'restore', hash: string, access: UserAccess): Command {
  const principal = `user::${access.claims.sub}`
  return { kind: 'recordMutate', agent: 'notes', action, hash, principal, options: {}, access }
}

function shown(access: UserAccess, more: object = {}): number[] {
  const outcome = shard.ask({
    kind: 'recordQuery',
    agent: 'notes',
    order: 'asc',
    limit: 100,
    access,
    ...more,
  })
  return rowsOf(outcome).map((row) => row.payload.n)
}

function headSeq(agent = 'notes'): number {
  return replyOf(shard.ask({ kind: 'agentHead', agent })).seq
}

/** The result of an ingest chunk: accepted and rejected lines, and the codes of the rejected ones. */
function ingested(command: Command): unknown {
  const outcome = shard.ask(command)
  if (outcome.kind !== 'ingested') return codeOf(outcome)
  const faults = outcome.faults.map(({ line, refusal }) => `${line} ${refusal.code}`)
  return { accepted: outcome.accepted, rejected: outcome.rejected, faults }
}

function lines(...bodies: object[]): Uint8Array {
  return Buffer.from(bodies.map((body) => `${JSON.stringify(body)}\n`).join(''))
}

describe('a change of policies', () => {
  it('is a signed record with all policies that apply from then on', () => {
    shard.ask(setPolicies())
    const { seq, record_id: hash, policies } = replyOf(shard.ask(setPolicies(own)))
    expect(policies).toEqual([own])
    const no = shard.store.agents.find('notes')?.no ?? Number.NaN
    const record = recordBySeq(shard.environment, no, seq)
    expect(record).toMatchObject({ type: 'sys/policy', hash })
    expect(record?.signature).toHaveLength(64)
    expect(JSON.parse(Buffer.from(record?.body ?? []).toString())).toEqual({
      policies: [own],
      principal: 'root',
    })
  })

  it('survives a restart', async () => {
    shard.ask(setPolicies(own))
    await shard.reopen()
    expect(replyOf(shard.ask({ kind: 'policiesGet', agent: 'notes' })).policies).toEqual([own])
    expect(codeOf(shard.ask(append({ owner: 'usr_bob' }, ann)))).toBe('forbidden')
  })

  it('applies to later decisions in the same commit group, but not to earlier ones', () => {
    const write = append({ owner: 'usr_ann' }, ann)
    const outcomes = shard.run(write, setPolicies(own), write, setPolicies(), write)
    expect(outcomes.map(codeOf)).toEqual(['forbidden', 'reply', 'reply', 'reply', 'forbidden'])
    expect(headSeq()).toBe(3)
  })

  it('can be in the commit group that creates the agent', () => {
    const outcomes = shard.run(
      { kind: 'agentCreate', agent: 'fresh', zone: 'free', options: {} },
      { kind: 'policiesSet', agent: 'fresh', policies: [own], principal: 'root', options: {} },
    )
    expect(outcomes.map(codeOf)).toEqual(['reply', 'reply'])
    expect(shard.store.agents.row('fresh')?.policies).toEqual([own])
  })

  it('is reported to the fronts with the commit, by agent name', () => {
    shard.run(setPolicies(own), append({ owner: 'x' }))
    expect(shard.notices).toEqual([{ kind: 'policiesChanged', agents: ['notes'] }])
    shard.run(append({ owner: 'x' }))
    expect(shard.notices).toEqual([])
  })

  it.each(['immutable_core', 'protected', 'governed'] as const)('is a proposal in zone %s', (zone) => {
    shard.ask({ kind: 'agentCreate', agent: zone, zone, options: {} })
    const command = {
      kind: 'policiesSet' as const,
      agent: zone,
      policies: [own],
      principal: 'root',
      options: {},
    }
    expect(shard.ask(command)).toMatchObject({ kind: 'reply', status: 202 })
    expect(headSeq(zone)).toBe(1)
    expect(replyOf(shard.ask({ kind: 'policiesGet', agent: zone })).policies).toEqual([])
  })

  it('is refused if the agent does not exist', () => {
    expect(codeOf(shard.ask({ ...setPolicies(own), agent: 'none' } as Command))).toBe('agent_not_found')
    expect(codeOf(shard.ask({ kind: 'policiesGet', agent: 'none' }))).toBe('agent_not_found')
  })
})

describe('a user’s write', () => {
  beforeEach(() => void shard.ask(setPolicies(own)))

  it('is accepted if a policy allows the new body, and otherwise appends nothing', () => {
    expect(codeOf(shard.ask(append({ owner: 'usr_ann', n: 1 }, ann)))).toBe('reply')
    const before = headSeq()
    expect(codeOf(shard.ask(append({ owner: 'usr_bob', n: 2 }, ann)))).toBe('forbidden')
    expect(codeOf(shard.ask(append({ n: 3 }, ann)))).toBe('forbidden')
    const one: Command = {
      kind: 'ingestOne',
      agent: 'notes',
      body: Buffer.from('{"n":4}'),
      options: {},
      access: ann,
    }
    expect(codeOf(shard.ask(one))).toBe('forbidden')
    expect(headSeq()).toBe(before)
  })

  it('creates no agent, and gets the same answer for a missing agent as for one without policies', () => {
    for (const agent of ['none', 'bare']) {
      const access = ann
      const body = Buffer.from('{"data":{"owner":"usr_ann"}}')
      const collection: Command = { kind: 'recordAppend', agent, emerge: true, body, options: {}, access }
      const many: Command = {
        kind: 'batchAppend',
        agent,
        emerge: true,
        body: Buffer.from('{"records":[{"data":{"owner":"usr_ann"}}]}'),
        options: {},
        access,
      }
      const ingest: Command = { kind: 'ingestOne', agent, body, options: {}, access }
      const refused = [collection, many, ingest].map((command) => shard.ask(command))
      for (const outcome of refused) {
        expect(outcome).toEqual({
          code: 'forbidden',
          detail: 'No row policy of the agent allows this',
        })
      }
    }
    expect(shard.store.agents.find('none')).toBeUndefined()
    expect(headSeq('bare')).toBe(0)
  })

  it('is refused as a whole atomic batch for one record, with its pointer', () => {
    const before = headSeq()
    const mixed = [{ owner: 'usr_ann' }, { owner: 'usr_bob' }, { owner: 'usr_ann' }]
    const outcome = shard.ask(batch(mixed, { atomic: true, access: ann }))
    expect(outcome).toMatchObject({
      code: 'forbidden',
      faults: [{ pointer: '/records/1/data', code: 'forbidden' }],
    })
    expect(headSeq()).toBe(before)
    const { results } = replyOf(shard.ask(batch(mixed, { atomic: false, access: ann })))
    expect(results[1]).toEqual({ error: { code: 'forbidden', detail: expect.any(String) } })
    expect([results[0].seq, results[2].seq]).toEqual([before + 1, before + 2])
    const none = [{ owner: 'usr_bob' }, {}]
    expect(codeOf(shard.ask(batch(none, { atomic: false, access: ann })))).toBe('forbidden')
    expect(headSeq()).toBe(before + 2)
  })

  it('is judged line by line if it is sent as lines', () => {
    const chunk = lines({ owner: 'usr_ann' }, { owner: 'usr_bob' }, { owner: 'usr_ann' })
    const command: Command = {
      kind: 'ingestChunk',
      agent: 'notes',
      chunk,
      firstLine: 1,
      mode: 'skip',
      options: {},
      access: ann,
    }
    const before = headSeq()
    const expected = { accepted: 2, rejected: 1, faults: ['2 forbidden'] }
    expect(ingested({ ...command, mode: 'check' })).toEqual(expected)
    expect(ingested({ ...command, mode: 'reject' })).toEqual(expected)
    expect(headSeq()).toBe(before)
    expect(ingested(command)).toEqual(expected)
    expect(headSeq()).toBe(before + 2)
    expect(ingested({ ...command, agent: 'bare' })).toBe('forbidden')
    expect(ingested({ ...command, agent: 'none' })).toBe('forbidden')
    expect(shard.store.agents.find('none')).toBeUndefined()
  })

  it('is judged by the policies of each agent that its lines name', () => {
    const command: Command = {
      kind: 'ingestChunk',
      agent: '',
      chunk: lines(
        { agent: 'notes', data: { owner: 'usr_ann' } },
        { agent: 'bare', data: { owner: 'usr_ann' } },
        { agent: 'none', data: { owner: 'usr_ann' } },
        { agent: 'notes', data: { owner: 'usr_bob' } },
        { agent: 'notes', data: 1 },
      ),
      firstLine: 1,
      lineNumbers: [1, 2, 3, 4, 5],
      mode: 'skip',
      options: {},
      access: ann,
    }
    const faults = ['2 forbidden', '3 forbidden', '4 forbidden', '5 validation_failed']
    expect(ingested(command)).toEqual({ accepted: 1, rejected: 4, faults })
    expect(shard.store.agents.find('none')).toBeUndefined()
  })

  it('reveals the head for a stale If-Match only if the user has a read policy', () => {
    const stale: Command = {
      ...append({ owner: 'usr_ann' }, ann),
      options: { ifMatch: '0'.repeat(64) },
    } as Command
    const extra = { chain_head: expect.stringMatching(/^[0-9a-f]{64}$/) }
    expect(shard.ask(stale)).toMatchObject({ code: 'head_mismatch', extra })
    shard.ask(setPolicies({ ...own, actions: ['write'] }))
    const outcome = shard.ask(stale)
    expect(outcome).toMatchObject({ code: 'head_mismatch' })
    expect(JSON.stringify(outcome)).not.toMatch(/[0-9a-f]{64}/)
    shard.ask(setPolicies({ ...own, actions: ['read'] }))
    expect(codeOf(shard.ask(stale))).toBe('forbidden')
  })

  it('is replayed under its Idempotency-Key even if the claims have changed', () => {
    const write = { ...append({ owner: 'usr_ann' }, ann), options: keyed('k') } as Command
    const first = replyOf(shard.ask(write))
    const newer = user('usr_ann', { app_metadata: { role: 'x' } })
    const again = shard.ask({ ...write, access: newer } as Command)
    expect(again).toMatchObject({ kind: 'reply', replayed: true })
    expect(replyOf(again)).toEqual(first)
  })
})

describe('a user’s read', () => {
  let ofAnn: string
  let ofBob: string

  beforeEach(() => {
    shard.ask(setPolicies(own))
    ofAnn = hashOf(append({ owner: 'usr_ann', n: 1 }))
    ofBob = hashOf(append({ owner: 'usr_bob', n: 2 }))
    hashOf(append({ n: 3 }))
  })

  it('finds only records that a policy shows', () => {
    expect(replyOf(shard.ask(get(ofAnn, ann))).payload.n).toBe(1)
    expect(shard.ask(get(ofBob, ann))).toEqual(shard.ask(get(ofBob, user('usr_eve'))))
    expect(codeOf(shard.ask(get(ofBob, ann)))).toBe('record_not_found')
    expect(codeOf(shard.ask(get('0'.repeat(64), ann)))).toBe('record_not_found')
    expect(shown(ann)).toEqual([1])
    expect(shown(bob, { order: 'desc' })).toEqual([2])
    expect(shown(user('usr_eve'))).toEqual([])
  })

  it('returns records of the server only if a policy names their types', () => {
    const everything: Policy = { actions: ['read'], conditions: [] }
    const genesis = shard.store.agents.find('notes')?.strand ?? ''
    for (const policy of [own, everything, { ...everything, types: ['*'] }]) {
      shard.ask(setPolicies(policy))
      expect(shown(ann, { types: ['sys/*'] })).toEqual([])
      expect(codeOf(shard.ask(get(genesis, ann)))).toBe('record_not_found')
      const locate: Command = { kind: 'strandLocate', agent: 'notes', hash: genesis, access: ann }
      expect(codeOf(shard.ask(locate))).toBe('record_not_found')
    }
    shard.ask(setPolicies({ ...everything, types: ['sys/*'] }))
    expect(shown(ann, { types: ['sys/*'] })).toHaveLength(6)
    expect(codeOf(shard.ask(get(genesis, ann)))).toBe('reply')
    expect(shown(ann)).toEqual([])
    shard.ask(setPolicies(everything))
    expect(shown(ann)).toEqual([1, 2, 3])
  })

  it('differs from a write, which needs a policy that names the type of the record', () => {
    shard.ask(setPolicies({ actions: ['write'], conditions: [], types: ['note/*'] }))
    const typed = (type: string): Command => {
      const body = Buffer.from(JSON.stringify({ data: {}, type }))
      return { kind: 'recordAppend', agent: 'notes', emerge: false, body, options: {}, access: ann }
    }
    const written = ['note/a', 'record', 'auth/login'].map((type) => codeOf(shard.ask(typed(type))))
    expect(written).toEqual(['reply', 'forbidden', 'reserved_type'])
  })

  it('finds only matches of its conditions that a policy shows', () => {
    const where = [{ field: 'n', op: 'gt', value: 0 }]
    expect(shown(ann, { where })).toEqual([1])
    expect(shown(ann, { where: [{ field: 'owner', op: 'eq', value: 'usr_bob' }] })).toEqual([])
  })

  it('excludes deleted records from pages, but not as of a moment before the deletion', () => {
    const head = replyOf(shard.ask({ kind: 'agentHead', agent: 'notes' }))
    const [ms = '', counter = ''] = head.timestamp_hlc.split('-')
    const to = { ms: Number.parseInt(ms, 16), counter: Number.parseInt(counter, 16) }
    shard.nowMs += 1_000
    expect(codeOf(shard.ask(mutate('delete', ofAnn, ann)))).toBe('reply')
    expect(shown(ann)).toEqual([])
    expect(shown(ann, { to })).toEqual([1])
    expect(shown(bob, { to })).toEqual([2])
    expect(replyOf(shard.ask(get(ofAnn, ann))).deleted).toBe(true)
  })

  it('requires a read policy for the head, the status or the location of a strand', () => {
    for (const kind of ['agentHead', 'agentStatus', 'strandLocate'] as const) {
      expect(codeOf(shard.ask({ kind, agent: 'notes', access: bob }))).not.toBe('forbidden')
      expect(codeOf(shard.ask({ kind, agent: 'bare', access: bob }))).toBe('forbidden')
      expect(codeOf(shard.ask({ kind, agent: 'none', access: bob }))).toBe('forbidden')
    }
    shard.ask(setPolicies({ ...own, actions: ['write', 'delete'] }))
    for (const kind of ['agentHead', 'agentStatus', 'strandLocate'] as const) {
      expect(codeOf(shard.ask({ kind, agent: 'notes', access: ann }))).toBe('forbidden')
    }
    expect(codeOf(shard.ask(get(ofAnn, ann)))).toBe('forbidden')
    const query: Command = { kind: 'recordQuery', agent: 'notes', order: 'asc', limit: 1, access: ann }
    expect(codeOf(shard.ask(query))).toBe('forbidden')
  })

  it('gets the same refusal for an agent without policies as for a missing one', () => {
    expect(shard.ask(get(ofAnn, ann, 'bare'))).toEqual(shard.ask(get(ofAnn, ann, 'none')))
    expect(codeOf(shard.ask(get(ofAnn, ann, 'bare')))).toBe('forbidden')
  })

  it('locates the records that a policy shows, and returns the grant', () => {
    const locate: Command = { kind: 'strandLocate', agent: 'notes', access: ann }
    const located = shard.ask(locate)
    if (located.kind !== 'located' || located.readable === undefined) throw new Error('Expected a grant')
    expect(resolveGrant(JSON.parse(located.readable.text))).toEqual([
      { conditions: [{ field: 'owner', op: 'eq', value: 'usr_ann' }] },
    ])
    expect(codeOf(shard.ask({ ...locate, hash: ofAnn }))).toBe('located')
    expect(codeOf(shard.ask({ ...locate, hash: ofBob }))).toBe('record_not_found')
    expect(shard.ask({ kind: 'strandLocate', agent: 'notes' })).not.toHaveProperty('readable')
  })
})

describe('a user’s delete and restore', () => {
  let ofAnn: string
  let ofBob: string

  beforeEach(() => {
    ofAnn = hashOf(append({ owner: 'usr_ann', team: 'a', n: 1 }))
    ofBob = hashOf(append({ owner: 'usr_bob', team: 'a', n: 2 }))
  })

  it('requires a delete policy that allows the record', () => {
    shard.ask(setPolicies(own))
    expect(codeOf(shard.ask(mutate('restore', ofAnn, ann)))).toBe('not_deleted')
    expect(codeOf(shard.ask(mutate('delete', ofAnn, ann)))).toBe('reply')
    expect(codeOf(shard.ask(mutate('delete', ofAnn, ann)))).toBe('already_deleted')
    expect(codeOf(shard.ask(mutate('restore', ofAnn, ann)))).toBe('reply')
  })

  it('is not allowed by other policies', () => {
    shard.ask(setPolicies({ ...own, actions: ['write'] }))
    expect(codeOf(shard.ask(mutate('delete', ofAnn, ann)))).toBe('forbidden')
    expect(codeOf(shard.ask(mutate('delete', '0'.repeat(64), ann)))).toBe('forbidden')
    shard.ask(setPolicies({ ...own, actions: ['delete'] }))
    expect(codeOf(shard.ask(append({ owner: 'usr_ann' }, ann)))).toBe('forbidden')
    expect(codeOf(shard.ask(mutate('delete', ofBob, ann)))).toBe('record_not_found')
    expect(codeOf(shard.ask(mutate('delete', ofAnn, ann)))).toBe('reply')
  })

  it('returns 403 for a record that the user can read, and 404 for one that it cannot', () => {
    const team: Policy = { actions: ['read'], conditions: [{ field: 'team', op: 'eq', value: 'a' }] }
    shard.ask(setPolicies(own, team))
    const before = headSeq()
    expect(codeOf(shard.ask(mutate('delete', ofBob, ann)))).toBe('forbidden')
    expect(codeOf(shard.ask(mutate('restore', ofBob, ann)))).toBe('forbidden')
    shard.ask(setPolicies(own))
    const hidden = shard.ask(mutate('delete', ofBob, ann))
    expect(hidden).toMatchObject({ code: 'record_not_found' })
    shard.ask(setPolicies(team))
    expect(codeOf(shard.ask(mutate('delete', ofAnn, ann)))).toBe('forbidden')
    expect(headSeq()).toBe(before + 2)
  })
})

describe('policies that are large with the claims of a user', () => {
  const names = Array.from({ length: 20 }, (_none, n) => `$jwt.user_metadata${'.a'.repeat(n + 1)}`)
  const deep = (depth: number): unknown => (depth === 0 ? 'x'.repeat(8_000) : { a: deep(depth - 1) })
  const nested: Policy = {
    actions: ['read', 'write', 'delete'],
    conditions: names.map((value) => ({ field: 'a', op: 'ne', value })),
  }
  const large = user('usr_ann', { user_metadata: deep(20) as PolicyClaims['user_metadata'] })

  it('are refused if the claims of a user could make them too large, and change nothing', () => {
    const before = headSeq()
    const faults = [{ pointer: '/policies', code: 'validation_failed' }]
    expect(shard.ask(setPolicies(nested))).toMatchObject({ code: 'validation_failed', faults })
    expect(headSeq()).toBe(before)
    // Each claim counts once, however many conditions name it.
    const named = (value: unknown): Policy => ({
      actions: ['read'],
      conditions: Array.from({ length: 32 }, () => ({ field: 'a', op: 'eq', value })),
    })
    const policies = Array.from({ length: 16 }, () => named('$jwt.app_metadata.tenant'))
    expect(codeOf(shard.ask(setPolicies(...policies)))).toBe('reply')
  })

  it('give no access: 403 grant_too_large to reads, writes, deletions, streams and exports', async () => {
    const hash = hashOf(append({ a: 1 }))
    // Such policies can exist from before the bound, or from a time with a lower limit of metadata.
    shard.auth = { ...testAuthRules, metadataBytesMax: 16 }
    await shard.reopen()
    expect(codeOf(shard.ask(setPolicies(nested)))).toBe('reply')
    const before = headSeq()
    const access = large
    const chunk = lines({ a: 1 })
    const one: Command = {
      kind: 'ingestOne',
      agent: 'notes',
      body: Buffer.from('{"a":1}'),
      options: {},
      access,
    }
    const line = { kind: 'ingestChunk', agent: 'notes', chunk, firstLine: 1, options: {}, access } as const
    const outcomes = [
      append({ a: 1 }, access),
      one,
      batch([{ a: 1 }], { atomic: true, access }),
      get(hash, access),
      { kind: 'recordQuery' as const, agent: 'notes', order: 'asc' as const, limit: 1, access },
      mutate('delete', hash, access),
      { kind: 'strandLocate' as const, agent: 'notes', access },
    ].map((command) => codeOf(shard.ask(command)))
    expect(outcomes).toEqual(outcomes.map(() => 'grant_too_large'))
    expect(ingested({ ...line, mode: 'skip' })).toEqual({
      accepted: 0,
      rejected: 1,
      faults: ['1 grant_too_large'],
    })
    expect(headSeq()).toBe(before)
    expect(codeOf(shard.ask(append({ a: 1 }, ann)))).toBe('forbidden')
  })

  it('contain each claim once when they are sent, however often they name it', async () => {
    const long = user('usr_ann', { user_metadata: { a: 'x'.repeat(4_000) } })
    const many = Array.from({ length: 3 }, (): Policy => {
      return {
        actions: ['read'],
        conditions: [
          { field: 'a', op: 'in', value: Array.from({ length: 800 }, () => '$jwt.user_metadata.a') },
        ],
      }
    })
    expect(codeOf(shard.ask(setPolicies(...many)))).toBe('reply')
    const located = shard.ask({ kind: 'strandLocate', agent: 'notes', access: long })
    if (located.kind !== 'located') throw new Error('Expected a location')
    expect(located.readable?.text.length).toBeLessThan(limits.grantBytesMax)
    expect(located.readable?.text.split('x'.repeat(4_000))).toHaveLength(2)
  })
})

describe('claims in conditions', () => {
  const policy = (value: unknown, op: 'eq' | 'ne' | 'in' | 'gte' = 'eq'): Policy => ({
    actions: ['read', 'write'],
    conditions: [{ field: 'team', op, value }],
  })
  const inTeam = (team: unknown) => user('usr_ann', { app_metadata: { team } })
  const outcomeOf = (access: UserAccess, team: unknown) => codeOf(shard.ask(append({ team }, access)))

  it('match only within one JSON type, and objects by their members', () => {
    shard.ask(setPolicies(policy('$jwt.app_metadata.team')))
    expect(outcomeOf(inTeam({ id: 1, of: ['x'] }), { of: ['x'], id: 1 })).toBe('reply')
    expect(outcomeOf(inTeam({ id: 1 }), { id: 1, of: ['x'] })).toBe('forbidden')
    expect(outcomeOf(inTeam(1), 1)).toBe('reply')
    expect(outcomeOf(inTeam(1), '1')).toBe('forbidden')
    expect(outcomeOf(inTeam(null), null)).toBe('reply')
  })

  it('never match if they are missing, for ne as for eq', () => {
    shard.ask(setPolicies(policy('$jwt.app_metadata.team', 'ne')))
    expect(outcomeOf(inTeam('b'), 'a')).toBe('reply')
    expect(outcomeOf(inTeam('b'), 1)).toBe('forbidden')
    expect(outcomeOf(inTeam('b'), undefined)).toBe('forbidden')
    expect(outcomeOf(ann, 'a')).toBe('forbidden')
    // The agent has a read policy, so only its records are hidden, not the agent.
    expect(codeOf(shard.ask(get('0'.repeat(64), ann)))).toBe('record_not_found')
  })

  it('match as lists', () => {
    shard.ask(setPolicies(policy('$jwt.app_metadata.team', 'in')))
    expect(outcomeOf(inTeam(['a', 'b']), 'b')).toBe('reply')
    expect(outcomeOf(inTeam(['a', 'b']), 'c')).toBe('forbidden')
    expect(outcomeOf(inTeam('b'), 'b')).toBe('forbidden')
  })

  it('are compared as numbers only with numbers', () => {
    shard.ask(setPolicies(policy('$jwt.app_metadata.team', 'gte')))
    expect(outcomeOf(inTeam(2), 2)).toBe('reply')
    expect(outcomeOf(inTeam(2), '3')).toBe('forbidden')
    expect(outcomeOf(inTeam([2]), 3)).toBe('forbidden')
  })

  it('do not include inherited members', () => {
    shard.ask(setPolicies(policy('$jwt.app_metadata.constructor')))
    expect(outcomeOf(ann, 'x')).toBe('forbidden')
    shard.ask(
      setPolicies({ actions: ['write'], conditions: [{ field: 'constructor', op: 'exists', value: true }] }),
    )
    expect(outcomeOf(ann, 'x')).toBe('forbidden')
  })
})
