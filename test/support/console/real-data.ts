import { registerMany, tryLogin } from '../auth/accounts.js'
import { newOrganism, registerIn } from '../auth/organisms.js'
import { call, type TestServer } from '../server/server.js'

/*
 * Data as a server has it after months: many agents, records, keys and users, with long and foreign names and
 * texts, in every state.
 */

/** The names of what the data consists of. */
export const realData = {
  /** The agent with records, edges and rules of every kind, in zone free. */
  busy: 'plant-7.hall_2.line-3',
  /** An agent with the longest name, in zone governed, with many proposals. */
  long: `com.example.${'very-long-name.'.repeat(7)}`.padEnd(128, 'x'),
  /** An organism with the longest id, one member and one user. */
  organism: `tenant-${'of-a-large-group-'.repeat(7)}`.slice(0, 60),
  member: 'ledger-of-the-northern-branch',
  /** A user of the root namespace with the longest e-mail, locked after failed sign-ins. */
  user: `${'name.of.a.person+and.a.tag.'.repeat(3).slice(0, 63)}x@${'mail.'.repeat(20)}example`,
  userOfOrganism: 'zoë.müller@tenant.example',
  /** The newest key, with the longest name. */
  key: `Ingest gateway of ${'the very large plant '.repeat(6)}`.slice(0, 127).padEnd(128, '7'),
} as const

/** Records of the busy agent, besides those of edges, deletions and rules. */
const RECORDS = 1_200
const AGENTS = 300
const USERS = 55
const KEYS = 110
const EDGES = 60
const PROPOSALS = 30
/** The most records of a batch. */
const BATCH = 1_000

/** Texts of many scripts and lengths, with characters that change lines, directions and widths. */
const texts = [
  'It rained in the morning',
  'Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich',
  'قياس درجة الحرارة في الطابق الثاني',
  'מדידת טמפרטורה בקומה השנייה',
  '二号车间的温度传感器读数超过了允许的最大值',
  'ห้องเครื่องที่สองมีอุณหภูมิสูงเกินกำหนด',
  'तापमान सीमा से अधिक है',
  '👩🏽‍🔬 measured 🌡️ in 🏭',
  'a\u202ereversed\u202c, a\u200bhidden space, a tab\tand a line\nbreak',
  '<img src=x onerror="alert(1)"> & "quotes" \\ \u0000 \u2028',
  'Z\u0351\u036b\u0343\u036a\u0302a\u0315\u0360l\u0489g\u0321o\u0334',
  'раураl and paypal',
  'x'.repeat(10_000),
  `https://example.com/${'a-very-long-path/'.repeat(60)}`,
  '',
] as const

/** The longest type, and types with every character that they can have. */
const types = ['reading', `${'type.of-a_record/'.repeat(4)}`.slice(0, 64), 'order/created', 'a', 'log.entry']

/** Bodies of every shape, the same for the same position. */
function bodyAt(at: number): object {
  const text = texts[at % texts.length] ?? ''
  const named = { device: `sensor-${at % 40}`, at, celsius: 20 + (at % 50) / 10, note: text }
  switch (at % 11) {
    case 0:
      return wideBody(at)
    case 1:
      return deepBody(at)
    case 2:
      return { 'naïve key with spaces': text, مفتاح: at, 'a/b~c.d': [text, at, null, true, {}, []] }
    case 3:
      return { list: Array.from({ length: 200 }, (_none, index) => index * at), of: named }
    case 4:
      return {}
    case 5:
      return {
        ...named,
        celsius: String(named.celsius),
        owner: null,
        ratio: 1e-7,
        big: 9_007_199_254_740_991,
      }
    default:
      return named
  }
}

function wideBody(at: number): object {
  const members = Array.from({ length: 80 }, (_none, index) => [
    `member_${index}_with_a_long_name`,
    at + index,
  ])
  return Object.fromEntries(members)
}

function deepBody(at: number): object {
  let body: object = { at }
  for (let depth = 0; depth < 40; depth += 1) body = { [`level_${depth}`]: body }
  return body
}

/** Creates the data on a server with sign-in (`startAuthServer`). */
export async function makeRealData(server: TestServer): Promise<void> {
  await makeAgents(server)
  await Promise.all([makeBusyAgent(server), makeProposals(server), makeKeys(server), makeUsers(server)])
}

async function makeAgents(server: TestServer): Promise<void> {
  const { busy, long } = realData
  await done(server, 'POST /v1/agents', { name: busy, zone: 'free' })
  await done(server, 'POST /v1/agents', { name: long, zone: 'governed' })
  const zones = ['free', 'governed', 'protected', 'immutable_core']
  for (const [at, zone] of zones.entries())
    await done(server, 'POST /v1/agents', { name: `zone-${at}.${zone}`, zone })
  const lines = Array.from({ length: AGENTS }, (_none, at) => {
    const agent = fleetName(at)
    return `${JSON.stringify({ agent, data: bodyAt(at), type: types[at % types.length] })}\n`
  })
  const headers = { 'content-type': 'application/x-ndjson' }
  const { body } = await call(server, 'POST /v1/ingest', { raw: lines.join(''), headers })
  if (body.accepted !== AGENTS) throw new Error(`Expected ${AGENTS} agents, got ${JSON.stringify(body)}`)
}

async function makeBusyAgent(server: TestServer): Promise<void> {
  const path = `/v1/agents/${realData.busy}`
  const hashes: string[] = []
  for (let from = 1; from <= RECORDS; from += BATCH) {
    const count = Math.min(BATCH, RECORDS - from + 1)
    hashes.push(...(await writeBatch(server, { from, count })))
  }
  for (const hash of hashes.slice(-9, -6)) await done(server, `DELETE ${path}/records/${hash}`)
  for (const hash of hashes.slice(-6, -3)) await done(server, `POST ${path}/records/${hash}/erase`)
  const { busy } = realData
  for (let at = 0; at < EDGES; at += 1) {
    const agent = fleetName(at)
    const [src, dst] = at % 3 === 0 ? [agent, busy] : [busy, agent]
    await done(server, 'POST /v1/graph/edges', { src, dst, edge_type: `feeds-${at % 4}`, weight: at / 7 })
  }
  const policies = texts.slice(0, 4).map((value) => ({
    actions: ['read', 'write'],
    conditions: [
      { field: 'note', op: 'eq', value },
      { field: 'device', op: 'in', value: ['sensor-1', '$jwt.sub'] },
    ],
    types: types.slice(0, 3),
  }))
  await done(server, `PUT ${path}/policies`, { policies })
  // Sealed records are the newest.
  await writeBatch(server, { from: RECORDS + 1, count: 5 }, '?signing=group')
}

function fleetName(at: number): string {
  return `fleet.${String(at).padStart(3, '0')}${at % 7 === 0 ? '.with-a-rather-long-name' : ''}`
}

async function writeBatch(
  server: TestServer,
  { from, count }: { from: number; count: number },
  query = '',
): Promise<string[]> {
  const records = Array.from({ length: count }, (_none, index) => ({
    data: bodyAt(from + index),
    type: types[(from + index) % types.length],
  }))
  const { results } = await done(server, `POST /v1/agents/${realData.busy}/records/batch${query}`, {
    records,
  })
  return results.map(({ content_hash: hash }: { content_hash: string }) => hash)
}

async function makeProposals(server: TestServer): Promise<void> {
  const path = `/v1/agents/${realData.long}`
  const records = Array.from({ length: PROPOSALS }, (_none, at) => ({ data: bodyAt(at) }))
  const { results } = await done(server, `POST ${path}/records/batch`, { records })
  const ids: string[] = []
  for (const { content_hash: hash } of results)
    ids.push((await done(server, `DELETE ${path}/records/${hash}`)).proposal_id)
  for (const id of ids.slice(0, 10)) await done(server, `POST /v1/proposals/${encodeURIComponent(id)}/reject`)
  const policies = [{ actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] }]
  await done(server, `PUT ${path}/policies`, { policies })
}

async function makeKeys(server: TestServer): Promise<void> {
  const names = ['Grafana', 'Zoë Müller', 'مفتاح القراءة', '車間閘道', 'раураl', '🔑 of the night shift']
  for (let at = 0; at < KEYS; at += 1) {
    const name = at < names.length ? names[at] : `Gateway ${at}`
    const scopes = at % 5 === 0 ? ['records:read', 'records:write', 'records:delete', 'ingest'] : ['ingest']
    const agents = at % 4 === 0 ? ['fleet.*', realData.long, realData.busy] : []
    await done(server, 'POST /v1/admin/api-keys', { name, scopes, agents })
  }
  const body = { name: realData.key, scopes: ['records:read'], expires_in_secs: 86_400 }
  await done(server, 'POST /v1/admin/api-keys', body)
}

async function makeUsers(server: TestServer): Promise<void> {
  const { user, organism, member, userOfOrganism } = realData
  const emails = Array.from({ length: USERS }, (_none, at) => `person.${at}@example.org`)
  await registerMany(server, [user, ...emails])
  for (let tries = 0; tries < 6; tries += 1) await tryLogin(server, user, `wrong guess number ${tries}`)
  await newOrganism(server, organism, { agents: [member] })
  await registerIn(server, organism, userOfOrganism)
}

// Tests read answers of every shape.
// oxlint-disable-next-line no-explicit-any
async function done(server: TestServer, route: string, body?: object): Promise<any> {
  const answer = await call(server, route, body === undefined ? {} : { body })
  if (answer.status >= 300) throw new Error(`${route}: ${answer.status} ${answer.text.slice(0, 400)}`)
  return answer.body
}
