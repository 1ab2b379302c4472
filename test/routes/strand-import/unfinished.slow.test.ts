import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ask, headOf, newAgent } from '../../support/http/answers.js'
import { eventually } from '../../support/eventually.js'
import { Forged } from '../../support/proof/lying-prover.js'
import { openUpload, underWay } from '../../support/http/open-upload.js'
import { startServer, testRootKey, type TestServer } from '../../support/server/server.js'

/* An import has no name, and changes nothing, before its trailer holds. */

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const open = (query = '?hold=true') =>
  openUpload(server, `/v1/strand/import${query}`, { key: testRootKey, contentType: 'application/x-ndjson' })

/** Files of imports that wait for the end of their export. */
const waiting = () => readdirSync(join(server.dataDir, 'importing')).length

/** An export of more parts than one, and where its last line begins. */
function exportOf(agent: string): { strand: Forged; file: Buffer; trailerAt: number } {
  const strand = new Forged(agent, 9)
  for (let n = 1; n <= 3_000; n++) strand.write(`{"n":${n}}`)
  const file = strand.export()
  return { strand, file, trailerAt: file.lastIndexOf('\n', file.length - 2) + 1 }
}

it('is taken whole at its end, and nothing of it is seen before', async () => {
  const { file, trailerAt, strand } = exportOf('quiet')
  const upload = open()
  upload.send(file.subarray(0, trailerAt))
  await eventually(() => waiting() === 1)
  expect((await ask(server, 'GET /v1/agents/quiet')).status).toBe(404)
  expect((await ask(server, 'GET /v1/agents')).body.agents).not.toContain('quiet')
  upload.send(file.subarray(trailerAt))
  upload.sent.end()
  const { status, body } = await upload.answered
  expect([status, body.imported, body.chain_head]).toEqual([200, 3_001, strand.made.at(-1)?.hash])
  await eventually(() => waiting() === 0)
})

it('leaves its name to whoever makes the agent meanwhile, and is refused then', async () => {
  const { file, trailerAt } = exportOf('taken')
  const upload = open()
  upload.send(file.subarray(0, trailerAt))
  await eventually(() => waiting() === 1)
  await newAgent(server, 'taken')
  upload.send(file.subarray(trailerAt))
  upload.sent.end()
  const { status, body } = await upload.answered
  expect([status, body.code, body.imported]).toEqual([409, 'agent_exists', 0])
  expect((await headOf(server, 'taken'))?.seq).toBe(0)
})

it('leaves nothing behind when its client goes', async () => {
  const { file, trailerAt } = exportOf('gone')
  const upload = open()
  upload.answered.catch(() => undefined)
  upload.send(file.subarray(0, trailerAt))
  await eventually(() => waiting() === 1)
  upload.sent.destroy()
  await eventually(() => waiting() === 0)
  expect((await ask(server, 'GET /v1/agents/gone')).status).toBe(404)
  const audit = await ask(server, 'GET /v1/strand/export?agent=server::audit')
  expect(audit.text).not.toContain('\\"gone\\"')
})

it('is refused at its beginning where the name is that of another strand', async () => {
  await newAgent(server, 'held')
  const { file, trailerAt } = exportOf('held')
  const upload = open()
  // Never ended: the answer does not wait for that.
  upload.send(file.subarray(0, trailerAt))
  const { status, body } = await upload.answered
  expect([status, body.code]).toEqual([409, 'agent_exists'])
})

it('leaves nothing behind when the server is killed', async () => {
  const { file, trailerAt } = exportOf('killed')
  const upload = open()
  upload.answered.catch(() => undefined)
  upload.send(file.subarray(0, trailerAt))
  await underWay(server, 1)
  await eventually(() => waiting() === 1)
  await server.halt('SIGKILL')
  server = await startServer({ dataDir: server.dataDir, env: { SERVICE_SHARDS: '2' } })
  expect(waiting()).toBe(0)
  expect((await ask(server, 'GET /v1/agents/killed')).status).toBe(404)
})
