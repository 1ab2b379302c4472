import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { shardOf } from '../../../../src/strand/placement.js'
import type { EdgeList, EdgeCursor, EdgeRow } from '../../../../src/protocol/graph-messages.js'
import type { Command, Outcome } from '../../../../src/protocol/messages.js'
import { edgePage } from '../../../../src/front/routes/graph/page.js'
import {
  traverse,
  type Traversal,
  type TraversalRequest,
} from '../../../../src/front/routes/graph/traverse.js'
import { replyOf, TestShard } from '../../../support/shard/shard.js'

/** A key that is limited to agents; with none, to all. */
function keyOf(agents: readonly string[]): Pick<TraversalRequest, 'principal'> {
  return { principal: { id: 'key_1', scopes: new Set(['records:read']), agents } }
}
const everywhere = keyOf([])

/** Answers reads like a generated graph, and records the commands and the maximum number in flight. */
function generatedGraph(edgesOf: (command: EdgeList) => Outcome) {
  const commands: EdgeList[] = []
  let inFlight = 0
  const seen = { commands, inFlightMax: 0 }
  const ask = async (_agent: string, command: Command): Promise<Outcome> => {
    if (command.kind !== 'edgeList') throw new Error(`Expected the command edgeList, got ${command.kind}`)
    commands.push(command)
    seen.inFlightMax = Math.max(seen.inFlightMax, ++inFlight)
    await Promise.resolve()
    inFlight--
    return edgesOf(command)
  }
  return { request: ask, requestAll: async (command: Command) => [await ask('', command)], seen }
}

async function walked(
  request: TraversalRequest,
  context: Parameters<typeof traverse>[1],
): Promise<Traversal> {
  const found = await traverse(request, context)
  if ('code' in found) throw new Error(found.detail)
  return found
}

const edge = (src: string, dst: string): EdgeRow => ({ src, dst, edgeType: 't', weight: 1 })

/** The most rows that the commands may examine. */
const rowsOf = (commands: readonly EdgeList[]) => commands.reduce((sum, { lookMax }) => sum + lookMax, 0)

/** An agent with endlessly many edges that were all removed. */
const endless = ({ lookMax, after }: EdgeList): Outcome => ({
  kind: 'edges',
  edges: [],
  looked: lookMax,
  reached: { edgeType: 't', other: `${after?.other ?? ''}x`.slice(-64) },
})

describe('a traversal', () => {
  it('is truncated after it has examined enough rows without edges', async () => {
    const context = generatedGraph(endless)
    const found = await walked({ agent: 'a', depth: 3, ...everywhere }, context)
    expect(found).toEqual({ nodes: ['a'], edges: [], truncated: true })
    expect(rowsOf(context.seen.commands)).toBeLessThan(limits.graphRowsMax + limits.graphCallRowsMax)
  })

  it('is truncated at the limit of characters of its names', async () => {
    const long = (n: number) => `${'x'.repeat(120)}::${String(n).padStart(120, '0')}`
    const context = generatedGraph(({ agent, limit }) => {
      const edges = Array.from({ length: limit }, (_none, n) => edge(agent, long(n % 900)))
      return { kind: 'edges', edges, looked: limit, reached: { edgeType: 't', other: 'x' } }
    })
    const { edges, truncated } = await walked({ agent: long(0), depth: 2, ...everywhere }, context)
    expect(truncated).toBe(true)
    const chars = edges.reduce((sum, { src, dst }) => sum + src.length + dst.length, 0)
    expect(chars).toBeLessThan(limits.graphCharsMax + 1_000)
    expect(edges.length).toBeLessThan(limits.graphEdgesMax)
  })

  it('is truncated at the limit of rows after many nodes, and reads only a few nodes concurrently', async () => {
    const wide = Array.from({ length: 500 }, (_none, n) => edge('a', `n${n}`))
    const context = generatedGraph((command) =>
      command.agent === 'a' ? { kind: 'edges', edges: wide, looked: 500 } : endless(command),
    )
    const found = await walked({ agent: 'a', depth: 2, ...everywhere }, context)
    expect([found.nodes.length, found.edges.length, found.truncated]).toEqual([501, 500, true])
    const rowsAtEnd = limits.graphNodesInFlightMax * limits.graphFirstRows + limits.graphCallRowsMax
    expect(rowsOf(context.seen.commands)).toBeLessThan(limits.graphRowsMax + rowsAtEnd)
    expect(context.seen.inFlightMax).toBeLessThanOrEqual(limits.graphNodesInFlightMax)
  })

  it('is truncated at the limit of nodes, with both ends of each edge among them', async () => {
    const context = generatedGraph(({ agent }) => {
      const edges = Array.from({ length: 40 }, (_none, n) => edge(agent, `${agent}.${n}`))
      return { kind: 'edges', edges, looked: edges.length }
    })
    const found = await walked({ agent: 'a', depth: 3, ...everywhere }, context)
    expect([found.nodes.length, found.truncated]).toEqual([limits.graphNodesMax, true])
    const nodes = new Set(found.nodes)
    expect(found.edges.filter(({ src, dst }) => !nodes.has(src) || !nodes.has(dst))).toEqual([])
  })

  it('is complete if it is exactly as large as its limits', async () => {
    const others = Array.from({ length: limits.graphNodesMax - 1 }, (_none, n) => `n${n}`)
    const context = generatedGraph(({ agent }) => {
      const edges = agent === 'a' ? others.map((other) => edge('a', other)) : []
      return { kind: 'edges', edges, looked: edges.length }
    })
    const found = await walked({ agent: 'a', depth: 3, ...everywhere }, context)
    expect([found.nodes.length, found.truncated]).toEqual([limits.graphNodesMax, false])
  })

  it('returns the refusal of a shard', async () => {
    const refusal = { code: 'unavailable', detail: 'Expected a shard' } as const
    const context = generatedGraph(({ agent }) =>
      agent === 'a' ? { kind: 'edges', edges: [edge('a', 'b')], looked: 1 } : refusal,
    )
    expect(await traverse({ agent: 'a', depth: 2, ...everywhere }, context)).toBe(refusal)
  })
})

describe('a page of edges', () => {
  it('ends with a cursor if it finds nothing in many rows', async () => {
    for (const direction of ['out', 'in'] as const) {
      const context = generatedGraph(endless)
      const page = await edgePage({ agent: 'a', direction, limit: 10, ...everywhere }, context)
      expect(page).toEqual({ edges: [], next: { edgeType: 't', other: 'x'.repeat(16) } })
      expect(context.seen.commands).toHaveLength(16)
    }
  })
})

describe('a dense graph over three shards', () => {
  const names = Array.from({ length: 120 }, (_none, n) => `n${n}`)
  const shards: TestShard[] = []
  const context = {
    async request(agent: string, command: Command): Promise<Outcome> {
      const shard = shards[shardOf(agent, shards.length)]
      if (shard === undefined) throw new Error('Expected a shard')
      return shard.ask(command)
    },
    requestAll: async (command: Command) => shards.map((shard) => shard.ask(command)),
  }

  beforeAll(async () => {
    for (let shard = 0; shard < 3; shard++) shards.push(new TestShard())
    for (const agent of names) {
      replyOf(await context.request(agent, { kind: 'agentCreate', agent, zone: 'free', options: {} }))
    }
    for (const [index, shard] of shards.entries()) {
      const ofShard = names.filter((name) => shardOf(name, shards.length) === index)
      shard.run(
        ...ofShard.flatMap((agent) =>
          names.map(
            (dst) => ({ kind: 'edgeAdd', agent, dst, edgeType: 't', weight: 1, options: {} }) as const,
          ),
        ),
      )
    }
  })
  afterAll(() => Promise.all(shards.map((shard) => shard.remove())))

  it('is truncated at the limit of edges, always at the same edge', async () => {
    const near = await walked({ agent: 'n0', depth: 1, ...everywhere }, context)
    expect([near.nodes.length, near.edges.length, near.truncated]).toEqual([120, 120, false])
    const far = await walked({ agent: 'n0', depth: 2, ...everywhere }, context)
    expect([far.nodes.length, far.edges.length, far.truncated]).toEqual([120, limits.graphEdgesMax, true])
    expect(await walked({ agent: 'n0', depth: 3, ...everywhere }, context)).toEqual(far)
  })

  /** All edges of an agent, read in pages that no shard fills alone, each in order. */
  async function paged(agent: string, direction: 'in' | 'out', reach: string[] = []): Promise<string[]> {
    const found: string[] = []
    let after: EdgeCursor | undefined
    do {
      const request = { agent, direction, limit: 7, ...keyOf(reach), ...(after && { after }) }
      const page = await edgePage(request, context)
      if ('code' in page) throw new Error(page.detail)
      found.push(...page.edges.map(({ src, dst }) => `${src} ${dst}`))
      after = page.next
    } while (after !== undefined)
    expect(found).toEqual(found.toSorted())
    return found
  }

  it('has the same edges inbound and outbound, page by page', async () => {
    const inbound: string[] = []
    const outbound: string[] = []
    for (const agent of names) {
      outbound.push(...(await paged(agent, 'out')))
      inbound.push(...(await paged(agent, 'in')))
    }
    expect(outbound).toHaveLength(120 * 120)
    expect(inbound.sort()).toEqual(outbound.sort())
  })

  it('returns to a limited key all edges that it reaches, although earlier pages contain none of them', async () => {
    // Names of one shard only, so that the shards are not read at the same pace.
    const reach = names.filter((name) => shardOf(name, 3) === 1).slice(-25)
    const sources = await paged('n0', 'in', reach)
    expect(sources).toEqual(reach.map((name) => `${name} n0`).sort())
    const found = await walked({ agent: reach[0] ?? '', depth: 2, ...keyOf(reach) }, context)
    expect(found.nodes.toSorted()).toEqual(reach.toSorted())
    expect([found.edges.length, found.truncated]).toEqual([25 * 25, false])
  })
})
