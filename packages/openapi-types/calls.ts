import createClient from 'openapi-fetch'
import type { components, paths } from './dist/openapi.js'

/*
 * The calls of examples/ and the tour, for programs that use types generated from /openapi.json instead of
 * our client. test/e2e/openapi-types.campaign.test.ts generates the types, compiles this file and runs it.
 */

/** The target of the calls: a new server with the auth add-on. */
export interface Target {
  url: string
  rootKey: string
}

type Schemas = components['schemas']

const password = 'nine slow herons by the weir'

/** The data of an answer. @throws Error with the code and the detail of a problem */
async function dataOf<T>(
  answer: Promise<{ data?: T; error?: Schemas['Problem'] | Partial<Schemas['Problem']> }>,
): Promise<T> {
  const { data, error } = await answer
  if (data === undefined) throw new Error(`${error?.code}: ${error?.detail}`)
  return data
}

/** Like examples/ingest-csv.mjs: creates an agent, and sends rows to it, one per line. */
export async function ingestRows({ url, rootKey }: Target): Promise<number> {
  const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${rootKey}` } })
  const agent = await dataOf(client.POST('/v1/agents', { body: { name: 'sensors', zone: 'free' } }))
  const ndjson = '{"sensor":"boiler-2","celsius":71.4}\n{"sensor":"boiler-2","celsius":72.1}\n'
  const summary = await dataOf(
    client.POST('/v1/ingest/{agent}', {
      params: { path: { agent: agent.name }, query: { on_error: 'keep' } },
      headers: { 'content-type': 'application/x-ndjson' },
      body: ndjson,
      bodySerializer: (text) => text,
    }),
  )
  // The answer to a single record that is not a line is that of a write.
  return 'accepted' in summary ? summary.accepted : 1
}

/** Like the tour: writes single records and a batch to a collection, and reads by hash and by condition. */
export async function writeAndRead({ url, rootKey }: Target): Promise<Schemas['RecordView'][]> {
  const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${rootKey}` } })
  const name = 'rooms'
  const first = await dataOf(
    client.POST('/v1/collections/{name}/records', {
      params: { path: { name }, header: { 'Idempotency-Key': 'first' } },
      body: { data: { room: 'hall', lit: true } },
    }),
  )
  const { results } = await dataOf(
    client.POST('/v1/collections/{name}/records/batch', {
      params: { path: { name }, header: { 'If-Match': `"${first.hash}"` } },
      body: {
        records: [{ data: { room: 'attic', lit: false } }, { data: { room: 'hall' }, type: 'closed' }],
      },
    }),
  )
  const refused = results.flatMap((item) => ('error' in item ? [item.error.detail] : []))
  if (refused.length > 0) throw new Error(refused.join())
  const path = { agent: name, hash: first.hash }
  const view = await dataOf(client.GET('/v1/agents/{agent}/records/{hash}', { params: { path } }))
  // In the zone of collections, a deletion is a proposal that waits for a delay.
  const deletion = await dataOf(client.DELETE('/v1/agents/{agent}/records/{hash}', { params: { path } }))
  if (!('proposal_id' in deletion)) throw new Error('Expected a proposal')
  const { proposal_id } = deletion
  await dataOf(client.POST('/v1/proposals/{proposal_id}/cancel', { params: { path: { proposal_id } } }))
  const query: Schemas['QueryBody'] = {
    type: 'latest',
    where: [{ field: 'lit', op: 'eq', value: false }],
  }
  const dark = await dataOf(
    client.POST('/v1/agents/{agent}/query', { params: { path: { agent: name } }, body: query }),
  )
  // The answer to a query of type chain_head is the head.
  if (!('records' in dark) || dark.next_cursor !== null) throw new Error('Expected one page')
  return [view, ...dark.records]
}

/**
 * Like examples/live-page: a ticket, the stream up to its first event, and the export that a reader checks.
 */
export async function followAndExport({ url, rootKey }: Target): Promise<[event: string, manifest: string]> {
  const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${rootKey}` } })
  const { ticket } = await dataOf(client.POST('/v1/stream/tickets'))
  const guest = createClient<paths>({ baseUrl: url })
  const stream = await dataOf(
    guest.GET('/v1/agents/{agent}/stream', {
      params: { path: { agent: 'rooms' }, query: { since: '0', ticket } },
      parseAs: 'stream',
    }),
  )
  if (stream === null) throw new Error('Expected a stream')
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  let seen = ''
  while (!/data:[^]*\n\n/.test(seen)) {
    const { done, value } = await reader.read()
    if (done) throw new Error('Expected an event before the end')
    seen += value
  }
  await reader.cancel()
  const exported = await dataOf(
    client.GET('/v1/strand/export', { params: { query: { agent: 'rooms' } }, parseAs: 'text' }),
  )
  return [seen, exported.split('\n')[0] ?? '']
}

/** The graph, a scoped key, and a proof; omitted members have their defaults. */
export async function connect({ url, rootKey }: Target): Promise<[weight: number, code: string]> {
  const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${rootKey}` } })
  const edge = await dataOf(
    client.POST('/v1/graph/edges', { body: { src: 'rooms', dst: 'sensors', edge_type: 'has' } }),
  )
  const { nodes } = await dataOf(
    client.GET('/v1/graph/traverse/{agent}', { params: { path: { agent: 'rooms' }, query: { depth: 2 } } }),
  )
  if (!nodes.includes('sensors')) throw new Error('Expected the edge to lead there')
  const head = await dataOf(client.GET('/v1/agents/{agent}/head', { params: { path: { agent: 'rooms' } } }))
  const query = { agent: 'rooms', hash: head.chain_head }
  const proof = await dataOf(client.GET('/v1/strand/proof', { params: { query } }))
  if (proof.tree_size !== head.seq + 1) throw new Error('Expected the proof to lead to the head')
  const made = await dataOf(
    client.POST('/v1/admin/api-keys', { body: { name: 'reader', scopes: ['records:read'] } }),
  )
  if (!('key' in made)) throw new Error('Expected a key without a proposal')
  const reader = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${made.key}` } })
  const { error } = await reader.POST('/v1/agents', { body: { name: 'no', zone: 'free' } })
  return [edge.weight, error?.code ?? '']
}

/**
 * Like examples/sign-in: registers, signs in and reads the user, for users of the server and of an organism.
 */
export async function signIn({
  url,
  rootKey,
}: Target): Promise<[email: string, sessions: number, ended: number]> {
  const client = createClient<paths>({ baseUrl: url })
  const email = 'ada@example.org'
  await dataOf(client.POST('/v1/auth/register', { body: { email, password } }))
  const { token, refresh_token } = await dataOf(client.POST('/v1/auth/login', { body: { email, password } }))
  const headers = { authorization: `Bearer ${token}` }
  await dataOf(client.PATCH('/v1/auth/me/user-metadata', { headers, body: { metadata: { theme: 'dark' } } }))
  const me = await dataOf(client.GET('/v1/auth/me', { headers }))
  const { sessions } = await dataOf(client.GET('/v1/auth/sessions', { headers }))
  const next = await dataOf(client.POST('/v1/auth/refresh', { body: { refresh_token } }))
  await dataOf(
    client.POST('/v1/auth/logout', {
      params: { query: { scope: 'global' } },
      headers: { authorization: `Bearer ${next.token}` },
    }),
  )
  const admin = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${rootKey}` } })
  const { organism_id } = await dataOf(admin.POST('/v1/organisms', { body: { name: 'Acme' } }))
  const path = { organism_id }
  await dataOf(admin.POST('/v1/organisms/{organism_id}/auth/init', { params: { path } }))
  const body = { email, password }
  await dataOf(client.POST('/v1/organisms/{organism_id}/auth/register', { params: { path }, body }))
  const member = await dataOf(
    client.POST('/v1/organisms/{organism_id}/auth/login', { params: { path }, body }),
  )
  const ended = await dataOf(
    client.POST('/v1/organisms/{organism_id}/auth/logout', {
      params: { path },
      headers: { authorization: `Bearer ${member.token}` },
    }),
  )
  return [me.email, sessions.length, ended.sessions]
}

/** The options for a passkey that a page passes to the browser, and the registration that it sends back. */
export async function passkey({ url }: Target, token: string): Promise<void> {
  const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } })
  const made = await dataOf(client.POST('/v1/auth/passkey/register-challenge'))
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(made.creation_options)
  const credential = await navigator.credentials.create({ publicKey })
  if (!(credential instanceof PublicKeyCredential)) throw new Error('Expected a passkey')
  const body = { session_token: made.session_token, registration: { ...credential.toJSON() } }
  await dataOf(client.POST('/v1/auth/passkey/register', { body }))
  const request = await dataOf(client.POST('/v1/auth/passkey/authenticate-challenge'))
  PublicKeyCredential.parseRequestOptionsFromJSON(request.request_options)
}
