import { expect } from 'vitest'
import { checkedCall } from '../http/answers.js'
import type { TestAnswer, TestCall, TestServer } from '../server/server.js'

/** An edge as tests write it: `[src, dst, edge_type, weight]`. */
export type Link = readonly [src: string, dst: string, edgeType?: string, weight?: number]

/** Adds an edge of type `likes`, unless another is named. */
export function addEdge(server: TestServer, link: Link, more: TestCall = {}): Promise<TestAnswer> {
  const [src, dst, edgeType = 'likes', weight] = link
  const body = { src, dst, edge_type: edgeType, weight }
  return checkedCall(server, 'POST /v1/graph/edges', { body, ...more })
}

/** Removes an edge. */
export function removeEdge(
  server: TestServer,
  [src, dst, edgeType = 'likes']: Link,
  more: TestCall = {},
): Promise<TestAnswer> {
  const query = new URLSearchParams({ src, dst, edge_type: edgeType })
  return checkedCall(server, `DELETE /v1/graph/edges?${query}`, more)
}

/** All edges of an agent, page by page, as `src type dst weight`, in the order of the pages. */
export async function edgesOf(
  server: TestServer,
  agent: string,
  query: Record<string, string> = {},
): Promise<string[]> {
  const found: string[] = []
  let cursor: string | null = null
  do {
    const parameters = new URLSearchParams({ ...query, ...(cursor !== null && { cursor }) })
    const { status, body, text } = await checkedCall(server, `GET /v1/graph/edges/${agent}?${parameters}`)
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

/** Creates agents of zone `free`. */
export async function makeAgents(server: TestServer, names: readonly string[]): Promise<void> {
  await inSlices(names, async (name) => {
    const { status } = await checkedCall(server, 'POST /v1/agents', { body: { name, zone: 'free' } })
    expect(status).toBe(201)
  })
}

/** Runs an action for every item, 128 items at a time. */
export async function inSlices<T>(all: readonly T[], act: (one: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += 128) await Promise.all(all.slice(from, from + 128).map(act))
}
