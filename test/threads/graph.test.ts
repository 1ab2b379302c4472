import { fc } from '../support/fast-check.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EdgeList, EdgeRow } from '../../src/protocol/graph-messages.js'
import type { Hlc } from '../../src/strand/hlc.js'
import { parseHlc } from '../../src/strand/hlc.js'
import type { Zone } from '../../src/strand/zone.js'
import { edgesOf, findEdge } from '../../workers/store/tables/edges.js'
import { codeOf, keyed, replyOf, TestShard } from '../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})
afterEach(() => shard.remove())

function make(...names: string[]): void {
  for (const agent of names) zoned(agent, 'free')
}

function zoned(agent: string, zone: Zone): void {
  replyOf(shard.ask({ kind: 'agentCreate', agent, zone, options: {} }))
}

const adding = (agent: string, dst: string, { weight = 1, edgeType = 'likes' } = {}) =>
  ({ kind: 'edgeAdd', agent, dst, edgeType, weight, options: {} }) as const

const removing = (agent: string, dst: string, edgeType = 'likes') =>
  ({ kind: 'edgeRemove', agent, dst, edgeType, principal: 'root', options: {} }) as const

const whole = { limit: 1_000, lookMax: 1_000 }

function edges(agent: string, direction: 'out' | 'in', more: Partial<EdgeList> = {}): EdgeRow[] {
  const outcome = shard.ask({ kind: 'edgeList', agent, direction, ...whole, ...more })
  if (outcome.kind !== 'edges') throw new Error(JSON.stringify(outcome))
  return outcome.edges
}

/** Edges as `a likes b 1`. */
const textsOf = (rows: readonly EdgeRow[]) =>
  rows.map(({ src, dst, edgeType, weight }) => `${src} ${edgeType} ${dst} ${weight}`)

function hlcOf(reply: { timestamp_hlc: string }): Hlc {
  const hlc = parseHlc(reply.timestamp_hlc)
  if (hlc === undefined) throw new Error(`Expected an HLC, got ${reply.timestamp_hlc}`)
  return hlc
}

describe('an edge', () => {
  it('is a signed record on the strand of its source, and is in both indexes', () => {
    make('a', 'b')
    const { seq, record_id: hash } = replyOf(shard.ask(adding('a', 'b', { weight: 2.5 })))
    const agent = shard.store.agents.find('a')
    expect(agent?.head).toMatchObject({ seq, hash })
    const record = agent && shard.store.findRecord(agent, hash)
    expect(record?.type).toBe('edge/add')
    expect(record?.signature).toHaveLength(64)
    expect(Buffer.from(record?.body ?? []).toString()).toBe(
      '{"dst":"b","edge_type":"likes","src":"a","weight":2.5}',
    )
    expect(textsOf(edges('a', 'out'))).toEqual(['a likes b 2.5'])
    expect(edges('b', 'in')).toEqual(edges('a', 'out'))
    expect(edges('a', 'in')).toEqual([])
    expect(edges('b', 'out')).toEqual([])
  })

  it('has the new weight when it is added again, by a new record', () => {
    make('a', 'b')
    const [first, second] = shard.run(adding('a', 'b'), adding('a', 'b', { weight: 7 })).map(replyOf)
    expect(second.seq).toBe(first.seq + 1)
    expect(textsOf(edges('a', 'out'))).toEqual(['a likes b 7'])
    expect(textsOf(edges('b', 'in'))).toEqual(['a likes b 7'])
    expect(textsOf(edges('a', 'out', { asOf: hlcOf(first) }))).toEqual(['a likes b 1'])
  })

  it('can point to its source, and can be one of several types between the same agents', () => {
    make('a')
    for (const edgeType of ['x', 'y']) replyOf(shard.ask(adding('a', 'a', { edgeType })))
    expect(textsOf(edges('a', 'in'))).toEqual(['a x a 1', 'a y a 1'])
    expect(textsOf(edges('a', 'out', { edgeType: 'y' }))).toEqual(['a y a 1'])
  })

  it('can be added and removed repeatedly in one group', () => {
    make('a', 'b')
    const outcomes = shard.run(
      adding('a', 'b'),
      removing('a', 'b'),
      removing('a', 'b'),
      adding('a', 'b', { weight: 3 }),
    )
    expect(outcomes.map(codeOf)).toEqual(['reply', 'reply', 'edge_not_found', 'reply'])
    expect(textsOf(edges('b', 'in'))).toEqual(['a likes b 3'])
    const [added, removed] = outcomes
    expect(textsOf(edges('b', 'in', { asOf: hlcOf(replyOf(added)) }))).toEqual(['a likes b 1'])
    expect(edges('b', 'in', { asOf: hlcOf(replyOf(removed)) })).toEqual([])
  })

  it('belongs only to its agent, even if the name begins with that of another agent', () => {
    make('a', 'ab', 'b', 'bb')
    for (const [src, dst] of [
      ['a', 'b'],
      ['a', 'bb'],
      ['ab', 'b'],
    ] as const) {
      replyOf(shard.ask(adding(src, dst, { edgeType: 'l' })))
      replyOf(shard.ask(adding(src, dst, { edgeType: 'll' })))
    }
    expect(textsOf(edges('a', 'out', { edgeType: 'l' }))).toEqual(['a l b 1', 'a l bb 1'])
    expect(textsOf(edges('b', 'in', { edgeType: 'll' }))).toEqual(['a ll b 1', 'ab ll b 1'])
    expect(edges('bb', 'in')).toHaveLength(2)
  })

  it('is written once under an Idempotency-Key, and a retry gets the same answer', () => {
    make('a', 'b')
    const command = { ...adding('a', 'b'), options: keyed('once') }
    const first = replyOf(shard.ask(command))
    const again = shard.ask(command)
    expect(again).toMatchObject({ replayed: true })
    expect(replyOf(again)).toEqual(first)
    expect(shard.store.agents.find('a')?.head.seq).toBe(first.seq)
    expect(codeOf(shard.ask({ ...command, weight: 2 }))).toBe('idempotency_key_reused')
  })

  it('requires an existing source whose head matches If-Match', () => {
    make('a', 'b')
    expect(codeOf(shard.ask(adding('missing', 'b')))).toBe('agent_not_found')
    const stale = { ...adding('a', 'b'), options: { ifMatch: '0'.repeat(64) } }
    expect(codeOf(shard.ask(stale))).toBe('head_mismatch')
    expect(codeOf(shard.ask({ ...stale, ...removing('a', 'b'), options: stale.options }))).toBe(
      'head_mismatch',
    )
    expect(edges('b', 'in')).toEqual([])
  })

  it('is not found if it was never added', () => {
    make('a', 'b')
    expect(codeOf(shard.ask(removing('a', 'b')))).toBe('edge_not_found')
    expect(codeOf(shard.ask({ kind: 'edgeList', agent: 'missing', direction: 'out', ...whole }))).toBe(
      'agent_not_found',
    )
    expect(shard.store.agents.find('a')?.head.seq).toBe(0)
  })
})

describe('the removal of an edge', () => {
  it('is refused in zone immutable_core, where edges can be added', () => {
    zoned('a', 'immutable_core')
    make('b')
    replyOf(shard.ask(adding('a', 'b')))
    expect(codeOf(shard.ask(removing('a', 'b')))).toBe('zone_immutable')
    expect(textsOf(edges('a', 'out'))).toEqual(['a likes b 1'])
  })

  it('waits for its due time in zone governed, and is then complete', () => {
    zoned('a', 'governed')
    make('b')
    replyOf(shard.ask(adding('a', 'b')))
    const proposed = shard.ask(removing('a', 'b'))
    expect(proposed).toMatchObject({ kind: 'reply', status: 202 })
    expect(codeOf(shard.ask(removing('a', 'b')))).toBe('proposal_open')
    expect(edges('b', 'in')).toHaveLength(1)
    shard.nowMs = replyOf(proposed).effective_at_ms
    const before = shard.store.agents.find('a')?.head.hlc
    shard.ask({ kind: 'proposalsSweep', options: {} })
    expect(edges('b', 'in')).toEqual([])
    expect(edges('a', 'out')).toEqual([])
    expect(edges('a', 'out', before && { asOf: before })).toHaveLength(1)
  })

  it('is applied in zone protected when another principal approves it', () => {
    zoned('a', 'protected')
    make('b')
    replyOf(shard.ask(adding('a', 'b')))
    const { proposal_id: id } = replyOf(shard.ask(removing('a', 'b')))
    const seq = Number(/^p_(\d+)_/.exec(id)?.[1])
    const decide = { kind: 'proposalDecide', agent: 'a', seq, admin: true, options: {} } as const
    replyOf(shard.ask({ ...decide, vote: 'approve', principal: 'other' }))
    expect(edges('a', 'out')).toEqual([])
    expect(codeOf(shard.ask(removing('a', 'b')))).toBe('edge_not_found')
  })
})

describe('a page of edges', () => {
  beforeEach(() => {
    const others = Array.from({ length: 40 }, (_none, n) => `b${String(n).padStart(2, '0')}`)
    make('a', ...others)
    shard.run(
      ...others.map((dst, n) => adding('a', dst, { weight: n, edgeType: n % 2 === 0 ? 'even' : 'odd' })),
    )
  })

  it('continues after the previous page, up to the end', () => {
    const found: EdgeRow[] = []
    let after: EdgeList['after']
    do {
      const outcome = shard.ask({
        kind: 'edgeList',
        agent: 'a',
        direction: 'out',
        limit: 7,
        lookMax: 1_000,
        ...(after && { after }),
      })
      if (outcome.kind !== 'edges') throw new Error(outcome.kind)
      found.push(...outcome.edges)
      after = outcome.reached
    } while (after !== undefined)
    expect(found).toEqual(edges('a', 'out'))
    expect(found).toHaveLength(40)
  })

  it('ends early, with a cursor, after reading many removed edges', () => {
    shard.run(...edges('a', 'out', { edgeType: 'even' }).map(({ dst }) => removing('a', dst, 'even')))
    const outcome = shard.ask({ kind: 'edgeList', agent: 'a', direction: 'out', limit: 10, lookMax: 12 })
    expect(outcome).toEqual({
      kind: 'edges',
      edges: [],
      looked: 12,
      reached: { edgeType: 'even', other: 'b22' },
    })
  })

  it('returns the edges as of a moment in the past, and none before the first', () => {
    const first = findEdge(shard.environment, { agentNo: 0, edgeType: 'even', dst: 'b00' })
    const last = findEdge(shard.environment, { agentNo: 0, edgeType: 'odd', dst: 'b39' })
    if (first === undefined || last === undefined) throw new Error('Expected both edges')
    shard.run(...edges('a', 'out').map(({ dst, edgeType }) => removing('a', dst, edgeType)))
    expect(edges('a', 'out')).toEqual([])
    expect(edges('a', 'out', { asOf: first.hlc })).toHaveLength(1)
    expect(edges('a', 'out', { asOf: last.hlc })).toHaveLength(40)
    expect(edges('a', 'out', { asOf: { ms: first.hlc.ms - 1, counter: 0 } })).toEqual([])
  })
})

describe('edges compared with a simple model', () => {
  const names = ['a', 'b', 'ab', 'b.a']
  const types = ['t', 'tt']
  const step = fc.record({
    src: fc.constantFrom(...names),
    dst: fc.constantFrom(...names),
    edgeType: fc.constantFrom(...types),
    weight: fc.oneof(fc.constant(undefined), fc.double({ noNaN: true, noDefaultInfinity: true })),
    afterMs: fc.constantFrom(0, 0, 0, 1, 5),
    // Whether the step is decided in one group with the previous step.
    joins: fc.boolean(),
    restarts: fc.constantFrom(false, false, false, false, false, false, true),
  })

  it('are the same outbound, inbound and as of every moment', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        const own = new TestShard()
        shard = own
        try {
          make(...names)
          const model = new Map<string, EdgeRow>()
          const moments: { hlc: Hlc; edges: string[] }[] = []
          for (const group of grouped(steps)) {
            const [{ afterMs, restarts }] = group
            own.nowMs += afterMs
            if (restarts) await own.reopen()
            const outcomes = own.run(
              ...group.map(({ src, dst, edgeType, weight }) =>
                weight === undefined ? removing(src, dst, edgeType) : adding(src, dst, { weight, edgeType }),
              ),
            )
            // A shard groups the writes by agent, so their clock readings give the order of the decisions.
            const decided = group.map((one, index) => ({ one, outcome: outcomes[index] }))
            const done = decided.filter(({ outcome }) => outcome?.kind === 'reply')
            done.sort((left, right) =>
              replyOf(left.outcome).timestamp_hlc < replyOf(right.outcome).timestamp_hlc ? -1 : 1,
            )
            // The state before a single step is known.
            if (done.length === 0 && group.length === 1) {
              const [{ src, dst, edgeType }] = group
              expect(codeOf(outcomes[0])).toBe('edge_not_found')
              expect(model.has(`${src} ${edgeType} ${dst}`)).toBe(false)
            }
            for (const { one, outcome } of done) {
              const { src, dst, edgeType, weight } = one
              const name = `${src} ${edgeType} ${dst}`
              if (weight === undefined) {
                expect(model.delete(name), `${name} was there`).toBe(true)
              } else model.set(name, { src, dst, edgeType, weight })
              moments.push({ hlc: hlcOf(replyOf(outcome)), edges: sorted([...model.values()]) })
            }
          }
          const now = sorted([...model.values()])
          for (const { hlc, edges: expected } of moments) agree(expected, { asOf: hlc })
          agree(now, {})
        } finally {
          await own.remove()
        }
      }),
      { numRuns: 40 },
    )
    shard = new TestShard()
  })

  const sorted = (rows: readonly EdgeRow[]) => textsOf(rows).sort()

  function agree(wanted: readonly string[], more: Partial<EdgeList>): void {
    for (const direction of ['out', 'in'] as const) {
      expect(sorted(names.flatMap((name) => edges(name, direction, more)))).toEqual(wanted)
    }
  }

  function* grouped<S extends { joins: boolean }>(steps: readonly S[]): Generator<[S, ...S[]]> {
    let group: [S, ...S[]] | undefined
    for (const one of steps) {
      if (group !== undefined && one.joins) {
        group.push(one)
        continue
      }
      if (group !== undefined) yield group
      group = [one]
    }
    if (group !== undefined) yield group
  }
})

it('stores only two rows of an edge that was added once', () => {
  make('a', 'b')
  replyOf(shard.ask(adding('a', 'b')))
  const { edges: out, edgesIn, edgeHistory } = shard.environment
  expect([out, edgesIn, edgeHistory].map((table) => table.getKeysCount({}))).toEqual([1, 1, 0])
  expect([...edgesOf(shard.environment, { of: { name: 'b' } })]).toHaveLength(1)
})
