import { gzipSync } from 'node:zlib'
import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { ask, newAgent } from '../support/http/answers.js'
import { runSeed } from '../support/run-seed.js'
import { changed, changes, expectNoFailure, fuzz } from '../support/faults/fuzzing.js'
import { exportOf, fill, importTo, linesOf, sharedSeed } from '../support/shard/imports.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/*
 * Exports that were changed somewhere: no change is taken in, and none of them keeps the true strand from being taken in
 * afterwards.
 */

const seed = runSeed('fuzz-import')
const STRANDS = 12

let source: TestServer
let target: TestServer
/** What was changed before was taken in as far as it is true, so each case has a strand of its own. */
const exported: { agent: string; text: string }[] = []

beforeAll(async () => {
  source = await startServer({ env: { ...sharedSeed, SERVICE_SHARDS: '1' } })
  target = await startServer({ env: { ...sharedSeed, SERVICE_SHARDS: '2' } })
  for (let n = 0; n < STRANDS; n++) {
    const agent = `strand-${n}`
    await newAgent(source, agent)
    const [first = '', second = ''] = await fill(source, agent, { from: 0, count: 3 })
    await fill(source, agent, { from: 3, count: 4, query: '?signing=group' })
    await ask(source, `DELETE /v1/agents/${agent}/records/${first}`)
    await ask(source, `POST /v1/agents/${agent}/records/${second}/erase`)
    exported.push({ agent, text: await exportOf(source, agent) })
  }
})
afterAll(async () => {
  await source.stop()
  await target.stop()
})

/** The agent that a changed manifest names; undefined where it cannot be read. */
function namedIn(sent: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(sent).toString().split('\n')[0] ?? '').agent
  } catch {
    return undefined
  }
}

/** Records of an export, without manifest and trailer. */
function recordsOf(text: string): string[] {
  return linesOf(text).slice(1, -1)
}

/** What the target has of a strand is a beginning of it. */
async function expectTrue(agent: string, text: string): Promise<void> {
  const answer = await call(target, `GET /v1/strand/export?agent=${agent}`)
  if (answer.status === 404) return
  expect(answer.status, answer.text).toBe(200)
  const records = recordsOf(answer.text)
  expect(records).toEqual(recordsOf(text).slice(0, records.length))
}

describe('an import', () => {
  it('accepts nothing false from changed bytes, and the true export after it', async () => {
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
      await expectTrue(agent, text)
      const named = namedIn(bytes)
      // Under another name the strand may be taken in: its key is what it is known by.
      if (answer.status < 400 && named !== agent) return
      const again = await importTo(target, text)
      if (named !== agent && again.status === 409) return
      expect(again.status, again.text).toBe(200)
      const { text: imported } = await call(target, `GET /v1/strand/export?agent=${agent}`)
      expect(recordsOf(imported)).toEqual(recordsOf(text))
      expect(await verifyExport(linesOf(imported))).toMatchObject({ ok: true })
    })
  })

  it('accepts nothing false from lines in another order, left out, or doubled', async () => {
    const { agent, text } = exported[0] ?? { agent: '', text: '' }
    const lines = linesOf(text)
    const draw = fc.array(fc.constantFrom(...lines), { maxLength: lines.length + 2 })
    await fuzz({ seed, runs: 15, draw }, async (drawn) => {
      const answer = await importTo(target, drawn.map((line) => `${line}\n`).join(''))
      expectNoFailure(answer)
      await expectTrue(agent, text)
    })
  })

  it('is refused when it is no export', async () => {
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

  it('has harmed nothing', async () => {
    expect((await call(target, 'GET /readyz')).status).toBe(200)
    expect(target.stderr()).toBe('')
  })
})
