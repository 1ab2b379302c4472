import { expect } from 'vitest'
import { checkedCall, newAgent, scopedKey } from '../http/answers.js'
import { call, type ServerAddress, type TestAnswer, type TestServer } from '../server/server.js'

/** The master seed of servers that import each other's exports. */
export const sharedSeed = { SERVICE_MASTER_SEED: '5a'.repeat(32) }

/** The seed of a key after a rotation. */
export const rotatedSeed = '7b'.repeat(32)

/** The options of an import request. */
export interface ImportCall {
  query?: string
  key?: string | null
  headers?: Record<string, string>
}

/** Sends an export to a server. */
export function importTo(
  server: TestServer,
  lines: string | Uint8Array,
  { query = '', key, headers }: ImportCall = {},
): Promise<TestAnswer> {
  return checkedCall(server, `POST /v1/strand/import${query}`, {
    raw: lines,
    headers: { 'content-type': 'application/x-ndjson', ...headers },
    ...(key !== undefined && { key }),
  })
}

/** The export of an agent, as text. */
export async function exportOf(server: ServerAddress, agent: string, query = ''): Promise<string> {
  const { status, text } = await call(server, `GET /v1/strand/export?agent=${agent}${query}`)
  expect(status, text).toBe(200)
  return text
}

/** The records of an export, without those from the end of an import on. */
export function importedRecords(text: string): string[] {
  const records = linesOf(text).slice(1, -1)
  const end = records.findLastIndex((line) => line.includes('\\ntype sys/imported\\n'))
  return end < 0 ? records : records.slice(0, end)
}

/** The lines of an export. */
export function linesOf(text: string): string[] {
  return text.slice(0, -1).split('\n')
}

/** Adds `count` records `{n}`, beginning with `n` = `from`. @returns their hashes */
export async function fill(
  server: TestServer,
  agent: string,
  { from, count, query = '' }: { from: number; count: number; query?: string },
): Promise<string[]> {
  const records = Array.from({ length: count }, (_none, index) => ({ data: { n: from + index } }))
  const { status, body, text } = await checkedCall(server, `POST /v1/agents/${agent}/records/batch${query}`, {
    body: { records },
  })
  expect(status, text).toBe(201)
  return body.results.map(({ id }: { id: string }) => id)
}

/**
 * Creates an agent with every kind of record on its strand: deletions, restorations, erasures, edges,
 * policies, a rotated key, records with group signing, changes of zone, and proposals that are applied,
 * rejected, cancelled and open.
 */
export async function richStrand(server: TestServer, agent: string, other: string): Promise<void> {
  await newAgent(server, agent)
  const expectDone = async (route: string, body?: unknown, key?: string): Promise<TestAnswer> => {
    const answer = await checkedCall(server, route, {
      ...(body !== undefined && { body }),
      ...(key !== undefined && { key }),
    })
    expect(answer.status, `${route}: ${answer.text}`).toBeLessThan(300)
    return answer
  }
  const hashes = await fill(server, agent, { from: 0, count: 10 })
  const sealed = await fill(server, agent, { from: 10, count: 20, query: '?signing=group' })
  const path = `/v1/agents/${agent}`
  await expectDone(`POST ${path}/records`, {
    data: { text: 'é \u2028 "\\', deep: [[{ a: null }]] },
    type: 'note',
  })
  await expectDone(`DELETE ${path}/records/${hashes[1]}`)
  await expectDone(`DELETE ${path}/records/${hashes[2]}`)
  await expectDone(`POST ${path}/records/${hashes[2]}/restore`)
  await expectDone(`POST ${path}/records/${hashes[3]}/erase`)
  await expectDone(`DELETE ${path}/records/${sealed[4]}`)
  await expectDone(`POST ${path}/records/${sealed[4]}/erase`)
  const edge = (dst: string, edge_type: string, weight?: number) =>
    expectDone('POST /v1/graph/edges', {
      src: agent,
      dst,
      edge_type,
      ...(weight !== undefined && { weight }),
    })
  await edge(other, 'feeds')
  await edge(other, 'feeds', 2.5)
  await edge(other, 'knows')
  await expectDone(`DELETE /v1/graph/edges?src=${agent}&edge_type=knows&dst=${other}`)
  const policies = [{ actions: ['read'], conditions: [{ field: 'n', op: 'lt', value: 5 }] }]
  await expectDone(`PUT ${path}/policies`, { policies })
  await expectDone(`POST ${path}/rotate-key`, { seed_hex: rotatedSeed })
  await fill(server, agent, { from: 30, count: 5 })
  await expectDone(`PUT ${path}/zone`, { zone: 'protected' })
  const { key } = await scopedKey(server, ['records:read', 'records:delete', 'proposals:decide'])
  const propose = async (hash: string | undefined) => {
    const { status, body } = await checkedCall(server, `DELETE ${path}/records/${hash}`, { key })
    expect(status).toBe(202)
    return body.proposal_id
  }
  await expectDone(`POST /v1/proposals/${await propose(hashes[5])}/approve`)
  await expectDone(`POST /v1/proposals/${await propose(hashes[6])}/reject`)
  await expectDone(`POST /v1/proposals/${await propose(hashes[7])}/cancel`, undefined, key)
  await propose(hashes[8])
  await fill(server, agent, { from: 35, count: 3, query: '?signing=group' })
}

/**
 * The answers of all routes that read an agent, which do not depend on the server. Of a long strand, only
 * every `step`th record is read individually.
 */
export async function everythingOf(
  server: TestServer,
  agent: string,
  step = 1,
): Promise<Record<string, unknown>> {
  const path = `/v1/agents/${agent}`
  const answers: Record<string, unknown> = {}
  const read = async (route: string, body?: unknown) => {
    const answer = await checkedCall(server, route, body === undefined ? {} : { body })
    answers[body === undefined ? route : `${route} ${JSON.stringify(body)}`] = [answer.status, answer.body]
    return answer.body
  }
  await read(`GET ${path}/head`)
  const all = { type: 'latest', limit: 1_000, order: 'asc', types: ['*'] }
  const { records } = await read(`POST ${path}/query`, all)
  await read(`POST ${path}/query`, {
    type: 'latest',
    limit: 1_000,
    where: [{ field: 'n', op: 'gt', value: 3 }],
  })
  for (let index = 0; index < records.length; index += step) {
    const { record_id: hash, timestamp_hlc: hlc } = records[index]
    await read(`GET ${path}/records/${hash}`)
    const asOf = await read(`GET /v1/strand/as-of?agent=${agent}&ts=${hlc}&limit=1000`)
    delete asOf.checkpoint
    await read(`GET /v1/graph/edges/${agent}?as_of=${hlc}`)
  }
  const [middle] = records.slice(records.length / 2)
  await read(`POST ${path}/query`, {
    type: 'time_range',
    from_ts: middle.timestamp_hlc,
    to_ts: middle.timestamp_hlc,
  })
  await read(`GET ${path}/policies`)
  await read(`GET /v1/graph/edges/${agent}?direction=out`)
  await read(`GET /v1/graph/traverse/${agent}?depth=2`)
  const { proposals } = await read(`GET /v1/proposals?agent=${agent}`)
  // A time comes from the clock of the record after an import, and from the clock of the row before it, which
  // differ.
  for (const one of proposals) {
    delete one.created_at_ms
    delete one.ended_at_ms
    for (const vote of one.votes) delete vote.at_ms
  }
  const { bytes: _bytes, ...status } = await read(`GET ${path}/status`)
  answers[`GET ${path}/status`] = status
  return answers
}
