import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { allRoutes, type Route } from '../../src/front/routes/routes.js'
import { scopes } from '../../src/wire/api-keys.js'
import { newOrganism, registerIn } from '../support/auth/organisms.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { isCaughtUp, openStream } from '../support/http/events.js'
import { startAuthServer } from '../support/server/auth-server.js'
import type { TestServer } from '../support/server/server.js'

/*
 * Calls every route that reads, as every kind of caller, about every reserved strand, and looks for texts of
 * the strand in the answers.
 */

const strands = ['server::audit', 'acme::auth', 'default', 'acme::notes'] as const
type Strand = (typeof strands)[number]

/** The callers, by name: the credential, and the strands of whose reserved records they may learn. */
const callers = new Map<string, { key: string; reads: readonly Strand[] }>()
/** Texts that stand only in the reserved records of a strand. */
const secrets = new Map<Strand, { hash: string; texts: string[] }>()

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2' } })
  await newOrganism(server, 'acme', { agents: ['notes'] })
  await newAgent(server, 'plain')
  const rootUser = await registerIn(server, undefined, 'root-user@example.com')
  const acmeUser = await registerIn(server, 'acme', 'acme-user@example.com')
  callers.set('the root key', { key: server.rootKey, reads: strands })
  callers.set('a user of the root namespace', { key: rootUser.token, reads: [] })
  callers.set('a user of the organism', { key: acmeUser.token, reads: ['acme::notes'] })
  for (const scope of scopes) {
    const reads: Strand[] = scope === 'records:read' ? ['acme::auth', 'default', 'acme::notes'] : []
    await addKey(`a key with ${scope}`, { scopes: [scope], reads: scope === 'admin:*' ? strands : reads })
  }
  const limited: Record<string, Strand[]> = {
    'acme::*': ['acme::auth', 'acme::notes'],
    'acme::n*': ['acme::notes'],
    'server::*': [],
    'server::audit': [],
    default: ['default'],
    'plain*': [],
  }
  for (const [agents, reads] of Object.entries(limited)) {
    await addKey(`a reader of ${agents}`, { scopes: ['records:read'], agents: [agents], reads })
    await addKey(`an admin of ${agents}`, { scopes: ['admin:*'], agents: [agents], reads })
  }
  await setPolicies('acme::notes')
  await setPolicies('default')
  for (const agent of ['default', 'acme::notes']) {
    await checkedCall(server, `POST /v1/agents/${agent}/records`, {
      body: { data: { text: `a body of ${agent}` } },
    })
    for (const dst of strands) {
      const body = { src: 'plain', dst, edge_type: 'names' }
      expect((await checkedCall(server, 'POST /v1/graph/edges', { body })).status).toBe(201)
    }
  }
  for (const strand of strands) secrets.set(strand, await secretsOf(strand))
})
afterAll(() => server.stop())

async function addKey(
  name: string,
  { reads, agents = [], scopes: given }: { reads: readonly Strand[]; agents?: string[]; scopes: Scopes },
): Promise<void> {
  callers.set(name, { key: (await scopedKey(server, given, agents)).key, reads })
}
type Scopes = Parameters<typeof scopedKey>[1]

/** Lets users read the records that applications write; approved where the zone needs it. */
async function setPolicies(agent: string): Promise<void> {
  const body = { policies: [{ actions: ['read'], conditions: [] }] }
  const { status, body: answer } = await checkedCall(server, `PUT /v1/agents/${agent}/policies`, { body })
  if (status === 200) return
  const { key } = callers.get('a key with admin:*') ?? { key: '' }
  const vote = await checkedCall(server, `POST /v1/proposals/${answer.proposal_id}/approve`, { key })
  expect(vote.body.state).toBe('applied')
}

interface FoundRecord {
  record_id: string
  type: string
  payload: object
}

async function secretsOf(strand: Strand): Promise<{ hash: string; texts: string[] }> {
  const types = strand === 'acme::notes' ? ['record'] : ['auth/*', 'sys/*']
  const { records } = (
    await checkedCall(server, `POST /v1/agents/${strand}/query`, {
      body: { type: 'latest', limit: 1_000, types },
    })
  ).body
  const found: FoundRecord[] = records.filter(({ type }: FoundRecord) => type !== 'sys/policy')
  const [newest] = found
  const texts = found.flatMap(({ payload }) =>
    Object.entries(payload).flatMap(([name, value]) =>
      isSecret(name) && typeof value === 'string' ? [JSON.stringify(value)] : [],
    ),
  )
  // Users learn the hashes of records that they cannot read from proofs of the same strand (docs/FORMAT.md).
  if (strand === 'server::audit') texts.push(...found.map(({ record_id: hash }) => hash))
  expect(texts, strand).not.toEqual([])
  return { hash: newest?.record_id ?? '', texts }
}

/** Whether the values of a member of reserved records stand in no other answer. */
function isSecret(name: string): boolean {
  return ['email_hmac', 'request_id', 'text'].includes(name)
}

/** Whether a route shows what is on strands. */
function isReading({ kind, method, scope, path }: Route): boolean {
  if (scope === 'none' || kind === 'auth' || kind === 'file') return false
  return method === 'get' || (scope === 'records:read' && path !== '/v1/stream/tickets')
}

const readingRoutes = allRoutes('default').filter(isReading)

/** What stands in paths and queries, by the name of the parameter. */
function parametersOf(strand: Strand): Record<string, string> {
  const hash = secrets.get(strand)?.hash ?? ''
  return {
    agent: strand,
    hash,
    hash_digits: hash.slice(0, 16),
    organism_id: 'acme',
    agents: strand,
    types: 'auth/*,sys/*,edge/*,record',
    since: '0',
    from: '1',
    include: 'status',
    ts: new Date().toISOString(),
  }
}

/** The requests of a route about a strand: with all of these parameters, and with the required ones alone. */
function requestsOf(route: Route, strand: Strand): string[] {
  const known = parametersOf(strand)
  const path = route.path.replaceAll(/:([a-z_]+)/g, (_whole, name: string) => {
    const value = known[name]
    if (value === undefined) throw new Error(`Expected a value for :${name} of ${route.path}`)
    return encodeURIComponent(value)
  })
  const { query = {}, required = [] } = route.docs
  const named = Object.keys(query).filter((name) => known[name] !== undefined)
  const sets = [named, [...required, 'since'].filter((name) => name in query), named.filter(namesOther)]
  const texts = sets.map((names) => new URLSearchParams(names.map((name) => [name, known[name] ?? ''])))
  return [...new Set(texts.map((text) => `${path}?${text}`))]
}

function namesOther(name: string): boolean {
  return !name.startsWith('agent')
}

/** The answers to all requests of a route about a strand that were not refused. */
async function answersTo(route: Route, strand: Strand, key: string): Promise<string[]> {
  const requests = requestsOf(route, strand)
  if (route.kind === 'stream') return Promise.all(requests.map((request) => replayOf(request, key)))
  const hash = secrets.get(strand)?.hash
  const types = ['auth/*', 'sys/*', 'edge/*', 'record']
  const bodies =
    route.method === 'post'
      ? [
          { type: 'latest', limit: 1_000, types },
          { type: 'time_range', from_ts: 0, types },
          { type: 'hash', hash },
          { type: 'chain_head' },
        ]
      : [undefined]
  const answers: string[] = []
  for (const request of requests) {
    for (const body of bodies) {
      const method = route.method.toUpperCase()
      const options = body === undefined ? { key } : { key, body }
      const { status, text } = await checkedCall(server, `${method} ${request}`, options)
      expect(status, `${method} ${request}`).toBeLessThan(500)
      // Bodies are strings in exports.
      if (status < 300) answers.push(text.replaceAll('\\"', '"'))
    }
  }
  return answers
}

/** The replay of a stream, opened with a key or, as a browser does, with a ticket of the key. */
async function replayOf(path: string, key: string): Promise<string> {
  const texts: string[] = []
  const ticket = await checkedCall(server, 'POST /v1/stream/tickets', { key })
  const ways = [
    { path, key },
    ticket.status === 201 ? { path: `${path}&ticket=${ticket.body.ticket}`, key: null } : [],
  ]
  for (const way of ways.flat()) {
    const stream = await openStream(server, way.path, { key: way.key }).catch(() => undefined)
    await stream?.until(isCaughtUp)
    texts.push(stream?.text() ?? '')
    stream?.close()
  }
  return texts.join('')
}

describe('a reserved strand', () => {
  it.each(strands)(
    '%s is shown only to callers that may read it, by every route that reads',
    async (strand) => {
      const { texts = [] } = secrets.get(strand) ?? {}
      const leaks: string[] = []
      const seen = new Set<string>()
      for (const [name, { key, reads }] of callers) {
        for (const route of readingRoutes) {
          const answers = await answersTo(route, strand, key)
          const shows = answers.some((answer) => texts.some((text) => answer.includes(text)))
          if (shows && !reads.includes(strand)) leaks.push(`${route.method} ${route.path} to ${name}`)
          if (shows) seen.add(`${name} ${route.path}`)
        }
      }
      expect(leaks).toEqual([])
      // Otherwise the texts would prove nothing.
      const readers = [...callers].filter(([, { reads }]) => reads.includes(strand)).map(([name]) => name)
      for (const path of [
        '/v1/agents/:agent/query',
        '/v1/agents/:agent/stream',
        '/v1/strand/export',
        '/v1/strand/as-of',
      ])
        for (const reader of readers) expect(seen, `${path} to ${reader}`).toContain(`${reader} ${path}`)
    },
  )

  it('server::audit appears in the stream of all agents for a key with full access', async () => {
    const stream = await openStream(server, '/v1/stream?types=sys/*&since=0')
    await stream.until(isCaughtUp)
    expect(stream.events.some(({ data }) => data.agent === 'server::audit')).toBe(true)
    stream.close()
  })

  it('server::audit does not appear among the edges that a key with records:read sees', async () => {
    const { key = '' } = callers.get('a key with records:read') ?? {}
    const edges = async (as: string) => {
      const { body } = await checkedCall(server, 'GET /v1/graph/edges/plain', { key: as })
      return body.edges.map(({ dst }: { dst: string }) => dst)
    }
    expect(await edges(server.rootKey)).toEqual([...strands].sort())
    expect(await edges(key)).toEqual([...strands].sort().filter((name) => name !== 'server::audit'))
    const { body } = await checkedCall(server, 'GET /v1/graph/traverse/plain', { key })
    expect(body.nodes).not.toContain('server::audit')
  })

  it('server::audit does not appear in the live stream of all agents for a key with records:read', async () => {
    const { key = '' } = callers.get('a key with records:read') ?? {}
    const stream = await openStream(server, '/v1/stream?types=sys/*', { key })
    await stream.until(isCaughtUp)
    await scopedKey(server, ['ingest'])
    await newAgent(server, 'after')
    await stream.until((events) => events.some(({ data }) => data.agent === 'after'))
    expect(stream.events.map(({ data }) => data.agent)).not.toContain('server::audit')
    stream.close()
  })
})
