import type { TestCall } from '../support/server/server.js'
import type { Asked, Call, Item, Mutation } from './world.js'

/*
 * Calls as they go over HTTP.
 */

/** A call's route and what it carries. */
export function requestOf(call: Call): { route: string; options: TestCall } {
  const { asked, by, idempotencyKey, ifMatch } = call
  const headers: Record<string, string> = {}
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  if (ifMatch !== undefined) headers['if-match'] = `"${ifMatch}"`
  const { method, path, query = {}, body, lines } = messageOf(asked)
  const parameters = new URLSearchParams(query)
  if (call.signing !== undefined) parameters.set('signing', call.signing)
  if (lines !== undefined) headers['content-type'] = 'application/x-ndjson'
  const text = parameters.size === 0 ? '' : `?${parameters}`
  return {
    route: `${method} ${path}${text}`,
    options: {
      key: by.key,
      headers,
      ...(body !== undefined && { body }),
      // Each line ends in a line feed, so that a small stream is one chunk.
      ...(lines !== undefined && { raw: lines.map((line) => `${line}\n`).join('') }),
    },
  }
}

interface Message {
  method: 'POST' | 'PUT' | 'DELETE'
  path: string
  query?: Record<string, string>
  body?: unknown
  lines?: readonly string[]
}

function messageOf(asked: Asked): Message {
  switch (asked.kind) {
    case 'createAgent': {
      const { agent: name, zone, seedHex } = asked
      return { method: 'POST', path: '/v1/agents', body: { name, zone, seed_hex: seedHex } }
    }
    case 'write':
      return writeMessage(asked)
    case 'batch': {
      const { items, atomic } = asked
      const body = atomic ? { records: items } : { records: items, atomic }
      return { method: 'POST', path: `${recordsPath(asked)}/batch`, body }
    }
    case 'ingest':
    case 'ingestMany': {
      const path = asked.kind === 'ingest' ? `/v1/ingest/${asked.agent}` : '/v1/ingest'
      const query: Record<string, string> = asked.all ? { on_error: 'reject_all' } : {}
      if ('asArray' in asked)
        return { method: 'POST', path, query, body: asked.lines.map((text) => JSON.parse(text)) }
      return { method: 'POST', path, query, lines: asked.lines }
    }
    case 'addEdge': {
      const { src, dst, edgeType: edge_type, weight } = asked
      return { method: 'POST', path: '/v1/graph/edges', body: { src, dst, edge_type, weight } }
    }
    case 'mutate':
      return mutationMessage(asked.agent, asked.mutation, asked.seedHex)
    case 'vote':
      return { method: 'POST', path: `/v1/proposals/p_${asked.seq}_${asked.agent}/${asked.vote}` }
  }
}

function recordsPath({ agent, via }: { agent: string; via: string }): string {
  return `/v1/${via === 'agent' ? 'agents' : 'collections'}/${agent}/records`
}

function writeMessage(asked: { agent: string; via: string; item: Item }): Message {
  const { agent, via, item } = asked
  if (via === 'ingest') return { method: 'POST', path: `/v1/ingest/${agent}`, body: item.data }
  return { method: 'POST', path: recordsPath(asked), body: item }
}

function mutationMessage(agent: string, mutation: Mutation, seedHex: string | undefined): Message {
  const ofAgent = `/v1/agents/${agent}`
  switch (mutation.action) {
    case 'delete':
      return { method: 'DELETE', path: `${ofAgent}/records/${mutation.target}` }
    case 'restore':
    case 'erase':
      return { method: 'POST', path: `${ofAgent}/records/${mutation.target}/${mutation.action}` }
    case 'remove_edge': {
      const { edge_type, dst } = mutation
      return { method: 'DELETE', path: '/v1/graph/edges', query: { src: agent, edge_type, dst } }
    }
    case 'zone':
      return { method: 'PUT', path: `${ofAgent}/zone`, body: { zone: mutation.zone } }
    case 'policies':
      return { method: 'PUT', path: `${ofAgent}/policies`, body: { policies: mutation.policies } }
    case 'rotate_key': {
      const body = seedHex === undefined ? {} : { body: { seed_hex: seedHex } }
      return { method: 'POST', path: `${ofAgent}/rotate-key`, ...body }
    }
  }
}
