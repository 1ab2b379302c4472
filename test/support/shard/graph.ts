import { expect } from 'vitest'
import { ask } from '../http/answers.js'
import type { TestAnswer, TestCall, TestServer } from '../server/server.js'

/** An edge as tests write it: `[src, dst, edge_type, weight]`. */
export type Link = readonly [src: string, dst: string, edgeType?: string, weight?: number]

/** Adds an edge of type `likes`, unless another is named. */
export function addEdge(server: TestServer, link: Link, more: TestCall = {}): Promise<TestAnswer> {
  const [src, dst, edgeType = 'likes', weight] = link
  const body = { src, dst, edge_type: edgeType, weight }
  return ask(server, 'POST /v1/graph/edges', { body, ...more })
}

/** Removes an edge. */
export function removeEdge(
  server: TestServer,
  [src, dst, edgeType = 'likes']: Link,
  more: TestCall = {},
): Promise<TestAnswer> {
  const query = new URLSearchParams({ src, dst, edge_type: edgeType })
  return ask(server, `DELETE /v1/graph/edges?${query}`, more)
}

/** Every edge of an agent, page after page, as `src type dst weight`, in the order that they come in. */
export async function edgesOf(
  server: TestServer,
  agent: string,
  query: Record<string, string> = {},
): Promise<string[]> {
  const found: string[] = []
  let cursor: string | null = null
  do {
    const parameters = new URLSearchParams({ ...query, ...(cursor !== null && { cursor }) })
    const { status, body, text } = await ask(server, `GET /v1/graph/edges/${agent}?${parameters}`)
    expect(status, text).toBe(200)
    for (const edge of body.edges) found.push(edgeText(edge))
    cursor = body.next_cursor
  } while (cursor !== null)
  return found
}

/** An edge of an answer as `src type dst weight`. */
export function edgeText(edge: { src: string; dst: string; edge_type: string; weight: number }): string {
  return `${edge.src} ${edge.edge_type} ${edge.dst} ${edge.weight}`
}

/** Makes many agents of zone `free`. */
export async function makeAgents(server: TestServer, names: readonly string[]): Promise<void> {
  await inSlices(names, async (name) => {
    const { status } = await ask(server, 'POST /v1/agents', { body: { name, zone: 'free' } })
    expect(status).toBe(201)
  })
}

/** Does something for each of many, some of them at once. */
export async function inSlices<T>(all: readonly T[], act: (one: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += 128) await Promise.all(all.slice(from, from + 128).map(act))
}
