import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { between, pick } from '../../../scripts/crash-loop/seeded-random.mjs'
import { structureFault } from '../../../src/store-files/lmdb-file.js'
import { storeFault } from '../../../src/cli/doctor-data.js'
import { registerMany, tryLogin, usualPassword } from '../auth/accounts.js'
import { checkedCall } from '../http/answers.js'
import { startAuthServer } from '../server/auth-server.js'
import { addEdge, makeAgents, removeEdge } from '../shard/graph.js'
import { call, startServer, type TestAnswer, type TestServer } from '../server/server.js'

type Random = () => number

const PAGE_BYTES = 4_096
/** More records than the hash index holds in memory, so that its runs are read, too. */
const INGESTED = 17_000
const AGENTS = 40
/** The offset in a meta page of the lowest byte of its transaction number. */
const LOWEST_OF_TRANSACTION = 152
const dataFile = join('shard-0', 'data.mdb')

/** A read, or the repetition of a write with its Idempotency-Key. */
export interface Reading {
  route: string
  body?: unknown
  headers?: Record<string, string>
}

/** An undamaged data directory with rows in every table, and the right answers to reads of it. */
export interface SoundStore {
  directory: string
  readings: { reading: Reading; answer: string }[]
  /** Page numbers by table and kind of page. */
  pages: Map<string, number[]>
}

// Proposals stay open for as long as the tests take.
const env = { SERVICE_SHARDS: '1', SERVICE_GOVERNED_AUTO_APPROVE_SECS: '86400' }

/** Creates the directory. */
export async function makeSoundStore(directory: string): Promise<SoundStore> {
  const readings: Reading[] = []
  let server = await startAuthServer({ dataDir: directory, env })
  await fill(server, readings)
  const users = ['one@example.org', 'two@example.org', 'three@example.org']
  await registerMany(server, users)
  for (const email of users) await tryLogin(server, email, usualPassword)
  await server.halt()
  server = await startOn(directory)
  const answered: SoundStore['readings'] = []
  for (const reading of readings) answered.push({ reading, answer: (await read(server, reading)).text })
  await server.halt()
  rmSync(join(directory, 'shard-0', 'lock.mdb'))
  const pages = new Map<string, number[]>([
    ['meta', [0, 1]],
    ['any', []],
  ])
  structureFault(join(directory, dataFile), {
    page(pageNo, { table, kind }) {
      const name = `${table} ${kind}`
      pages.set(name, [...(pages.get(name) ?? []), pageNo])
      pages.get('any')?.push(pageNo)
    },
  })
  return { directory, readings: answered, pages }
}

/** Starts a server on the directory, with the auth add-on. */
export function startOn(directory: string): Promise<TestServer> {
  return startServer({ dataDir: directory, env: { ...env, SERVICE_AUTH_ENABLED: 'true' } })
}

/** Sends a read. @throws TypeError if the server aborts the answer */
export async function read(
  server: TestServer,
  { route, body, headers }: Reading,
): Promise<{ status: number; text: string }> {
  const { status, text } = await call(server, route, {
    ...(body !== undefined && { body }),
    ...(headers !== undefined && { headers }),
  })
  return { status, text: status < 500 ? `${status} ${text.replace(/"request_id":"[^"]*"/, '')}` : '' }
}

/** Copies a directory. */
export function copyStore(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { mode: 0o700 })
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (entry.isDirectory()) copyStore(join(from, entry.name), join(to, entry.name))
    else copyFileSync(join(from, entry.name), join(to, entry.name))
  }
}

/** Flips one bit in the used part of a page. @returns a description */
export function flipBit(directory: string, pageNo: number, random: Random): string {
  const file = join(directory, dataFile)
  const bytes = readFileSync(file)
  const page = bytes.subarray(pageNo * PAGE_BYTES, (pageNo + 1) * PAGE_BYTES)
  const at = pick(random, usedBytes(page, pageNo))
  const bit = between(random, 0, 7)
  page[at] = (page[at] ?? 0) ^ (1 << bit)
  writeFileSync(file, bytes)
  return `bit ${bit} of byte ${at} of page ${pageNo}`
}

/** Flips the lowest bit of the last byte of a row's key, which is in one of the given leaf pages. */
export function flipKeyBit(directory: string, pages: readonly number[], key: string): void {
  const file = join(directory, dataFile)
  const bytes = readFileSync(file)
  for (const pageNo of pages) {
    const page = bytes.subarray(pageNo * PAGE_BYTES, (pageNo + 1) * PAGE_BYTES)
    for (let row = 0; row < page.readUInt16LE(20) / 2; row++) {
      const node = 24 + page.readUInt16LE(24 + 2 * row)
      const end = node + 8 + page.readUInt16LE(node + 6)
      if (page.toString('latin1', node + 8, end) !== key) continue
      page[end - 1] = (page[end - 1] ?? 0) ^ 1
      writeFileSync(file, bytes)
      return
    }
  }
  throw new Error(`Expected a row with the key ${key}`)
}

/** Truncates the data file. @returns a description */
export function truncateFile(directory: string, random: Random): string {
  const file = join(directory, dataFile)
  const bytes = readFileSync(file)
  const length =
    random() < 0.5
      ? between(random, 0, bytes.length - 1)
      : PAGE_BYTES * between(random, 0, bytes.length / PAGE_BYTES - 1)
  writeFileSync(file, bytes.subarray(0, length))
  return `cut to ${length} bytes`
}

/** The fault that `strandfast doctor` finds in a directory's store, if any. */
export function faultFound(directory: string): string | undefined {
  return storeFault(join(directory, dataFile))
}

function usedBytes(page: Buffer, pageNo: number): number[] {
  const all = Array.from({ length: PAGE_BYTES }, (_none, at) => at)
  // The transaction numbers decide which of the two meta pages is current; the other one is valid, too.
  if (pageNo < 2) return all.slice(0, 168).filter((at) => at !== LOWEST_OF_TRANSACTION)
  const flags = page.readUInt16LE(18)
  if (flags !== 1 && flags !== 2) return all
  const [lower, upper] = [24 + page.readUInt16LE(20), 24 + page.readUInt16LE(22)]
  return all.filter((at) => at < lower || at >= upper)
}

async function post(server: TestServer, route: string, body: unknown): Promise<TestAnswer['body']> {
  return (await checkedCall(server, route, { body })).body
}

/** Writes rows into every table, and adds reads of them to `readings`. */
async function fill(server: TestServer, readings: Reading[]): Promise<void> {
  const names = Array.from({ length: AGENTS }, (_none, n) => `agent-${n}`)
  await makeAgents(server, names)
  const hashes: string[] = []
  for (const [n, name] of names.entries()) {
    const pad = 'x'.repeat(n % 10 === 0 ? 20_000 : 100 * (n % 10))
    const body = { data: { n, pad } }
    const headers = { 'idempotency-key': `key-${n}` }
    const { body: written } = await checkedCall(server, `POST /v1/agents/${name}/records`, { body, headers })
    hashes.push(written.content_hash)
    if (n % 4 === 0) readings.push({ route: `POST /v1/agents/${name}/records`, body, headers })
    readings.push({ route: `GET /v1/agents/${name}/records/${written.content_hash}` })
    const next = names[(n + 1) % names.length] ?? ''
    await addEdge(server, [name, next, 'next', n])
    if (n % 3 === 0) await addEdge(server, [name, next, 'next', n + 0.5])
    if (n % 5 === 0) await removeEdge(server, [name, next, 'next'])
  }
  for (const n of [1, 2, 3]) await checkedCall(server, `DELETE /v1/agents/agent-${n}/records/${hashes[n]}`)
  for (const n of [4, 5]) await checkedCall(server, `POST /v1/agents/agent-${n}/records/${hashes[n]}/erase`)
  await checkedCall(server, 'PUT /v1/agents/agent-6/zone', { body: { zone: 'governed' } })
  await checkedCall(server, `DELETE /v1/agents/agent-6/records/${hashes[6]}`)
  await checkedCall(server, 'PUT /v1/agents/agent-7/policies', {
    body: { policies: [{ actions: ['read'], conditions: [{ field: 'n', op: 'eq', value: 7 }] }] },
  })
  await post(server, 'POST /v1/organisms', { organism_id: 'first', name: 'First' })
  await post(server, 'POST /v1/admin/api-keys', { name: 'reader', scopes: ['records:read'] })
  const lines = Array.from({ length: INGESTED }, (_none, n) => JSON.stringify({ n })).join('\n')
  await call(server, 'POST /v1/ingest/many?signing=group', {
    raw: lines,
    headers: { 'content-type': 'application/x-ndjson' },
  })
  const { records } = await post(server, 'POST /v1/agents/many/query', { type: 'latest', limit: 1_000 })
  for (const { record_id } of records.slice(0, 200).filter((_one: unknown, n: number) => n % 20 === 0))
    readings.push({ route: `GET /v1/agents/many/records/${record_id}` })
  const early = await post(server, 'POST /v1/agents/many/query', { type: 'time_range', limit: 40 })
  for (const { record_id } of early.records)
    readings.push({ route: `GET /v1/agents/many/records/${record_id}` })
  readings.push(
    { route: 'GET /v1/agents?limit=1000' },
    { route: 'GET /v1/strand/export?agent=many' },
    { route: 'POST /v1/agents/many/query', body: { type: 'latest', limit: 100 } },
    { route: 'GET /v1/proposals' },
    { route: 'GET /v1/organisms' },
    { route: 'GET /v1/organisms/first' },
    { route: 'GET /v1/admin/api-keys' },
    { route: 'GET /v1/graph/traverse/agent-1?depth=3' },
    ...names.flatMap((name) => [
      { route: `GET /v1/agents/${name}/status` },
      { route: `GET /v1/strand/export?agent=${name}` },
      { route: `GET /v1/graph/edges/${name}?direction=out` },
      { route: `GET /v1/graph/edges/${name}?direction=in` },
    ]),
    { route: 'GET /v1/agents/agent-7/policies' },
  )
}
