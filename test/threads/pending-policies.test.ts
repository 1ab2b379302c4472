import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Policy, PolicyAction } from '../../src/auth/row-policy.js'
import type { Command, Outcome } from '../../src/protocol/messages.js'
import type { UserAccess } from '../../src/protocol/command-options.js'
import type { Zone } from '../../src/strand/zone.js'
import { TestShard, codeOf, replyOf } from '../support/shard/shard.js'

/* Policies that a proposal delays: what the server answers until they apply. */

const DELAY_MS = 60_000

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  for (const zone of ['governed', 'protected'] as const) createAgent(zone, zone)
})

afterEach(() => shard.remove())

const ann = user('usr_ann')
const bob = user('usr_bob')
const everything: readonly PolicyAction[] = ['read', 'write', 'delete', 'erase']

function user(sub: string): UserAccess {
  return { claims: { sub, email: `${sub}@example.org`, app_metadata: {}, user_metadata: {} } }
}

function createAgent(agent: string, zone: Zone): void {
  replyOf(shard.ask({ kind: 'agentCreate', agent, zone, options: {} }))
}

function owned(actions: readonly PolicyAction[], value: unknown = '$jwt.sub'): Policy {
  return { actions: [...actions], conditions: [{ field: 'owner', op: 'eq', value }] }
}

function propose(agent: string, ...policies: Policy[]): Outcome {
  return shard.ask({ kind: 'policiesSet', agent, policies, principal: 'root', options: {} })
}

function append(agent: string, owner: string, access?: UserAccess): Outcome {
  const body = Buffer.from(JSON.stringify({ data: { owner } }))
  const command: Command = { kind: 'recordAppend', agent, emerge: false, body, options: {} }
  return shard.ask(access === undefined ? command : { ...command, access })
}

function status(agent: string, access: UserAccess): Outcome {
  return shard.ask({ kind: 'agentStatus', agent, access })
}

/** Applies what is due now. */
function sweep(): void {
  shard.ask({ kind: 'proposalsSweep', options: {} })
}

describe('the answer to policies that the zone delays', () => {
  it('says when they apply in zone governed, with the warnings about them', () => {
    const applyAtMs = shard.nowMs + DELAY_MS
    const answer = replyOf(propose('governed', owned(['read'], '$jwt.email')))
    expect(answer).toEqual({
      proposal_id: 'p_1_governed',
      state: 'proposed',
      effective_at_ms: applyAtMs,
      detail:
        'Zone governed: these policies apply at 2026-01-01T00:01:00.000Z, unless they are rejected before. ' +
        'Until then the current policies apply',
      warnings: [expect.stringContaining('$jwt.email')],
    })
  })

  it('says that they need approval in zone protected', () => {
    const { effective_at_ms: atMs, detail } = replyOf(propose('protected', owned(['read'])))
    expect(atMs).toBeNull()
    expect(detail).toBe(
      'Zone protected: these policies apply when another key approves the proposal. ' +
        'Until then the current policies apply',
    )
  })

  it('is followed by both lists of policies, until the proposed one is in force', () => {
    const shown = () => replyOf(shard.ask({ kind: 'policiesGet', agent: 'governed' }))
    expect(shown()).toEqual({ agent_id: 'governed', policies: [], pending: null })
    const policies = [owned(['read'])]
    const pending = { proposal_id: 'p_1_governed', policies, effective_at_ms: shard.nowMs + DELAY_MS }
    propose('governed', ...policies)
    expect(shown()).toEqual({ agent_id: 'governed', policies: [], pending })
    shard.nowMs += DELAY_MS
    sweep()
    expect(shown()).toEqual({ agent_id: 'governed', policies, pending: null })
  })
})

describe('a user whom pending policies will allow an action', () => {
  it('gets policy_pending with the time, and then access', () => {
    const applyAtMs = shard.nowMs + DELAY_MS
    propose('governed', owned(everything))
    const pending = {
      code: 'policy_pending',
      detail:
        'The row policies that allow this apply at 2026-01-01T00:01:00.000Z, unless they are rejected before',
      extra: { effective_at_ms: applyAtMs },
    }
    expect(append('governed', 'usr_ann', ann)).toEqual(pending)
    expect(status('governed', ann)).toEqual(pending)
    shard.nowMs += DELAY_MS
    sweep()
    expect(codeOf(append('governed', 'usr_ann', ann))).toBe('reply')
    expect(codeOf(status('governed', ann))).toBe('reply')
  })

  it('gets it for records that the current policies do not cover, and only for those', () => {
    propose('governed', owned(['read', 'write'], 'all'))
    shard.nowMs += DELAY_MS
    sweep()
    const { content_hash: hash } = replyOf(append('governed', 'all'))
    propose('governed', owned(['read', 'write'], 'all'), owned(['read', 'write']), owned(['delete'], 'all'))
    expect(codeOf(append('governed', 'usr_ann', ann))).toBe('policy_pending')
    expect(codeOf(append('governed', 'usr_ann', bob))).toBe('forbidden')
    const remove = (action: 'delete' | 'erase') =>
      codeOf(
        shard.ask({
          kind: 'recordMutate',
          agent: 'governed',
          hash,
          action,
          principal: 'user::usr_ann',
          options: {},
          access: ann,
        }),
      )
    expect([remove('delete'), remove('erase')]).toEqual(['policy_pending', 'forbidden'])
  })

  it('gets it per record of a batch and per line of an ingest', () => {
    propose('governed', owned(['write'], 'all'))
    shard.nowMs += DELAY_MS
    sweep()
    propose('governed', owned(['write'], 'all'), owned(['write']))
    const records = ['all', 'usr_ann', 'usr_bob'].map((owner) => ({ owner }))
    const body = Buffer.from(JSON.stringify({ records: records.map((data) => ({ data })), atomic: false }))
    const common = { agent: 'governed', options: {}, access: ann }
    const { results } = replyOf(shard.ask({ kind: 'batchAppend', emerge: false, body, ...common }))
    expect(results.map(({ error }: { error?: { code: string } }) => error?.code)).toEqual([
      undefined,
      'policy_pending',
      'forbidden',
    ])
    const chunk = Buffer.from(records.map((record) => JSON.stringify(record)).join('\n'))
    const outcome = shard.ask({ kind: 'ingestChunk', chunk, firstLine: 1, mode: 'skip', ...common })
    expect(outcome).toMatchObject({
      kind: 'ingested',
      accepted: 1,
      faults: [
        { line: 2, refusal: { code: 'policy_pending' } },
        { line: 3, refusal: { code: 'forbidden' } },
      ],
    })
  })
})

describe('pending policies', () => {
  it('are hidden from a user whom they will not allow the action', () => {
    const none = status('absent', bob)
    propose('governed', owned(['write']))
    expect(status('governed', bob)).toEqual(none)
    createAgent('lacking', 'governed')
    propose('lacking', owned(everything, '$jwt.app_metadata.team'))
    expect(status('lacking', bob)).toEqual(none)
  })

  it('are hidden if they need approval, which may never come', () => {
    propose('protected', owned(everything))
    const none = status('absent', ann)
    expect([status('protected', ann), append('protected', 'usr_ann', ann)]).toEqual([none, none])
  })

  it('are hidden after they were rejected', () => {
    propose('governed', owned(everything))
    replyOf(
      shard.ask({
        kind: 'proposalDecide',
        agent: 'governed',
        seq: 1,
        vote: 'reject',
        principal: 'root',
        admin: true,
        options: {},
      }),
    )
    expect(codeOf(status('governed', ann))).toBe('forbidden')
  })
})
