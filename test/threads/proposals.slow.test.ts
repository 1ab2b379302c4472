import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Command, CommandOf } from '../../src/protocol/messages.js'
import { verifyText } from '../support/proof/verify-text.js'
import { rotationProofText } from '../../src/strand/header.js'
import type { Zone } from '../../src/strand/zone.js'
import { checkStore } from '../../workers/store/check/store-check.js'
import { recordsFrom } from '../../workers/store/tables/records.js'
import { copyStore } from '../../workers/store/row-mover.js'
import { TestShard, appendNumber, codeOf, keyed, replyOf } from '../support/shard/shard.js'

const MINUTE_MS = 60_000
const WEEK_MS = 7 * 86_400_000

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})

afterEach(() => shard.remove())

/** Creates an agent in a zone. @returns its name */
function agentIn(zone: Zone, name: string = zone): string {
  replyOf(shard.ask({ kind: 'agentCreate', agent: name, zone, options: {} }))
  return name
}

function write(agent: string, n = 1): string {
  return replyOf(shard.ask({ ...appendNumber(agent, n), emerge: false })).record_id
}

const mutate = (action: 'delete' | 'restore' | 'erase', [agent, hash]: [string, string], principal = 'ann') =>
  ({ kind: 'recordMutate', agent, action, hash, principal, options: {} }) as const

const setZone = (agent: string, zone: Zone, principal = 'ann'): Command => ({
  kind: 'agentZoneSet',
  agent,
  zone,
  principal,
  options: {},
})

const rotate = (agent: string, seed?: Uint8Array): Command => ({
  kind: 'agentKeyRotate',
  agent,
  principal: 'ann',
  options: {},
  ...(seed !== undefined && { seed }),
})

/** A vote on a proposal by its id. */
function vote(
  id: string,
  how: 'approve' | 'reject' | 'cancel',
  principal = 'bob',
): CommandOf<'proposalDecide'> {
  const [, seq, agent] = /^p_(\d+)_(.+)$/.exec(id) ?? []
  if (seq === undefined || agent === undefined) throw new Error(`Expected a proposal_id, got ${id}`)
  return { kind: 'proposalDecide', agent, seq: Number(seq), vote: how, principal, admin: false, options: {} }
}

/** A vote by a key with `admin:*`. */
function adminVote(...options: Parameters<typeof vote>): Command {
  return { ...vote(...options), admin: true }
}

const sweep: CommandOf<'proposalsSweep'> = { kind: 'proposalsSweep', options: {} }

function proposals(state?: 'proposed' | 'applied'): { proposal_id: string; state: string }[] {
  const listed = shard.ask({
    kind: 'proposalList',
    keys: false,
    limit: 100,
    ...(state !== undefined && { state }),
  })
  if (listed.kind !== 'proposals') throw new Error('Expected proposals')
  return listed.rows.map((row) => JSON.parse(row))
}

/** The types and bodies of the records of a strand, without the genesis record. */
function story(agent: string): [type: string, body: Record<string, unknown>][] {
  const { no } = shard.store.agents.find(agent) ?? { no: -1 }
  const records = [...recordsFrom(shard.environment, no, { fromSeq: 1, order: 'asc' })]
  return records.map(({ type, body }) => [type, JSON.parse(Buffer.from(body).toString())])
}

const types = (agent: string) => story(agent).map(([type]) => type)
const isDeleted = (agent: string, hash: string) =>
  replyOf(shard.ask({ kind: 'recordGet', agent, hash })).deleted
const headSeq = (agent: string) => replyOf(shard.ask({ kind: 'agentHead', agent })).seq

describe('a page of proposals', () => {
  it('ends at its limit of bytes, and the next page continues after the last proposal', () => {
    const condition = (n: number) => ({ field: `f${n}`, op: 'eq' as const, value: 'x'.repeat(1_900) })
    const conditions = Array.from({ length: 30 }, (_, n) => condition(n))
    for (let n = 0; n < 30; n++) {
      const agent = `many${n}`
      replyOf(shard.ask({ kind: 'agentCreate', agent, zone: 'protected', options: {} }))
      const policies = [{ actions: ['read' as const], conditions }]
      shard.ask({ kind: 'policiesSet', agent, policies, principal: 'root', options: {} })
    }
    const first = shard.ask({ kind: 'proposalList', keys: true, limit: 1_000 })
    if (first.kind !== 'proposals' || first.next === undefined) throw new Error('Expected more')
    const after = { ...first.next, seq: first.next.seq + 1 }
    const second = shard.ask({ kind: 'proposalList', keys: true, limit: 1_000, after })
    if (second.kind !== 'proposals') throw new Error('Expected proposals')
    expect(second.next).toBeUndefined()
    expect(first.rows.length + second.rows.length).toBe(30)
  })
})

describe('zone free', () => {
  it('applies mutations immediately, and their records name the principal', () => {
    const agent = agentIn('free')
    const hash = write(agent)
    expect(replyOf(shard.ask(mutate('delete', [agent, hash])))).toEqual({
      record_id: hash,
      state: 'deleted',
      seq: 2,
    })
    expect(story(agent).at(-1)).toEqual(['sys/tombstone', { target: hash, target_seq: 1, principal: 'ann' }])
    expect(replyOf(shard.ask(setZone(agent, 'governed')))).toMatchObject({ zone: 'governed', seq: 3 })
    expect(story(agent).at(-1)).toEqual(['sys/zone', { zone: 'governed', from: 'free', principal: 'ann' }])
    expect(codeOf(shard.ask(mutate('restore', [agent, hash])))).toBe('reply')
    expect(proposals('proposed')).toHaveLength(1)
  })
})

describe('zone governed', () => {
  it('applies a proposal when it is due, and not a millisecond earlier', () => {
    const agent = agentIn('governed')
    const hash = write(agent)
    const answer = replyOf(shard.ask(mutate('delete', [agent, hash])))
    expect(answer).toEqual({
      proposal_id: `p_2_${agent}`,
      state: 'proposed',
      effective_at_ms: shard.nowMs + MINUTE_MS,
    })
    shard.nowMs += MINUTE_MS - 1
    expect(shard.ask(sweep)).toEqual({ kind: 'swept', left: false })
    expect(isDeleted(agent, hash)).toBe(false)
    shard.nowMs += 1
    shard.ask(sweep)
    expect(isDeleted(agent, hash)).toBe(true)
    expect(proposals()).toMatchObject([{ state: 'applied', ended_at_ms: shard.nowMs, votes: [] }])
    const commits = shard.commits
    shard.ask(sweep)
    expect(shard.commits).toBe(commits)
  })

  it('records every step on the strand: the principal, the zone and the result', () => {
    const agent = agentIn('governed')
    const hash = write(agent)
    const createdAtMs = shard.nowMs
    shard.ask(mutate('delete', [agent, hash], 'user::usr_1'))
    shard.nowMs += MINUTE_MS
    shard.ask({ ...sweep, standings: [{ principal: 'user::usr_1', valid: true }] })
    const [, proposal, tombstone, applied] = story(agent).map(([, body]) => body)
    expect(types(agent)).toEqual(['record', 'sys/proposal', 'sys/tombstone', 'sys/applied'])
    expect(proposal).toEqual({
      action: 'delete',
      target: hash,
      target_seq: 1,
      principal: 'user::usr_1',
      in_zone: 'governed',
      effective_at_ms: createdAtMs + MINUTE_MS,
      expires_at_ms: createdAtMs + WEEK_MS,
    })
    expect(tombstone).toMatchObject({ target: hash, principal: 'user::usr_1', proposal_seq: 2 })
    expect(applied).toMatchObject({ proposal_seq: 2, state: 'applied', effect_seq: 3 })
  })

  it('ends a proposal after one rejection, and applies it early after an approval by another principal', () => {
    const agent = agentIn('governed')
    const [rejected, approved] = [write(agent), write(agent, 2)]
    const first = replyOf(shard.ask(mutate('delete', [agent, rejected]))).proposal_id
    const second = replyOf(shard.ask(mutate('delete', [agent, approved]))).proposal_id
    expect(replyOf(shard.ask(vote(first, 'reject')))).toMatchObject({ state: 'rejected', reason: null })
    expect(replyOf(shard.ask(vote(second, 'approve')))).toMatchObject({ state: 'applied' })
    shard.nowMs += MINUTE_MS
    shard.ask(sweep)
    expect([isDeleted(agent, rejected), isDeleted(agent, approved)]).toEqual([false, true])
  })

  it('allows one open proposal about a record, and another once that has ended', () => {
    const agent = agentIn('governed')
    const hash = write(agent)
    const [first, second] = shard.run(mutate('delete', [agent, hash]), mutate('delete', [agent, hash]))
    const id = replyOf(first).proposal_id
    expect(second).toMatchObject({ code: 'proposal_open', extra: { proposal_id: id } })
    expect(codeOf(shard.ask(mutate('delete', [agent, hash])))).toBe('proposal_open')
    const [cancelled, next] = shard.run(vote(id, 'cancel', 'ann'), mutate('erase', [agent, hash]))
    expect(replyOf(cancelled).state).toBe('cancelled')
    expect(codeOf(next)).toBe('reply')
    expect(codeOf(shard.ask(mutate('delete', [agent, hash])))).toBe('proposal_open')
  })

  it('answers a retry under its Idempotency-Key with the first proposal', () => {
    const agent = agentIn('governed')
    const hash = write(agent)
    const command = { ...mutate('delete', [agent, hash]), options: keyed('once') }
    const [first, second] = shard.run(command, command)
    expect(replyOf(second)).toEqual(replyOf(first))
    expect(types(agent)).toEqual(['record', 'sys/proposal'])
  })

  it('refuses mutations that would change nothing, and appends nothing', () => {
    const agent = agentIn('governed')
    const hash = write(agent)
    expect(codeOf(shard.ask(mutate('restore', [agent, hash])))).toBe('not_deleted')
    expect(codeOf(shard.ask(mutate('delete', [agent, '0'.repeat(64)])))).toBe('record_not_found')
    expect(headSeq(agent)).toBe(1)
  })
})

describe('a proposal whose target has changed', () => {
  it('ends as rejected, with the reason on the strand', () => {
    const agent = agentIn('governed')
    const hash = write(agent)
    replyOf(shard.ask(mutate('delete', [agent, hash])))
    const zone = replyOf(shard.ask(setZone(agent, 'free'))).proposal_id
    replyOf(shard.ask(vote(zone, 'approve')))
    expect(proposals()).toMatchObject([
      { action: 'delete', state: 'rejected', reason: 'zone_changed' },
      { action: 'zone', state: 'applied' },
    ])
    expect(types(agent).slice(-4)).toEqual(['sys/vote', 'sys/zone', 'sys/applied', 'sys/applied'])
    expect(story(agent).at(-1)?.[1]).toMatchObject({ state: 'rejected', reason: 'zone_changed' })
    shard.nowMs += MINUTE_MS
    shard.ask(sweep)
    expect(isDeleted(agent, hash)).toBe(false)
    expect(replyOf(shard.ask(mutate('delete', [agent, hash]))).state).toBe('deleted')
  })
})

describe('zone protected', () => {
  it('requires an approval by another principal than the proposer', () => {
    const agent = agentIn('protected')
    const hash = write(agent)
    const { proposal_id: id, effective_at_ms: effective } = replyOf(
      shard.ask(mutate('delete', [agent, hash])),
    )
    expect(effective).toBeNull()
    expect(codeOf(shard.ask(adminVote(id, 'approve', 'ann')))).toBe('forbidden')
    shard.nowMs += WEEK_MS - 1
    shard.ask(sweep)
    expect(isDeleted(agent, hash)).toBe(false)
    expect(replyOf(shard.ask(vote(id, 'approve')))).toMatchObject({
      state: 'applied',
      votes: [{ principal: 'bob', vote: 'approve', at_ms: shard.nowMs }],
    })
    expect(isDeleted(agent, hash)).toBe(true)
    expect(types(agent)).toEqual(['record', 'sys/proposal', 'sys/vote', 'sys/tombstone', 'sys/applied'])
  })

  it('commits approval, effect and end together', () => {
    const agent = agentIn('protected')
    const id = replyOf(shard.ask(mutate('delete', [agent, write(agent)]))).proposal_id
    const commits = shard.commits
    shard.ask(vote(id, 'approve'))
    expect(shard.commits).toBe(commits + 1)
  })

  it('lets a proposal expire after 7 days, and refuses later votes', () => {
    const agent = agentIn('protected')
    const hash = write(agent)
    const id = replyOf(shard.ask(mutate('delete', [agent, hash]))).proposal_id
    shard.nowMs += WEEK_MS
    const late = shard.ask(vote(id, 'approve'))
    expect(late).toMatchObject({ code: 'proposal_closed', extra: { state: 'expired' } })
    shard.ask(sweep)
    expect(proposals()).toMatchObject([{ state: 'expired' }])
    expect(story(agent).at(-1)).toMatchObject(['sys/applied', { state: 'expired', proposal_seq: 2 }])
    expect(isDeleted(agent, hash)).toBe(false)
  })

  it('lets only the proposer and an admin cancel', () => {
    const agent = agentIn('protected')
    const [first, second] = [write(agent), write(agent, 2)].map(
      (hash) => replyOf(shard.ask(mutate('delete', [agent, hash]))).proposal_id,
    )
    expect(codeOf(shard.ask(vote(first, 'cancel', 'bob')))).toBe('forbidden')
    expect(codeOf(shard.ask(vote(first, 'cancel', 'user::usr_2')))).toBe('proposal_not_found')
    expect(replyOf(shard.ask(vote(first, 'cancel', 'ann'))).state).toBe('cancelled')
    expect(replyOf(shard.ask(adminVote(second, 'cancel', 'root'))).state).toBe('cancelled')
    expect(codeOf(shard.ask(vote(first, 'approve')))).toBe('proposal_closed')
    expect(codeOf(shard.ask(vote('p_99_protected', 'approve')))).toBe('proposal_not_found')
    expect(codeOf(shard.ask(vote('p_99_missing', 'approve')))).toBe('proposal_not_found')
  })

  it('applies a proposal once for concurrent approvals', () => {
    const agent = agentIn('protected')
    const id = replyOf(shard.ask(mutate('delete', [agent, write(agent)]))).proposal_id
    const outcomes = shard.run(...['b', 'c', 'd'].map((name) => vote(id, 'approve', name)))
    expect(outcomes.map(codeOf)).toEqual(['reply', 'proposal_closed', 'proposal_closed'])
    expect(types(agent).filter((type) => type === 'sys/tombstone')).toHaveLength(1)
  })
})

describe('zone immutable_core', () => {
  it('always refuses mutations of records', () => {
    const agent = agentIn('immutable_core')
    const hash = write(agent)
    for (const action of ['delete', 'restore', 'erase'] as const) {
      expect(codeOf(shard.ask(mutate(action, [agent, hash])))).toBe('zone_immutable')
    }
    expect(headSeq(agent)).toBe(1)
  })

  it('changes its zone after approvals by two different admins, neither of them the proposer', () => {
    const agent = agentIn('immutable_core')
    const id = replyOf(shard.ask(setZone(agent, 'protected', 'root'))).proposal_id
    expect(codeOf(shard.ask(vote(id, 'approve', 'bob')))).toBe('forbidden')
    expect(codeOf(shard.ask(adminVote(id, 'approve', 'root')))).toBe('forbidden')
    expect(replyOf(shard.ask(adminVote(id, 'approve', 'admin-1'))).state).toBe('proposed')
    expect(codeOf(shard.ask(adminVote(id, 'approve', 'admin-1')))).toBe('already_voted')
    expect(replyOf(shard.ask({ kind: 'agentStatus', agent })).zone).toBe('immutable_core')
    expect(replyOf(shard.ask(adminVote(id, 'approve', 'admin-2'))).state).toBe('applied')
    expect(replyOf(shard.ask({ kind: 'agentStatus', agent })).zone).toBe('protected')
    expect(types(agent)).toEqual(['sys/proposal', 'sys/vote', 'sys/vote', 'sys/zone', 'sys/applied'])
  })
})

describe('due times of proposals', () => {
  it('survive a restart, and the first sweep applies proposals that became due in the meantime', async () => {
    const agent = agentIn('governed')
    const hash = write(agent)
    shard.ask(mutate('delete', [agent, hash]))
    shard.nowMs += 10 * MINUTE_MS
    await shard.reopen()
    expect(isDeleted(agent, hash)).toBe(false)
    shard.ask(sweep)
    expect(isDeleted(agent, hash)).toBe(true)
    await shard.reopen()
    expect(isDeleted(agent, hash)).toBe(true)
    expect(proposals('applied')).toHaveLength(1)
  })

  it('are neither early nor lost if the clock is set back, also after a restart', async () => {
    const agent = agentIn('governed')
    const hash = write(agent)
    shard.ask(mutate('delete', [agent, hash]))
    const dueMs = shard.nowMs + MINUTE_MS
    shard.nowMs -= 30 * 86_400_000
    shard.ask(sweep)
    await shard.reopen()
    shard.ask(sweep)
    expect(proposals('proposed')).toHaveLength(1)
    shard.nowMs = dueMs
    shard.ask(sweep)
    expect(isDeleted(agent, hash)).toBe(true)
  })

  it('are postponed while the clock is so far behind its records that nothing can be written', () => {
    const agent = agentIn('governed')
    const hash = write(agent)
    shard.ask(mutate('delete', [agent, hash]))
    const dueMs = shard.nowMs + MINUTE_MS
    shard.nowMs += 5 * MINUTE_MS
    write(agent, 2)
    shard.nowMs = dueMs
    expect(shard.ask(sweep)).toEqual({ kind: 'swept', left: false })
    expect(proposals('proposed')).toHaveLength(1)
    shard.nowMs = dueMs + 5 * MINUTE_MS
    shard.ask(sweep)
    expect(isDeleted(agent, hash)).toBe(true)
  })

  it('are processed by several sweeps of bounded size', () => {
    const agent = agentIn('governed')
    const count = 100
    const hashes = Array.from({ length: count }, (_none, n) => write(agent, n))
    shard.run(...hashes.map((hash) => mutate('delete', [agent, hash])))
    shard.nowMs += MINUTE_MS
    expect(shard.ask(sweep)).toEqual({ kind: 'swept', left: true })
    expect(proposals('proposed').length).toBeGreaterThan(0)
    expect(shard.ask(sweep)).toEqual({ kind: 'swept', left: false })
    expect(proposals('applied')).toHaveLength(count)
  })
})

describe('rotating the key of an agent', () => {
  it('is signed by the old key with a proof of the new key, which signs the later records', async () => {
    const agent = agentIn('free')
    const hash = write(agent)
    const before = replyOf(shard.ask({ kind: 'agentStatus', agent }))
    const seed = Buffer.alloc(32, 5)
    const rotated = replyOf(shard.ask(rotate(agent, seed)))
    const [type, body] = story(agent).at(-1) ?? []
    expect(type).toBe('sys/key_rotate')
    expect(body).toMatchObject({ public_key: rotated.public_key, principal: 'ann' })
    const proof = Buffer.from(String(body?.['proof']), 'hex')
    expect(verifyText(rotated.public_key, rotationProofText(before.strand, rotated.public_key), proof)).toBe(
      true,
    )
    await shard.reopen()
    const next = write(agent, 2)
    const shown = [hash, rotated.record_id, next].map(
      (one) => replyOf(shard.ask({ kind: 'recordGet', agent, hash: one })).public_key,
    )
    expect(shown).toEqual([before.public_key, before.public_key, rotated.public_key])
  })

  it('stores a random seed, which survives restarts', async () => {
    const agent = agentIn('free')
    const { public_key: publicKey } = replyOf(shard.ask(rotate(agent)))
    await shard.reopen()
    expect(replyOf(shard.ask({ kind: 'agentStatus', agent })).public_key).toBe(publicKey)
    write(agent)
  })

  it('is refused for a key that the agent had before', () => {
    const agent = agentIn('free')
    const seed = Buffer.alloc(32, 5)
    replyOf(shard.ask(rotate(agent, seed)))
    expect(codeOf(shard.ask(rotate(agent, seed)))).toBe('key_in_use')
    replyOf(shard.ask(rotate(agent)))
    expect(codeOf(shard.ask(rotate(agent, seed)))).toBe('key_in_use')
  })

  it('signs each record of a commit by the key in force for it', async () => {
    const agent = agentIn('free')
    const grouped = { signing: 'group' } as const
    shard.run(
      { ...appendNumber(agent, 1, grouped), emerge: false },
      { ...appendNumber(agent, 2, grouped), emerge: false },
      rotate(agent),
      { ...appendNumber(agent, 3, grouped), emerge: false },
    )
    expect(shard.commits).toBe(2)
    await shard.reopen()
    write(agent, 4)
    expect(types(agent)).toEqual(['record', 'record', 'sys/key_rotate', 'record', 'record'])
  })

  it('stores the sealed seed in the row of its proposal until that ends', () => {
    const agent = agentIn('protected')
    const first = replyOf(shard.ask(rotate(agent))).proposal_id
    const row = () =>
      [...shard.environment.proposals.getRange({})].map(({ value }) => value.toString()).join()
    expect(row()).toContain('sealedSeed')
    shard.ask(vote(first, 'reject'))
    expect(row()).not.toContain('sealedSeed')
    const second = replyOf(shard.ask(rotate(agent))).proposal_id
    expect(replyOf(shard.ask(vote(second, 'approve')))).toMatchObject({
      action: 'rotate_key',
      state: 'applied',
    })
    expect(row()).not.toContain('sealedSeed')
    write(agent)
  })
})

describe('the open proposals about records of one agent', () => {
  let agent: string
  let hashes: string[]
  let next: number

  beforeEach(() => {
    agent = agentIn('protected')
    const writes = Array.from({ length: 1_100 }, (_none, n) => ({ ...appendNumber(agent, n), emerge: false }))
    hashes = shard.run(...writes).map((outcome) => replyOf(outcome).record_id)
    next = 0
  })

  /** Makes proposals by a principal, in one group. @returns the number of accepted ones */
  function accepted(
    count: number,
    by: { principal: string; line?: string },
    action: 'delete' | 'erase' = 'delete',
  ) {
    const commands = Array.from({ length: count }, () => {
      return { ...mutate(action, [agent, hashes[next++] ?? ''], by.principal), ...by }
    })
    const codes = shard.run(...commands).map(codeOf)
    const done = codes.filter((code) => code === 'reply').length
    expect(codes.slice(done)).toEqual(codes.slice(done).map(() => 'overloaded'))
    next -= count - done
    return done
  }

  const users = (n: number) => ({ principal: `user::${n}` })

  it('have quotas, so that neither one user nor all users can block keys', () => {
    expect(accepted(40, users(0))).toBe(32)
    // In a separate group, too.
    expect(accepted(1, users(0))).toBe(0)
    for (let n = 1; n < 12; n++) expect(accepted(32, users(n))).toBe(32)
    expect(accepted(32, users(12))).toBe(16)
    expect(accepted(1, users(13))).toBe(0)
    expect(accepted(501, { principal: 'key_a' })).toBe(500)
    expect(accepted(1, { principal: 'key_child', line: 'key_a' })).toBe(0)
    expect(accepted(1, { principal: 'key_b' })).toBe(0)
    expect(accepted(101, { principal: 'key_b' }, 'erase')).toBe(100)
  })

  it('free their quota when they end', () => {
    expect(accepted(33, users(0))).toBe(32)
    const [first] = proposals('proposed')
    expect(replyOf(shard.ask(vote(first?.proposal_id ?? '', 'reject'))).state).toBe('rejected')
    expect(accepted(2, users(0))).toBe(1)
  })

  it('are bounded, and do not block a change of its zone', () => {
    expect(accepted(500, { principal: 'key_a' }, 'erase')).toBe(500)
    expect(accepted(501, { principal: 'key_b' }, 'erase')).toBe(500)
    expect(accepted(1, { principal: 'key_c' }, 'erase')).toBe(0)
    const zone = replyOf(shard.ask(setZone(agent, 'free'))).proposal_id
    expect(replyOf(shard.ask(vote(zone, 'approve'))).state).toBe('applied')
    expect(proposals('proposed')).toEqual([])
  })
})

describe('the proposer of a proposal that is due or approved', () => {
  const key = 'key_a'
  const user = 'user::usr_1'
  const claims = { sub: 'usr_1', email: 'ann@example.org', app_metadata: {}, user_metadata: {} }
  const everything = [{ actions: ['delete' as const], conditions: [] }]

  function proposed(zone: Zone, principal: string): string {
    const agent = agentIn(zone)
    return replyOf(shard.ask(mutate('delete', [agent, write(agent)], principal))).proposal_id
  }

  it.each([
    ['an existing key', key, { valid: true }, 'applied'],
    ['a deleted key', key, { valid: false }, 'cancelled'],
    ['a user that no longer has a policy', user, { valid: true, claims }, 'rejected'],
    ['a deleted user', user, { valid: false }, 'cancelled'],
  ] as const)('is looked up before it is applied: %s', (...[, principal, standing, state]) => {
    const standings = [{ principal, ...standing }]
    const due = proposed('governed', principal)
    shard.nowMs += MINUTE_MS
    expect(shard.ask(sweep)).toEqual({ kind: 'swept', left: false, authors: [principal] })
    expect(proposals().map((one) => one.state)).toEqual(['proposed'])
    expect(shard.ask({ ...sweep, standings })).toEqual({
      kind: 'swept',
      left: false,
    })
    expect(proposals().find((one) => one.proposal_id === due)?.state).toBe(state)
    const waiting = proposed('protected', principal)
    expect(codeOf(shard.ask(vote(waiting, 'approve')))).toBe('unavailable')
    expect(replyOf(shard.ask({ ...vote(waiting, 'approve'), standings })).state).toBe(state)
  })

  // A sweep applied later proposals by the root key first, and a change of zone then rejected the earlier deletion.
  it('is looked up before later proposals of the same agent are applied; those of other agents do not wait', () => {
    const [agent, other] = [agentIn('governed'), agentIn('governed', 'other')]
    replyOf(shard.ask(mutate('delete', [agent, write(agent)], key)))
    replyOf(shard.ask(setZone(agent, 'free', 'root')))
    replyOf(shard.ask(mutate('delete', [other, write(other)], 'root')))
    shard.nowMs += MINUTE_MS
    expect(shard.ask(sweep)).toEqual({ kind: 'swept', left: false, authors: [key] })
    expect(types(agent).slice(1)).toEqual(['sys/proposal', 'sys/proposal'])
    expect(types(other).slice(1)).toEqual(['sys/proposal', 'sys/tombstone', 'sys/applied'])
    shard.ask({ ...sweep, standings: [{ principal: key, valid: true }] })
    expect(types(agent).slice(3)).toEqual(['sys/tombstone', 'sys/applied', 'sys/zone', 'sys/applied'])
    expect(proposals('applied')).toHaveLength(3)
  })

  it('is protected from approvals by a lineage that could control it, and by the root key unless it is the only admin', () => {
    const agent = agentIn('protected')
    const policies = { kind: 'policiesSet', agent, policies: everything, options: {} } as const
    const { proposal_id: policyProposal } = replyOf(shard.ask({ ...policies, principal: 'root' }))
    expect(replyOf(shard.ask(vote(policyProposal, 'approve'))).state).toBe('applied')
    const standings = [{ principal: user, valid: true, claims, lineages: ['key_maker'] }]
    const id = replyOf(shard.ask(mutate('delete', [agent, write(agent)], user))).proposal_id
    const approve = (principal: string, more: object) =>
      codeOf(shard.ask({ ...vote(id, 'approve', principal), standings, ...more }))
    expect(approve('key_maker', {})).toBe('forbidden')
    expect(approve('key_child', { line: 'key_maker' })).toBe('forbidden')
    expect(approve('root', { otherAdmins: true })).toBe('forbidden')
    expect(approve('root', { otherAdmins: false })).toBe('reply')
  })

  it('loses its proposals and approvals when it is deleted, page by page', () => {
    const agent = agentIn('protected')
    for (let n = 0; n < 70; n++) replyOf(shard.ask(mutate('delete', [agent, write(agent, n)], key)))
    replyOf(shard.ask(mutate('delete', [agent, write(agent)], 'key_b')))
    const authors = { kind: 'proposalAuthors' } as const
    expect(shard.ask(authors)).toEqual({ kind: 'authors', principals: [key, 'key_b'] })
    const ending: Command = { kind: 'authorsEnd', principals: [key], options: {} }
    const first = shard.ask(ending)
    expect(first).toMatchObject({ kind: 'authors', next: { agentNo: expect.any(Number) } })
    expect(proposals('proposed')).toHaveLength(7)
    const { next } = first as { next: { agentNo: number; seq: number } }
    expect(shard.ask({ ...ending, after: next })).toEqual({ kind: 'authors', principals: [] })
    expect(proposals('proposed')).toHaveLength(1)
    expect(shard.ask(authors)).toEqual({ kind: 'authors', principals: ['key_b'] })
  })
})

describe('a proposal about a record with an open proposal', () => {
  const user = 'user::usr_1'

  it.each([
    ['erase by a key', 'delete by a user', true],
    ['erase by a key', 'delete by a key', true],
    ['erase by a key', 'erase by a user', true],
    ['erase by a user', 'delete by a user', true],
    ['delete by a key', 'delete by a user', true],
    ['erase by a key', 'erase by a key', false],
    // The user could cancel it afterwards.
    ['erase by a user', 'delete by a key', false],
    ['erase by a user', 'erase by a user', false],
    ['delete by a key', 'erase by a user', false],
    ['delete by a user', 'delete by a user', false],
  ])('%s supersedes %s: %s', (later, earlier, expected) => {
    const agent = agentIn('governed')
    for (const together of [true, false]) {
      const hash = write(agent)
      const about = (text: string) => {
        const action = text.startsWith('erase') ? 'erase' : 'delete'
        return mutate(action, [agent, hash], text.endsWith('user') ? user : 'key_b')
      }
      const outcomes = together
        ? shard.run(about(earlier), about(later))
        : [shard.ask(about(earlier)), shard.ask(about(later))]
      expect(outcomes.map(codeOf)).toEqual(['reply', expected ? 'reply' : 'proposal_open'])
    }
    const left = proposals().map(({ state }) => state)
    const once = expected ? ['rejected', 'proposed'] : ['proposed']
    expect(left).toEqual([...once, ...once])
  })
})

describe('the row of a proposal that has ended', () => {
  const DAY_MS = 86_400_000
  const sweep: Command = { kind: 'proposalsSweep', options: {} }
  const list = (): string[] => {
    const outcome = shard.ask({ kind: 'proposalList', keys: true, limit: 1_000 })
    if (outcome.kind !== 'proposals') throw new Error(JSON.stringify(outcome))
    return outcome.rows
  }
  const vote = (
    [agent, seq]: [string, number],
    vote: 'approve' | 'reject' | 'cancel',
    principal: string,
  ): Command => ({
    kind: 'proposalDecide',
    agent,
    seq,
    vote,
    principal,
    admin: true,
    options: {},
  })
  /** The number of rows, and of those that contain only the locations of the records. */
  const rows = () => {
    const all = [...shard.environment.proposals.getRange({})].map(({ value }) => value.toString())
    return { all: all.length, past: all.filter((row) => row.startsWith('{"past"')).length }
  }
  /** The faults that the check of a backup finds in the current store. */
  const storeFaults = async () => {
    const path = mkdtempSync(join(tmpdir(), 'strandfast-past-'))
    const { environment } = shard
    environment.root.resetReadTxn()
    const transaction = environment.root.useReadTransaction()
    await copyStore({ environment, transaction }, path, () => {})
    transaction.done()
    const { faults } = await checkStore({ path, shard: 0 }, () => {})
    rmSync(path, { recursive: true })
    return faults
  }
  const proposed = (command: Command): number => {
    const id: string = replyOf(shard.ask(command)).proposal_id
    return Number(/^p_(\d+)_/.exec(id)?.[1])
  }

  it('is replaced after thirty days; lists and votes then get the same answers from the strand', async () => {
    const agent = agentIn('protected')
    const [first, second] = [write(agent), write(agent, 2)]
    const approved = proposed(mutate('delete', [agent, first]))
    shard.ask(vote([agent, approved], 'approve', 'bob'))
    const rejected = proposed(mutate('erase', [agent, second]))
    shard.ask(vote([agent, rejected], 'reject', 'bob'))
    const cancelled = proposed(setZone(agent, 'free'))
    shard.ask(vote([agent, cancelled], 'cancel', 'ann'))
    const governed = agentIn('governed')
    proposed(mutate('delete', [governed, write(governed)]))
    shard.nowMs += MINUTE_MS
    shard.ask(sweep)
    const before = list()
    const states = before.map((row) => JSON.parse(row).state)
    expect(states).toEqual(['applied', 'rejected', 'cancelled', 'applied'])

    shard.nowMs += 29 * DAY_MS
    shard.ask(sweep)
    expect(rows()).toEqual({ all: 4, past: 0 })
    const open = proposed(mutate('erase', [agent, second]))
    shard.nowMs += 2 * DAY_MS
    shard.ask(sweep)
    expect(rows()).toEqual({ all: 5, past: 4 })
    expect(list().filter((row) => JSON.parse(row).state !== 'proposed')).toEqual(before)
    await shard.reopen()
    expect(list().filter((row) => JSON.parse(row).state !== 'proposed')).toEqual(before)
    const refusal = shard.ask(vote([agent, approved], 'approve', 'carl'))
    expect(refusal).toMatchObject({ code: 'proposal_closed', extra: { state: 'applied' } })
    expect(codeOf(shard.ask(vote([agent, open], 'approve', 'carl')))).toBe('reply')
    expect(await storeFaults()).toEqual([])
  })

  it('is replaced with a bounded number of others in each sweep', () => {
    const agent = agentIn('protected')
    for (let n = 0; n < 300; n++) {
      const seq = proposed(mutate('delete', [agent, write(agent, n)]))
      shard.ask(vote([agent, seq], 'reject', 'bob'))
    }
    shard.nowMs += 31 * DAY_MS
    shard.ask(sweep)
    expect(rows()).toEqual({ all: 300, past: 256 })
    shard.ask(sweep)
    expect(rows()).toEqual({ all: 300, past: 300 })
  })

  it('stays if it was written before the locations of its records were stored', () => {
    const agent = agentIn('protected')
    const seq = proposed(mutate('delete', [agent, write(agent)]))
    shard.ask(vote([agent, seq], 'reject', 'bob'))
    for (const { key, value } of shard.environment.proposals.getRange({})) {
      const { endSeq: _endSeq, ...row } = JSON.parse(value.toString())
      shard.environment.proposals.put(Buffer.from(key), Buffer.from(JSON.stringify(row)))
    }
    const before = list()
    shard.nowMs += 31 * DAY_MS
    shard.ask(sweep)
    expect(rows()).toEqual({ all: 1, past: 0 })
    expect(list()).toEqual(before)
  })
})
