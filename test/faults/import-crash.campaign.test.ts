import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { checkedCall, headOf, newAgent } from '../support/http/answers.js'
import {
  everythingOf,
  exportOf,
  fill,
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
  expect(await exportOf(target, 'big')).toBe(big)
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
  expect(await exportOf(target, 'rich')).toBe(exported)
  expect(await everythingOf(target, 'rich', 3)).toEqual(await everythingOf(source, 'rich', 3))
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
    expect(await exportOf(target, 'big')).toBe(big)
  } finally {
    done = true
    target = before
    await fresh.stop()
  }
})

it('imports in both directions bring an old copy of a server up to date', async () => {
  const first = await startServer({ env })
  const copy = mkdtempSync(join(tmpdir(), 'strandfast-'))
  await richStrand(first, 'rich', await newAgent(first, 'other'))
  await newAgent(first, 'plain')
  await fill(first, 'plain', { from: 0, count: 5 })
  await first.halt()
  cpSync(first.dataDir, copy, { recursive: true })
  let now = await startServer({ env, dataDir: first.dataDir })
  let old = await startServer({ env, dataDir: copy })
  try {
    for (let round = 0; round < 2; round++) {
      for (const agent of ['plain', 'rich']) {
        const hashes = await fill(now, agent, { from: 1_000 * round, count: 100, query: '?signing=group' })
        await checkedCall(now, `DELETE /v1/agents/${agent}/records/${hashes[7]}`)
        const { body } = await importTo(old, await exportOf(now, agent))
        expect([body.imported, body.open]).toEqual([101, true])
        // The old copy writes, too, and its records are imported into the current server.
        await fill(old, agent, { from: 1_000 * round + 500, count: 3 })
        expect((await importTo(now, await exportOf(old, agent))).body.imported).toBe(3)
      }
      await old.halt(round === 0 ? 'SIGKILL' : 'SIGTERM')
      old = await startServer({ env, dataDir: copy })
    }
    for (const agent of ['plain', 'rich']) {
      expect(await exportOf(old, agent)).toBe(await exportOf(now, agent))
      expect(await everythingOf(old, agent, 29)).toEqual(await everythingOf(now, agent, 29))
    }
    await now.halt()
    now = await startServer({ env, dataDir: first.dataDir })
    expect(await exportOf(now, 'plain')).toBe(await exportOf(old, 'plain'))
  } finally {
    await now.stop()
    await old.stop()
  }
})
