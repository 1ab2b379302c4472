import { gzipSync } from 'node:zlib'
import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { runSeed } from '../support/run-seed.js'
import { changed, changes, expectNoFailure, fuzz } from '../support/faults/fuzzing.js'
import { exportOf, fill, importedRecords, importTo, linesOf, sharedSeed } from '../support/shard/imports.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/*
 * Changed exports: no change is imported, and the unchanged export can be imported afterwards.
 */

const seed = runSeed('fuzz-import')
const STRANDS = 12

let source: TestServer
let target: TestServer
/** A separate strand for each case, because the unchanged beginning of a changed export is imported. */
const exported: { agent: string; text: string }[] = []

beforeAll(async () => {
  source = await startServer({ env: { ...sharedSeed, SERVICE_SHARDS: '1' } })
  target = await startServer({ env: { ...sharedSeed, SERVICE_SHARDS: '2' } })
  for (let n = 0; n < STRANDS; n++) {
    const agent = `strand-${n}`
    await newAgent(source, agent)
    const [first = '', second = ''] = await fill(source, agent, { from: 0, count: 3 })
    await fill(source, agent, { from: 3, count: 4, query: '?signing=group' })
    await checkedCall(source, `DELETE /v1/agents/${agent}/records/${first}`)
    await checkedCall(source, `POST /v1/agents/${agent}/records/${second}/erase`)
    exported.push({ agent, text: await exportOf(source, agent) })
  }
})
afterAll(async () => {
  await source.stop()
  await target.stop()
})

/** The agent in a changed manifest; undefined if it cannot be parsed. */
function namedIn(sent: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(sent).toString().split('\n')[0] ?? '').agent
  } catch {
    return undefined
  }
}

/** Expects that the target has a prefix of the strand. */
async function expectPrefix(agent: string, text: string): Promise<void> {
  const answer = await call(target, `GET /v1/strand/export?agent=${agent}`)
  if (answer.status === 404) return
  expect(answer.status, answer.text).toBe(200)
  const records = importedRecords(answer.text)
  expect(records).toEqual(importedRecords(text).slice(0, records.length))
}

describe('an import', () => {
  it('accepts no change in the bytes of an export, and accepts the unchanged export afterwards', async () => {
    let next = 0
    const draw = fc.record({ by: changes, gzip: fc.boolean(), inGzip: fc.boolean() })
    const runs = Math.ceil(STRANDS / 4)
    await fuzz({ seed, runs, draw, once: true }, async ({ by, gzip, inGzip }) => {
      const { agent, text } = exported[next++] ?? { agent: '', text: '' }
      const whole = Buffer.from(text)
      const bytes = gzip && inGzip ? whole : changed(whole, by)
      const sent = gzip ? (inGzip ? changed(gzipSync(bytes), by) : gzipSync(bytes)) : bytes
      const answer = await importTo(target, sent, gzip ? { headers: { 'content-encoding': 'gzip' } } : {})
      expectNoFailure(answer)
      await expectPrefix(agent, text)
      const named = namedIn(bytes)
      // With another name the strand may be imported, because it is identified by its key.
      if (answer.status < 400 && named !== agent) return
      const again = await importTo(target, text)
      if (named !== agent && again.status === 409) return
      expect(again.status, again.text).toBe(200)
      const { text: imported } = await call(target, `GET /v1/strand/export?agent=${agent}`)
      expect(importedRecords(imported)).toEqual(importedRecords(text))
      expect(await verifyExport(linesOf(imported))).toMatchObject({ ok: true })
    })
  })

  it('accepts no change when lines are reordered, removed or doubled', async () => {
    const { agent, text } = exported[0] ?? { agent: '', text: '' }
    const lines = linesOf(text)
    const draw = fc.array(fc.constantFrom(...lines), { maxLength: lines.length + 2 })
    await fuzz({ seed, runs: 15, draw }, async (drawn) => {
      const answer = await importTo(target, drawn.map((line) => `${line}\n`).join(''))
      expectNoFailure(answer)
      await expectPrefix(agent, text)
    })
  })

  it('is refused when it is not an export', async () => {
    const draw = fc.oneof(
      fc.uint8Array({ maxLength: 2_000 }),
      fc.json().map((text) => Buffer.from(`${text}\n`)),
      fc.array(fc.json(), { maxLength: 5 }).map((texts) => Buffer.from(texts.join('\n'))),
    )
    await fuzz({ seed, runs: 25, draw }, async (bytes) => {
      const answer = await importTo(target, bytes)
      expectNoFailure(answer)
      expect(answer.status).toBeGreaterThanOrEqual(400)
    })
  })

  it('leaves the server working', async () => {
    expect((await call(target, 'GET /readyz')).status).toBe(200)
    expect(target.stderr()).toBe('')
  })
})
