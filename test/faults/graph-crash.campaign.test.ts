import { afterEach, beforeEach, expect, it } from 'vitest'
import { checkedCall } from '../support/http/answers.js'
import { addEdge, edgesOf, makeAgents, removeEdge } from '../support/shard/graph.js'
import { startServer, type TestAnswer, type TestCall, type TestServer } from '../support/server/server.js'

const ROUNDS = 4
const WRITERS = 12
const env = { SERVICE_SHARDS: '3' }
const names = Array.from({ length: 9 }, (_none, n) => `node-${n}`)
const types = ['likes', 'knows']

let server: TestServer

beforeEach(async () => {
  server = await startServer({ env })
  await makeAgents(server, names)
})
afterEach(() => server.stop())

/** The acknowledged state of an edge. */
interface Known {
  link: readonly [src: string, dst: string, edgeType: string]
  weight: number | undefined
  /** Another possible state, if a change was in progress when the server was killed. */
  maybe?: { weight: number | undefined }
}

const known: Known[] = names.flatMap((src) =>
  names.flatMap((dst) => types.map((type): Known => ({ link: [src, dst, type], weight: undefined }))),
)

/** Changes the given edges, one after another, until the server is killed. */
async function write(edges: readonly Known[], answered: () => void): Promise<void> {
  for (let weight = 1; ; weight++) {
    for (const edge of edges) {
      const [src, dst, type] = edge.link
      const next = weight % 3 === 0 ? undefined : weight
      const change =
        next === undefined ? removeEdge(server, edge.link) : addEdge(server, [src, dst, type, next])
      try {
        const { status } = await change
        if (status === 404) expect([next, edge.weight]).toEqual([undefined, undefined])
        else expect(status).toBe(next === undefined ? 200 : 201)
        edge.weight = next
        answered()
      } catch (error) {
        if (!(error instanceof TypeError)) throw error
        edge.maybe = { weight: next }
        return
      }
    }
  }
}

/** The edges that result from the records of all strands. */
async function replayed(): Promise<string[]> {
  const edges = new Map<string, number>()
  for (const agent of names) {
    const body = { type: 'time_range', types: ['edge/*'], limit: 1_000 }
    let cursor: string | null = null
    do {
      const request: TestCall = { body: { ...body, ...(cursor !== null && { cursor }) } }
      const { body: page }: TestAnswer = await checkedCall(server, `POST /v1/agents/${agent}/query`, request)
      for (const { type, payload } of page.records) {
        const name = `${payload.src} ${payload.edge_type} ${payload.dst}`
        if (type === 'edge/add') edges.set(name, payload.weight)
        else expect(edges.delete(name), `${name} existed when it was removed`).toBe(true)
      }
      cursor = page.next_cursor
    } while (cursor !== null)
  }
  return [...edges].map(([name, weight]) => `${name} ${weight}`).sort()
}

async function all(direction: string): Promise<string[]> {
  const found: string[] = []
  for (const agent of names) found.push(...(await edgesOf(server, agent, { direction })))
  return found.sort()
}

it('a crash leaves each edge in both tables or in neither, matches the strands, and loses no acknowledged change', async () => {
  for (let round = 1; round <= ROUNDS; round++) {
    let answers = 0
    const writing: Promise<void>[] = []
    const killed = new Promise<void>((resolve) => {
      const answered = () => {
        if (++answers === round * 60) resolve(server.halt('SIGKILL').then(() => undefined))
      }
      for (let writer = 0; writer < WRITERS; writer++) {
        const edges = known.filter((_edge, index) => index % WRITERS === writer)
        writing.push(write(edges, answered))
      }
    })
    await killed
    await Promise.all(writing)
    server = await startServer({ dataDir: server.dataDir, env })
    const outbound = await all('out')
    expect(await all('in')).toEqual(outbound)
    expect(await replayed()).toEqual(outbound)
    for (const edge of known) {
      const allowed = [edge.weight, ...(edge.maybe === undefined ? [] : [edge.maybe.weight])]
      const [src, dst, type] = edge.link
      const prefix = `${src} ${type} ${dst} `
      const found = outbound.find((text) => text.startsWith(prefix))
      const outcome = found === undefined ? undefined : Number(found.slice(prefix.length))
      expect(allowed, prefix).toContain(outcome)
      edge.weight = outcome
      delete edge.maybe
    }
  }
})
