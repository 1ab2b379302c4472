import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkedCall, headOf, newAgent } from '../../support/http/answers.js'
import { importTo } from '../../support/shard/imports.js'
import { eventually } from '../../support/eventually.js'
import { ForgedStrand } from '../../support/proof/lying-prover.js'
import { openUpload, untilRequestsInFlight } from '../../support/http/open-upload.js'
import { startServer, testRootKey, type TestServer } from '../../support/server/server.js'

/* An import reserves no name and changes nothing before its trailer is valid. */

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const open = (query = '?hold=true') =>
  openUpload(server, `/v1/strand/import${query}`, { key: testRootKey, contentType: 'application/x-ndjson' })

/** Number of stage files of unfinished imports. */
const stageFiles = () => new Set(stageNames()).size

/** The names of the two files of each import. */
const stageNames = () =>
  readdirSync(join(server.dataDir, 'importing')).map((name) => name.replace('.index', ''))

/** An export of several parts, and the offset of its last line. */
function exportOf(agent: string): { strand: ForgedStrand; file: Buffer; trailerAt: number } {
  const strand = new ForgedStrand(agent, 9)
  for (let n = 1; n <= 3_000; n++) strand.write(`{"n":${n}}`)
  const file = strand.export()
  return { strand, file, trailerAt: file.lastIndexOf('\n', file.length - 2) + 1 }
}

it('is imported completely at its end, and invisible before', async () => {
  const { file, trailerAt, strand } = exportOf('quiet')
  const upload = open()
  upload.send(file.subarray(0, trailerAt))
  await eventually(() => stageFiles() === 1)
  expect((await checkedCall(server, 'GET /v1/agents/quiet')).status).toBe(404)
  expect((await checkedCall(server, 'GET /v1/agents')).body.agents).not.toContain('quiet')
  upload.send(file.subarray(trailerAt))
  upload.sent.end()
  const { status, body } = await upload.answered
  expect([status, body.imported, body.chain_head]).toEqual([200, 3_001, strand.records.at(-1)?.hash])
  await eventually(() => stageFiles() === 0)
})

it('does not reserve its name, and is refused if the agent was created in the meantime', async () => {
  const { file, trailerAt } = exportOf('taken')
  const upload = open()
  upload.send(file.subarray(0, trailerAt))
  await eventually(() => stageFiles() === 1)
  await newAgent(server, 'taken')
  upload.send(file.subarray(trailerAt))
  upload.sent.end()
  const { status, body } = await upload.answered
  expect([status, body.code, body.imported]).toEqual([409, 'agent_exists', 0])
  expect((await headOf(server, 'taken'))?.seq).toBe(0)
})

it('leaves nothing if its client disconnects', async () => {
  const { file, trailerAt } = exportOf('gone')
  const upload = open()
  upload.answered.catch(() => undefined)
  upload.send(file.subarray(0, trailerAt))
  await eventually(() => stageFiles() === 1)
  upload.sent.destroy()
  await eventually(() => stageFiles() === 0)
  expect((await checkedCall(server, 'GET /v1/agents/gone')).status).toBe(404)
  const audit = await checkedCall(server, 'GET /v1/strand/export?agent=server::audit')
  expect(audit.text).not.toContain('\\"gone\\"')
})

it('is refused at the start if the name belongs to another strand', async () => {
  await newAgent(server, 'held')
  const { file, trailerAt } = exportOf('held')
  const upload = open()
  // Never ended: the answer does not wait for the end.
  upload.send(file.subarray(0, trailerAt))
  const { status, body } = await upload.answered
  expect([status, body.code]).toEqual([409, 'agent_exists'])
})

it('leaves nothing if the server is killed', async () => {
  const { file, trailerAt } = exportOf('killed')
  const upload = open()
  upload.answered.catch(() => undefined)
  upload.send(file.subarray(0, trailerAt))
  await untilRequestsInFlight(server, 1)
  await eventually(() => stageFiles() === 1)
  await server.halt('SIGKILL')
  server = await startServer({ dataDir: server.dataDir, env: { SERVICE_SHARDS: '2' } })
  expect(stageFiles()).toBe(0)
  expect((await checkedCall(server, 'GET /v1/agents/killed')).status).toBe(404)
})

it('leaves nothing if a record of a late part names a record of an early part wrongly', async () => {
  const deletion = (strand: ForgedStrand, target: string | undefined, seq: number) =>
    strand.write(`{"principal":"root","target":"${target}","target_seq":${seq}}`, { type: 'sys/tombstone' })
  const { strand } = exportOf('naming')
  deletion(strand, strand.records[5]?.hash, 5)
  const bad = deletion(strand, strand.records[6]?.hash, 5).export()
  const refused = await importTo(server, bad, { query: '?hold=true' })
  expect([refused.status, refused.body.code, refused.body.seq]).toEqual([422, 'import_rejected', 3_002])
  expect((await checkedCall(server, 'GET /v1/agents/naming/head')).status).toBe(404)
  const { strand: other } = exportOf('naming')
  const good = await importTo(server, deletion(other, other.records[5]?.hash, 5).export(), {
    query: '?hold=true',
  })
  expect([good.status, good.body.imported]).toEqual([200, 3_002])
})
