import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serverLogRoutes } from '../../src/front/routes/server-log.js'
import { verifyCheckpoint } from '../../src/proof/node/compare-checkpoint.js'
import { bodyCommitment, recordHash } from '../../src/strand/hash.js'
import { parseHeader } from '../../src/strand/header.js'
import { verifyText } from '../support/proof/verify-text.js'
import { readHeads } from '../../src/proof/heads.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import {
  checkedCall,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { headNow, logRecords, untilLogged } from '../support/server/server-log.js'
import { startServer, type TestAnswer, type TestServer } from '../support/server/server.js'
import { verifyConsistency, verifyInclusion } from '../support/proof/tree-proofs.js'

let server: TestServer
let logKey = ''
let logStrand = ''
const agents = ['a', 'b', 'c', 'd', 'e']
const log = 'server::log'
const hex = (text: string) => Buffer.from(text, 'hex')

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '3', SERVICE_LOG_INTERVAL_SECS: '1' } })
  for (const agent of agents) await newAgent(server, agent)
  await untilLogged(server, agents)
  const { body } = await checkedCall(server, `GET /v1/agents/${log}/status`)
  logKey = body.public_key
  logStrand = body.strand
})
afterAll(() => server.stop())

const write = (agent: string) =>
  checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data: { agent } } })
const sizeOfLog = async () =>
  verifyCheckpoint((await checkedCall(server, 'GET /v1/log/checkpoint')).text, logKey)?.size ?? 0

describe('the server log', () => {
  it('is a strand whose records contain the heads of others, and verifies like any other', async () => {
    const exported = await checkedCall(server, `GET /v1/strand/export?agent=${log}`)
    const verified = await verifyExport(exported.text.trimEnd().split('\n'), { publicKey: logKey })
    expect(verified).toMatchObject({ ok: true, agent: log, strand: logStrand, checkpoint: true, sealed: 0 })
    const loggedHeads = (await logRecords(server)).flatMap(({ heads }) => heads)
    for (const agent of [...agents, 'default']) {
      const { strand, size, hash } = await headNow(server, agent)
      expect(loggedHeads.findLast(([logged]) => logged === strand)).toEqual([strand, size, hash])
    }
    expect(loggedHeads.some(([strand]) => strand === logStrand)).toBe(false)
  })

  it('is in no list of agents, and not counted', async () => {
    for (const query of ['', '?prefix=s', '?prefix=server::', '?prefix=server::log', '?limit=3']) {
      const { body } = await checkedCall(server, `GET /v1/agents${query}`)
      expect(body.agents).not.toContain(log)
      expect(body.total).toBe(query.startsWith('?prefix') ? 0 : agents.length + 1)
    }
    const metrics = await checkedCall(server, 'GET /metrics', { key: null })
    const counts = [...metrics.text.matchAll(/^strandfast_agents\{.*\} (\d+)$/gm)].map(([, count]) =>
      Number(count),
    )
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(agents.length + 1)
    expect(Number(/^strandfast_log_size (\d+)$/m.exec(metrics.text)?.[1])).toBeGreaterThan(1)
    const completeAt = Number(/^strandfast_log_complete_timestamp_seconds (\S+)$/m.exec(metrics.text)?.[1])
    expect(completeAt).toBeGreaterThan(Date.now() / 1_000 - 3_600)
  })

  it('appends nothing while no strand changes, except itself', async () => {
    await untilLogged(server, agents)
    const before = await sizeOfLog()
    // A scan that starts after the next write has seen everything before it.
    for (let n = 0; n < 3; n++) {
      await write('a')
      await untilLogged(server, ['a'])
    }
    expect((await logRecords(server)).slice(before - 1).map(({ heads }) => heads.length)).toEqual([1, 1, 1])
  })

  it('accepts no writes of clients', async () => {
    const { body: head } = await checkedCall(server, `GET /v1/agents/${log}/head`)
    await expectUnchanged(server, log, async () => {
      const data = { body: { data: { n: 1 } } }
      for (const [route, call] of [
        [`POST /v1/agents/${log}/records`, data],
        [`POST /v1/agents/${log}/records/batch`, { body: { records: [data.body] } }],
        [`POST /v1/ingest/${log}`, { body: { n: 1 } }],
        [`DELETE /v1/agents/${log}/records/${head.chain_head}`, {}],
        [`POST /v1/agents/${log}/records/${head.chain_head}/erase`, {}],
        [`PUT /v1/agents/${log}/zone`, { body: { zone: 'free' } }],
        [`POST /v1/agents/${log}/rotate-key`, { body: {} }],
        [`PUT /v1/agents/${log}/policies`, { body: { policies: [] } }],
        [`POST /v1/graph/edges`, { body: { src: log, dst: 'a', edge_type: 'knows' } }],
      ] as const) {
        const refused = await checkedCall(server, route, call)
        expect([route, refused.status, refused.body.code]).toEqual([route, 403, 'forbidden'])
      }
      const lines = `${JSON.stringify({ agent: log, data: {} })}\n`
      const summary = await checkedCall(server, 'POST /v1/ingest', {
        raw: lines,
        headers: { 'content-type': 'application/x-ndjson' },
      })
      expect(summary.body).toMatchObject({ accepted: 0, rejected: 1, errors: [{ code: 'forbidden' }] })
    })
  })

  it('has a name that no organism can use', async () => {
    const made = await checkedCall(server, 'POST /v1/organisms', {
      body: { organism_id: 'server', name: 'x' },
    })
    expect([made.status, made.body.code]).toEqual([400, 'validation_failed'])
    const member = await checkedCall(server, 'POST /v1/organisms/server/agents', {
      body: { name: 'log', zone: 'free' },
    })
    expect(member.status).toBe(404)
    const named = await checkedCall(server, 'POST /v1/agents', { body: { name: log, zone: 'free' } })
    expect(named.status).toBe(400)
  })
})

/** Checks a proof as a verifier that trusts only the key of the log. */
function checkProof(body: TestAnswer['body']): void {
  const { record, seq, tree_size: size, root, path, checkpoint } = body.log
  const header = parseHeader(record.h)
  expect(header).toMatchObject({ strand: logStrand, key: logKey, seq, type: 'sys/heads' })
  expect(verifyText(logKey, record.h, hex(record.sig))).toBe(true)
  expect(bodyCommitment(hex(record.salt), Buffer.from(record.body))).toBe(header?.body)
  const leaf = hex(recordHash(record.h))
  expect(verifyInclusion({ index: seq, size, leaf, path: path.map(hex), root: hex(root) })).toBe(true)
  expect(verifyCheckpoint(checkpoint, logKey)).toEqual({
    origin: `strandfast/${logStrand}`,
    size,
    rootHex: root,
  })
  const { strand, size: strandSize, hash } = body
  expect(readHeads(record.body)?.heads).toContainEqual({ strand, size: strandSize, hash })
}

describe('GET /v1/log/proof', () => {
  it('proves the head of a strand offline', async () => {
    const { body } = await checkedCall(server, 'GET /v1/log/proof?agent=b')
    expect(body).toMatchObject({ agent: 'b', ...(await headNow(server, 'b')) })
    checkProof(body)
  })

  it('proves an older head in the tree of an older log', async () => {
    const then = await headNow(server, 'c')
    const at = await sizeOfLog()
    for (let n = 0; n < 2; n++) {
      await write('c')
      await untilLogged(server, ['c'])
    }
    const { body } = await checkedCall(server, `GET /v1/log/proof?agent=c&at=${at}`)
    expect(body).toMatchObject(then)
    expect(body.log.tree_size).toBe(at)
    checkProof(body)
    expect((await checkedCall(server, 'GET /v1/log/proof?agent=c')).body).toMatchObject(
      await headNow(server, 'c'),
    )
    const early = await checkedCall(server, 'GET /v1/log/proof?agent=c&at=1')
    expect([early.status, early.body.code]).toEqual([404, 'head_not_logged'])
  })

  it('answers 400 without an agent or for a size beyond the log, and 404 for a missing agent', async () => {
    for (const query of ['', '?agent=.x', '?agent=a&at=0', '?agent=a&at=1000000', '?agent=a&at=x']) {
      const refused = await checkedCall(server, `GET /v1/log/proof${query}`)
      expect([query, refused.status, refused.body.code]).toEqual([query, 400, 'validation_failed'])
    }
    const absent = await checkedCall(server, 'GET /v1/log/proof?agent=absent')
    expect([absent.status, absent.body.code]).toEqual([404, 'agent_not_found'])
  })

  it('requires a key that reaches the agent', async () => {
    const { key } = await scopedKey(server, ['records:read'], ['a'])
    expect((await checkedCall(server, 'GET /v1/log/proof?agent=a', { key })).status).toBe(200)
    expect((await checkedCall(server, 'GET /v1/log/checkpoint', { key })).status).toBe(200)
    expect((await checkedCall(server, 'GET /v1/log/consistency?from=1', { key })).status).toBe(200)
    expect((await checkedCall(server, 'GET /v1/log/proof?agent=b', { key })).status).toBe(403)
    expect((await checkedCall(server, `GET /v1/strand/export?agent=${log}`, { key })).status).toBe(403)
    const { key: writer } = await scopedKey(server, ['records:write'])
    for (const path of ['proof?agent=a', 'checkpoint', 'consistency?from=1']) {
      expect((await checkedCall(server, `GET /v1/log/${path}`, { key: writer })).status).toBe(403)
      expect((await checkedCall(server, `GET /v1/log/${path}`, { key: null })).status).toBe(401)
    }
  })
})

describe('GET /v1/log/consistency', () => {
  it('leads from every older tree to the current one', async () => {
    const size = await sizeOfLog()
    for (let from = 1; from <= size; from++) {
      const { body } = await checkedCall(server, `GET /v1/log/consistency?from=${from}&to=${size}`)
      const { path, from_root: fromRoot, to_root: toRoot, checkpoint } = body
      const proof = { from, to: size, fromRoot: hex(fromRoot), toRoot: hex(toRoot), path: path.map(hex) }
      expect(verifyConsistency(proof)).toBe(true)
      expect(verifyCheckpoint(checkpoint, logKey)).toMatchObject({ size, rootHex: toRoot })
    }
  })

  it('answers 400 for invalid sizes', async () => {
    for (const query of ['', '?from=0', '?from=3&to=2', '?from=1&to=1000000', '?from=1000000', '?from=x']) {
      const refused = await checkedCall(server, `GET /v1/log/consistency${query}`)
      expect([query, refused.status, refused.body.code]).toEqual([query, 400, 'validation_failed'])
    }
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(serverLogRoutes)).toEqual([])
})
