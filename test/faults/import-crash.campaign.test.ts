import { afterAll, beforeAll, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { checkedCall, headOf, newAgent } from '../support/http/answers.js'
import {
  exportOf,
  importedRecords,
  importTo,
  linesOf,
  richStrand,
  rotatedSeed,
  sharedSeed,
} from '../support/shard/imports.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/* Imports during writes by other clients, and imports that are interrupted by kills of the server. */

const RECORDS = 6_000
const WRITERS = 8
const ROUNDS = 3
const env = { ...sharedSeed, SERVICE_SHARDS: '2' }

let source: TestServer
let target: TestServer
let big = ''

beforeAll(async () => {
  source = await startServer({ env })
  target = await startServer({ env })
  await newAgent(source, 'big')
  const lines = Array.from({ length: RECORDS }, (_none, n) => JSON.stringify({ n, text: 'x'.repeat(100) }))
  for (const [query, part] of [
    ['?signing=group', lines.slice(0, RECORDS / 2)],
    ['', lines.slice(RECORDS / 2)],
  ] as const) {
    const ingested = await checkedCall(source, `POST /v1/ingest/big${query}`, {
      raw: part.join('\n'),
      headers: { 'content-type': 'application/x-ndjson' },
    })
    expect(ingested.body.accepted).toBe(RECORDS / 2)
  }
  big = await exportOf(source, 'big')
})
afterAll(async () => {
  await source.stop()
  await target.stop()
})

/**
 * Writes to one agent until the server is killed or `stopped` returns true.
 * @returns the number of acknowledged writes
 */
async function write(
  agent: string,
  { answered, stopped }: { answered(): void; stopped(): boolean },
): Promise<number> {
  let count = 0
  while (!stopped()) {
    try {
      const { status, text } = await call(target, `POST /v1/collections/${agent}/records`, {
        body: { data: { n: count } },
      })
      expect(status, text).toBe(201)
      count++
      answered()
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      return count
    }
  }
  return count
}

/** Expects the records of an export on the target, and one record after them that ends the import. */
async function expectImported(agent: string, exported: string): Promise<void> {
  const text = await exportOf(target, agent)
  expect(importedRecords(text)).toEqual(importedRecords(exported))
  const { length } = importedRecords(exported)
  expect(await verifyExport(linesOf(text))).toMatchObject({ ok: true, records: length + 1, imported: length })
}

it('an import is complete when it is repeated after each kill, and other writes are not lost', async () => {
  const counts = new Map<string, number>()
  for (let round = 1; round <= ROUNDS; round++) {
    let answers = 0
    let killed: Promise<unknown> | undefined
    const answered = () => {
      if (++answers === round * 40) killed = target.halt('SIGKILL')
    }
    const importing = call(target, 'POST /v1/strand/import', {
      raw: big,
      headers: { 'content-type': 'application/x-ndjson' },
    }).catch((error: unknown) => {
      if (!(error instanceof TypeError)) throw error
    })
    const names = Array.from({ length: WRITERS }, (_none, n) => `round-${round}-${n}`)
    const written = await Promise.all(names.map((name) => write(name, { answered, stopped: () => false })))
    await importing
    await killed
    for (const [index, name] of names.entries()) counts.set(name, written[index] ?? 0)
    target = await startServer({ env, dataDir: target.dataDir })
    // The imported records are a prefix of the strand, to which nothing can be written.
    const head = await headOf(target, 'big')
    if (head !== undefined && head.seq < RECORDS) {
      const part = linesOf(await exportOf(target, 'big'))
      expect((await verifyExport(part)).ok).toBe(true)
      expect(linesOf(big).slice(1, part.length - 1)).toEqual(part.slice(1, -1))
      const refused = await checkedCall(target, 'POST /v1/agents/big/records', { body: { data: {} } })
      expect(refused.body.code).toBe('import_open')
    }
  }
  const { status, body } = await importTo(target, big)
  expect([status, body.imported + body.skipped, body.open]).toEqual([200, RECORDS + 1, true])
  await expectImported('big', big)
  for (const [name, count] of counts) {
    if (count === 0) continue
    const head = await headOf(target, name)
    // The last one may have been written without an answer.
    expect([count, count + 1], name).toContain(head?.record_count)
  }
})

it('an import in several parts between kills preserves a strand with all kinds of records', async () => {
  for (const server of [source, target]) await newAgent(server, 'other')
  await richStrand(source, 'rich', 'other')
  const exported = await exportOf(source, 'rich')
  const { length } = linesOf(exported)
  const headers = { 'strandfast-agent-seed': rotatedSeed }
  for (const toSeq of [12, 31, length - 6]) {
    const part = await exportOf(source, 'rich', `&to_seq=${toSeq}`)
    expect((await importTo(target, part, { query: '?hold=true' })).status).toBe(200)
    await target.halt('SIGKILL')
    target = await startServer({ env, dataDir: target.dataDir })
  }
  expect((await importTo(target, exported, { headers })).body.open).toBe(true)
  await target.halt('SIGKILL')
  target = await startServer({ env, dataDir: target.dataDir })
  await expectImported('rich', exported)
})

it('an import and other writes do not block each other', async () => {
  const fresh = await startServer({ env })
  const before = target
  target = fresh
  let done = false
  try {
    let during = 0
    const names = Array.from({ length: WRITERS }, (_none, n) => `writer-${n}`)
    const writing = names.map((name) => write(name, { answered: () => during++, stopped: () => done }))
    const importing = await importTo(target, big)
    const answers = during
    done = true
    const counts = await Promise.all(writing)
    expect([importing.status, importing.body.imported]).toEqual([200, RECORDS + 1])
    expect(answers).toBeGreaterThan(WRITERS)
    for (const [index, name] of names.entries()) {
      expect((await headOf(target, name))?.record_count).toBe(counts[index])
      expect((await verifyExport(linesOf(await exportOf(target, name)))).ok).toBe(true)
    }
    await expectImported('big', big)
  } finally {
    done = true
    target = before
    await fresh.stop()
  }
})
