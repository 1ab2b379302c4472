import { decodeJwt } from 'jose'
import type { Client } from 'pg'
import { rootKey } from '../../../../scripts/crash-loop/victim.mjs'
import { version } from '../../../../src/base/version.js'
import { fingerprintOf } from '../../../../src/data/derived-keys.js'
import { testSeed } from '../../postgres/cluster-of-one.js'
import { Clients, recordLines, strandOf } from './history.js'
import { advertised, linkAddress, nodeNames } from './hostile-cluster.js'
import { rowsOf, tablesOf } from './tables.js'

/** Recognizable values in a database, by their kind; bytes, or text in any encoding. */
export type Planted = ReadonlyMap<string, readonly (string | Buffer)[]>

const agent = 'visible-agent'
const email = 'visible.reader@example.org'
const password = 'seven visible otters on a raft'

/** Uses each feature that stores something in a cluster, with values that occur nowhere else. */
export async function plant(url: string): Promise<Planted> {
  const clients = new Clients(url)
  const from = {
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': '203.0.113.77',
      'user-agent': 'Visible-Browser/9.1',
    },
  }
  await clients.post('/v1/agents', { name: agent, zone: 'free' })
  const records = `/v1/agents/${agent}/records`
  const idempotent = {
    headers: { 'content-type': 'application/json', 'idempotency-key': 'visible-idempotency-key' },
  }
  const body = { type: 'visible-type', data: { text: 'visible body' } }
  const { body: written } = await clients.post(records, body, idempotent)
  const { body: erased } = await clients.post(records, { data: { text: 'visible body that is erased' } })
  await clients.post(`${records}/${erased.content_hash}/erase`, {})
  await clients.post('/v1/graph/edges', { src: agent, dst: agent, edge_type: 'visible-edge' })
  const conditions = [{ field: 'owner', op: 'eq', value: 'visible-policy-value' }]
  await clients.send({
    method: 'PUT',
    path: `/v1/agents/${agent}/policies`,
    ...json({ policies: [{ actions: ['read'], conditions }] }),
  })
  const { body: key } = await clients.post('/v1/admin/api-keys', {
    name: 'visible key name',
    scopes: ['ingest', 'records:read'],
    agents: [agent],
  })
  await clients.post('/v1/organisms', {
    organism_id: 'visible-organism',
    name: 'Visible Organism Name',
    agents: [{ name: 'desk', zone: 'free' }],
  })
  const { body: user } = await clients.post('/v1/auth/register', { email, password }, from)
  const metadata = { metadata: { seat: 'visible metadata' } }
  await clients.send({ method: 'PATCH', path: `/v1/auth/users/${email}/app-metadata`, ...json(metadata) })
  const { body: sent } = await clients.post('/v1/auth/magic-link/send', { email }, from)
  const exported = await clients.send({ method: 'GET', path: strandOf(agent) })
  const line = JSON.parse(recordLines(exported).at(1) ?? '{}')
  const audited = await clients.send({ method: 'GET', path: strandOf('default') })
  const hmac = /email_hmac\\*":\\*"([0-9a-f]{64})/.exec(audited.text)?.[1] ?? ''
  return new Map<string, readonly (string | Buffer)[]>([
    ['names of agents', [agent]],
    ['types of records', ['visible-type']],
    ['bodies of records', ['visible body"']],
    ['salts', [Buffer.from(line.salt, 'hex')]],
    ['hashes of records', [Buffer.from(written.content_hash, 'hex')]],
    ['signatures', [Buffer.from(line.sig, 'hex')]],
    ['public keys of agents', [JSON.parse(exported.text.split('\n')[0] ?? '{}').public_key]],
    ['edges', ['visible-edge']],
    ['row policies', ['visible-policy-value']],
    ['ids of API keys', [key.key_id]],
    ['scopes and agents of API keys', [`"scopes":["ingest","records:read"]`]],
    ['IP addresses', ['203.0.113.77']],
    ['user agents', ['Visible-Browser/9.1']],
    ['ids of users', [user.user_id]],
    ['ids of sessions', [String(decodeJwt(user.token)['sid'])]],
    ['HMACs of e-mails', [hmac]],
    ['licensees', ['Crash loop']],
    ['ids of organisms', ['visible-organism']],
    ['names of nodes', nodeNames],
    ['addresses of nodes', [advertised]],
    ['addresses of links', [linkAddress]],
    ['settings of nodes', ['SERVICE_CLUSTER_LEASE_SECS', 'SERVICE_RECORD_MAX_BYTES']],
    ['versions', [`"${version}`]],
    ['a fingerprint of the master seed', [fingerprintOf(Buffer.from(testSeed, 'hex'))]],
    // Values that no column may contain.
    ['bodies of erased records', ['visible body that is erased']],
    ['names of organisms', ['Visible Organism Name']],
    ['e-mails', [email]],
    ['passwords', [password]],
    ['metadata of users', ['visible metadata']],
    ['names of API keys', ['visible key name']],
    ['API keys', [key.key]],
    ['tokens', [user.token, user.refresh_token, sent.token]],
    ['keys of idempotent requests', ['visible-idempotency-key']],
    ['the master seed', [Buffer.from(testSeed, 'hex')]],
    ['the root key', [rootKey]],
  ])
}

function json(body: unknown): { body: string; headers: Record<string, string> } {
  return { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
}

/**
 * The kinds of planted values in each column, by table and column, in the order in which they were planted.
 */
export async function scan(database: Client, planted: Planted): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  for (const table of await tablesOf(database)) {
    const rows = await rowsOf(database, table)
    for (const { name, type } of table.columns) {
      const values = rows.map((row) => bytesOf(row[name] ?? '', type))
      const kinds = [...planted].filter(([, some]) =>
        some.some((one) => formsOf(one).some((form) => values.some((value) => value.includes(form)))),
      )
      const isNumber = type !== 'bytea' && type !== 'text'
      found.set(`${table.name}.${name}`, isNumber ? ['numbers'] : kinds.map(([kind]) => kind))
    }
  }
  return found
}

function bytesOf(value: string, type: string): Buffer {
  return type === 'bytea' ? Buffer.from(value.slice('\\x'.length), 'hex') : Buffer.from(value)
}

/** The encodings of a value. */
function formsOf(planted: string | Buffer): Buffer[] {
  const bytes = Buffer.from(planted)
  return [
    bytes,
    ...(['hex', 'base64', 'base64url'] as const).map((form) => Buffer.from(bytes.toString(form))),
  ]
}

const columnLine = /^\| `(strandfast_\w+)` +\| ([^|]+)\| ([^|]+)\|/

/** The columns in a document, and the kinds of values that it states for them, in one or several lines. */
export function documented(text: string): Map<string, string[]> {
  const listed = (cell = '') => cell.trim().split(', ')
  const found = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [, table = '', columns, kinds] = columnLine.exec(line) ?? []
    if (table === '') continue
    const clear = listed(kinds).filter((kind) => kind !== 'nothing')
    for (const column of listed(columns)) {
      const name = `${table}.${column.replaceAll('`', '')}`
      found.set(name, [...(found.get(name) ?? []), ...clear])
    }
  }
  return found
}
