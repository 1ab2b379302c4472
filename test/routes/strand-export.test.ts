// @run through a standby
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exportRoute } from '../../src/front/routes/strand-export.js'
import type { VerifiedExport } from '../../src/proof/export-check.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import {
  checkedCall,
  headOf,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { startServer, type TestAnswer, type TestServer } from '../support/server/server.js'

let server: TestServer
let publicKey = ''

beforeAll(async () => {
  server = await startServer()
  await newAgent(server, 'a')
  publicKey = (await checkedCall(server, 'GET /v1/agents/a/status')).body.public_key
  const batch = (query: string, count: number) =>
    checkedCall(server, `POST /v1/agents/a/records/batch${query}`, {
      body: { records: Array.from({ length: count }, (_none, n) => ({ data: { n, text: 'é\n"' } })) },
    })
  // Seqs 1-10 are signed individually, 11-30 are sealed by 30, 31-35 are signed individually, 36 is a
  // tombstone.
  await batch('', 10)
  await batch('?signing=group', 20)
  const { body } = await batch('', 5)
  await checkedCall(server, `DELETE /v1/agents/a/records/${body.results[0].id}`)
})
afterAll(() => server.stop())

const exported = (query: string) => checkedCall(server, `GET /v1/strand/export?agent=a${query}`)

function linesOf({ text }: TestAnswer): string[] {
  expect(text.endsWith('\n')).toBe(true)
  return text.slice(0, -1).split('\n')
}

async function verified(answer: TestAnswer, key = publicKey): Promise<VerifiedExport> {
  const result = await verifyExport(linesOf(answer), { publicKey: key })
  if (!result.ok) throw new Error(result.reason)
  return result
}

describe('an export', () => {
  it('verifies with only its lines and the key', async () => {
    const answer = await exported('')
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="a.ndjson"')
    const head = await headOf(server, 'a')
    expect(await verified(answer)).toMatchObject({
      agent: 'a',
      records: 37,
      firstSeq: 0,
      lastSeq: 36,
      sealed: 19,
      signaturesChecked: 18,
      erased: 0,
      checkpoint: true,
      partial: false,
      chainHead: head?.chain_head,
    })
    const manifest = JSON.parse(linesOf(answer)[0] ?? '')
    expect(manifest).toMatchObject({ format: 'strand-export/v1', from_seq: 0, to_seq: 36, record_count: 36 })
  })

  it('does not verify with a body left out and marked as erased, unlike a real erasure', async () => {
    const name = 'forgetful'
    await newAgent(server, name)
    const key = (await checkedCall(server, `GET /v1/agents/${name}/status`)).body.public_key
    const records = [1, 2, 3].map((n) => ({ data: { n } }))
    const { body } = await checkedCall(server, `POST /v1/agents/${name}/records/batch`, { body: { records } })
    const before = linesOf(await checkedCall(server, `GET /v1/strand/export?agent=${name}`))
    expect(JSON.parse(before.at(-1) ?? '')).toMatchObject({ records: 4, record_count: 3 })
    const stripped = (lines: string[], at: number) => {
      const { h, sig } = JSON.parse(lines[at] ?? '')
      return lines.with(at, JSON.stringify({ h, sig, erased: true }))
    }
    expect(await verifyExport(stripped(before, 2), { publicKey: key })).toEqual({
      ok: false,
      seq: 1,
      line: 3,
      reason: 'The body is missing, and no sys/erase record names it',
    })
    await checkedCall(server, `POST /v1/agents/${name}/records/${body.results[0].id}/erase`)
    const after = linesOf(await checkedCall(server, `GET /v1/strand/export?agent=${name}`))
    const found = await verifyExport(after, { publicKey: key })
    expect(found).toMatchObject({ ok: true, erased: 1 })
    expect(found).not.toHaveProperty('unexplained')
    expect(await verifyExport(stripped(after, 3), { publicKey: key })).toMatchObject({ ok: false, seq: 2 })
    const part = linesOf(await checkedCall(server, `GET /v1/strand/export?agent=${name}&to_seq=2`))
    expect(await verifyExport(part, { publicKey: key })).toMatchObject({
      ok: true,
      unexplained: { count: 1, firstSeq: 1 },
    })
  })

  it('does not verify with a changed byte or another key', async () => {
    const lines = linesOf(await exported(''))
    const forged = lines.with(5, (lines[5] ?? '').replace('\\"n\\":', '\\"m\\":'))
    expect(forged[5]).not.toBe(lines[5])
    expect((await verifyExport(forged, { publicKey })).ok).toBe(false)
    expect((await verifyExport(lines.toSpliced(5, 1), { publicKey })).ok).toBe(false)
    expect((await verifyExport(lines.slice(0, -1), { publicKey })).ok).toBe(false)
    const { body } = await checkedCall(server, 'GET /v1/agents/default/status')
    expect((await verifyExport(lines, { publicKey: body.public_key })).ok).toBe(false)
  })

  it.each([
    ['&to_seq=0', 0, 0],
    ['&to_seq=10', 0, 10],
    ['&from_seq=3&to_seq=7', 3, 7],
    ['&from_seq=5&to_seq=5', 5, 5],
    // A sealed end is extended to the sealing record.
    ['&to_seq=11', 0, 30],
    ['&to_seq=29', 0, 30],
    ['&from_seq=15&to_seq=20', 15, 30],
    ['&to_seq=30', 0, 30],
    ['&from_seq=31', 31, 36],
    ['&from_seq=36', 36, 36],
    ['&to_seq=999999', 0, 36],
  ])(
    'verifies and contains the records of its query: %s, from %i to %i',
    async (query, firstSeq, lastSeq) => {
      const result = await verified(await exported(query))
      expect(result).toMatchObject({ firstSeq, lastSeq, records: lastSeq - firstSeq + 1, checkpoint: true })
      expect(result.partial).toBe(firstSeq > 0)
    },
  )

  it('uses the default agent if none is named', async () => {
    const answer = await checkedCall(server, 'GET /v1/strand/export')
    const { body } = await checkedCall(server, 'GET /v1/agents/default/status')
    expect(await verified(answer, body.public_key)).toMatchObject({ agent: 'default', records: 1 })
  })

  it('verifies across several pages, while other clients write', async () => {
    const agent = await newAgent(server, 'big')
    const records = Array.from({ length: 300 }, (_none, n) => ({ data: { n, text: 'x'.repeat(2_000) } }))
    for (const query of ['', '?signing=group']) {
      await checkedCall(server, `POST /v1/agents/${agent}/records/batch${query}`, { body: { records } })
    }
    const { body } = await checkedCall(server, `GET /v1/agents/${agent}/status`)
    const writing = Array.from({ length: 50 }, () =>
      checkedCall(server, `POST /v1/agents/${agent}/records/batch?signing=group`, {
        body: { records: records.slice(0, 5) },
      }),
    )
    const exporting = Array.from({ length: 4 }, () =>
      checkedCall(server, `GET /v1/strand/export?agent=${agent}`),
    )
    for (const answer of await Promise.all(exporting)) {
      expect((await verified(answer, body.public_key)).records).toBeGreaterThanOrEqual(601)
    }
    await Promise.all(writing)
    const whole = await verified(
      await checkedCall(server, `GET /v1/strand/export?agent=${agent}`),
      body.public_key,
    )
    expect(whole.records).toBe(851)
  })

  it('answers 400 for an invalid range, and 404 for a missing agent', async () => {
    for (const query of [
      '&from_seq=-1',
      '&from_seq=x',
      '&from_seq=',
      '&to_seq=1.5',
      '&from_seq=5&to_seq=4',
      '&from_seq=37',
      '&from_seq=281474976710655',
      '&to_seq=281474976710656',
      '&from_seq=9007199254740993',
    ]) {
      const refused = await exported(query)
      expect([query, refused.status, refused.body.code]).toEqual([query, 400, 'validation_failed'])
    }
    const absent = await checkedCall(server, 'GET /v1/strand/export?agent=absent')
    expect([absent.status, absent.body.code]).toEqual([404, 'agent_not_found'])
    expect((await checkedCall(server, 'GET /v1/strand/export?agent=')).status).toBe(400)
  })

  it('requires the scope to read, and writes nothing', async () => {
    const { key } = await scopedKey(server, ['records:write', 'ingest'])
    await expectUnchanged(server, 'a', async () => {
      expect((await checkedCall(server, 'GET /v1/strand/export?agent=a', { key })).status).toBe(403)
      expect((await checkedCall(server, 'GET /v1/strand/export?agent=a', { key: null })).status).toBe(401)
      expect((await exported('')).status).toBe(200)
    })
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses([exportRoute('default')])).toEqual([])
})
