import type { TestCall } from '../support/server/server.js'
import type { ModelRequest, Call, Item, Mutation } from './world.js'

/* Calls as HTTP requests. */

/** The route and the options of a call. */
export function requestOf(call: Call): { route: string; options: TestCall } {
  const { request, by, idempotencyKey, ifMatch } = call
  const headers: Record<string, string> = {}
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  if (ifMatch !== undefined) headers['if-match'] = `"${ifMatch}"`
  const { method, path, query = {}, body, lines } = messageOf(request)
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

function messageOf(request: ModelRequest): Message {
  switch (request.kind) {
    case 'createAgent': {
      const { agent: name, zone, seedHex } = request
      return { method: 'POST', path: '/v1/agents', body: { name, zone, seed_hex: seedHex } }
    }
    case 'write':
      return writeMessage(request)
    case 'batch': {
      const { items, atomic } = request
      const body = atomic ? { records: items } : { records: items, atomic }
      return { method: 'POST', path: `${recordsPath(request)}/batch`, body }
    }
    case 'ingest':
    case 'ingestMany': {
      const path = request.kind === 'ingest' ? `/v1/ingest/${request.agent}` : '/v1/ingest'
      const query: Record<string, string> = request.all ? { on_error: 'reject_all' } : {}
      if ('asArray' in request)
        return { method: 'POST', path, query, body: request.lines.map((text) => JSON.parse(text)) }
      return { method: 'POST', path, query, lines: request.lines }
    }
    case 'addEdge': {
      const { src, dst, edgeType: edge_type, weight } = request
      return { method: 'POST', path: '/v1/graph/edges', body: { src, dst, edge_type, weight } }
    }
    case 'mutate':
      return mutationMessage(request.agent, request.mutation, request.seedHex)
    case 'vote':
      return { method: 'POST', path: `/v1/proposals/p_${request.seq}_${request.agent}/${request.vote}` }
  }
}

function recordsPath({ agent, via }: { agent: string; via: string }): string {
  return `/v1/${via === 'agent' ? 'agents' : 'collections'}/${agent}/records`
}

function writeMessage(request: { agent: string; via: string; item: Item }): Message {
  const { agent, via, item } = request
  if (via === 'ingest') return { method: 'POST', path: `/v1/ingest/${agent}`, body: item.data }
  return { method: 'POST', path: recordsPath(request), body: item }
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
