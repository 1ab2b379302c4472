import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { proofRoutes } from '../../src/front/routes/proof.js'
import { verifyCheckpoint } from '../../src/proof/node/compare-checkpoint.js'
import { checkpointOrigin } from '../../src/strand/checkpoint.js'
import { TreeHasher } from '../../src/strand/merkle.js'
import {
  checkedCall,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { startServer, type TestServer } from '../support/server/server.js'
import { verifyConsistency, verifyInclusion } from '../support/proof/tree-proofs.js'

let server: TestServer
let strand = ''
let publicKey = ''
const hashes: string[] = []

beforeAll(async () => {
  server = await startServer()
  await newAgent(server, 'a')
  const { body } = await checkedCall(server, 'GET /v1/agents/a/status')
  strand = body.strand
  publicKey = body.public_key
  hashes.push(strand)
  // More than 256 leaves, whose subtree is cached, and a group of which only the last record is signed.
  for (const query of ['', '?signing=group']) {
    const records = Array.from({ length: 180 }, (_none, n) => ({ data: { n } }))
    const written = await checkedCall(server, `POST /v1/agents/a/records/batch${query}`, {
      body: { records },
    })
    hashes.push(...written.body.results.map(({ id }: { id: string }) => id))
  }
})
afterAll(() => server.stop())

const prove = (hash: string, agent = 'a') =>
  checkedCall(server, `GET /v1/strand/proof?agent=${agent}&hash=${hash}`)

function rootOf(leaves: readonly string[]): string {
  const tree = new TreeHasher()
  for (const leaf of leaves) tree.append(Buffer.from(leaf, 'hex'))
  return Buffer.from(tree.root()).toString('hex')
}

describe('a checkpoint', () => {
  it('is a signed note over the whole strand', async () => {
    const { text, headers } = await checkedCall(server, 'GET /v1/strand/checkpoint?agent=a')
    expect(headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(verifyCheckpoint(text, publicKey)).toEqual({
      origin: checkpointOrigin(strand),
      size: hashes.length,
      rootHex: rootOf(hashes),
    })
  })

  it('uses the default agent if none is named', async () => {
    const { text } = await checkedCall(server, 'GET /v1/strand/checkpoint')
    const { body } = await checkedCall(server, 'GET /v1/agents/default/status')
    expect(verifyCheckpoint(text, body.public_key)).toMatchObject({ size: body.record_count + 1 })
  })

  it('is valid while other clients write', async () => {
    const agent = await newAgent(server, 'busy')
    const { body } = await checkedCall(server, `GET /v1/agents/${agent}/status`)
    const writing = Array.from({ length: 100 }, (_none, n) =>
      checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data: { n } } }),
    )
    const asking = Array.from({ length: 10 }, () =>
      checkedCall(server, `GET /v1/strand/checkpoint?agent=${agent}`),
    )
    const records = (await Promise.all(writing)).map((answer) => answer.body)
    const leaves = [body.strand, ...records.sort((left, right) => left.seq - right.seq).map(({ id }) => id)]
    for (const { text } of await Promise.all(asking)) {
      const checkpoint = verifyCheckpoint(text, body.public_key)
      expect(checkpoint?.rootHex).toBe(rootOf(leaves.slice(0, checkpoint?.size)))
    }
  })
})

describe('a proof', () => {
  it('leads from any record, also a sealed one, to the root of the checkpoint', async () => {
    for (const seq of [0, 1, 2, 127, 128, 180, 181, 255, 256, 300, 359, 360]) {
      const { body } = await prove(hashes[seq] ?? '')
      expect(body).toMatchObject({ agent: 'a', hash: hashes[seq], seq, tree_size: hashes.length })
      const hex = (text: string) => Buffer.from(text, 'hex')
      const inclusion = {
        index: seq,
        size: body.tree_size,
        leaf: hex(body.hash),
        path: body.path.map(hex),
        root: hex(body.root),
      }
      expect(verifyInclusion(inclusion)).toBe(true)
      expect(verifyInclusion({ ...inclusion, leaf: hex('0'.repeat(64)) })).toBe(false)
      const checkpoint = verifyCheckpoint(body.checkpoint, publicKey)
      expect(checkpoint).toMatchObject({ size: body.tree_size, rootHex: body.root })
    }
  })

  it('accepts the hash with its prefix', async () => {
    expect((await prove(`sha256:${hashes[5]}`)).body.seq).toBe(5)
  })

  it('answers 400 without a hash, and 404 for an unknown hash', async () => {
    for (const query of ['agent=a', 'agent=a&hash=', 'agent=a&hash=x', `agent=.a&hash=${hashes[1]}`]) {
      const refused = await checkedCall(server, `GET /v1/strand/proof?${query}`)
      expect([query, refused.status, refused.body.code]).toEqual([query, 400, 'validation_failed'])
    }
    for (const [hash, agent] of [
      ['0'.repeat(64), 'a'],
      [hashes[1] ?? '', 'default'],
    ] as const) {
      const refused = await prove(hash, agent)
      expect([refused.status, refused.body.code]).toEqual([404, 'record_not_found'])
    }
  })
})

describe('a consistency proof', () => {
  const between = (query: string) => checkedCall(server, `GET /v1/strand/consistency?agent=a${query}`)

  it('leads from any older size to any newer one and its checkpoint', async () => {
    for (const [from, to] of [
      [1, 361],
      [2, 300],
      [128, 256],
      [255, 257],
      [256, 361],
      [300, 301],
      [361, 361],
    ] as const) {
      const { body } = await between(`&from=${from}&to=${to}`)
      expect(body).toMatchObject({ agent: 'a', from, to })
      expect(body.from_root).toBe(rootOf(hashes.slice(0, from)))
      expect(body.to_root).toBe(rootOf(hashes.slice(0, to)))
      const hex = (text: string) => Buffer.from(text, 'hex')
      const [fromRoot, toRoot] = [hex(body.from_root), hex(body.to_root)]
      expect(verifyConsistency({ from, to, fromRoot, toRoot, path: body.path.map(hex) })).toBe(true)
      expect(verifyCheckpoint(body.checkpoint, publicKey)).toMatchObject({ size: to, rootHex: body.to_root })
    }
    expect((await between('&from=5')).body.to).toBe(hashes.length)
  })

  it('has a checkpoint signed by the current key, also for a size before a key rotation', async () => {
    const agent = await newAgent(server, 'rotated')
    await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data: {} } })
    await checkedCall(server, `POST /v1/agents/${agent}/rotate-key`, { body: {} })
    const { body: status } = await checkedCall(server, `GET /v1/agents/${agent}/status`)
    for (const [to, more] of [
      [2, '&to=2'],
      [3, ''],
    ] as const) {
      const { body } = await checkedCall(server, `GET /v1/strand/consistency?agent=${agent}&from=1${more}`)
      expect(verifyCheckpoint(body.checkpoint, status.public_key)).toMatchObject({
        size: to,
        rootHex: body.to_root,
      })
    }
  })

  it('answers 400 for invalid sizes', async () => {
    for (const query of ['', '&from=0', '&from=362', '&from=3&to=2', '&from=1&to=362', '&from=a']) {
      const refused = await between(query)
      expect([query, refused.status, refused.body.code]).toEqual([query, 400, 'validation_failed'])
    }
  })
})

it('checkpoint and proofs answer 401, 403 and 404, and write nothing', async () => {
  const { key } = await scopedKey(server, ['records:write'])
  await expectUnchanged(server, 'a', async () => {
    for (const what of ['checkpoint?', `proof?hash=${hashes[1]}&`, 'consistency?from=1&']) {
      const absent = await checkedCall(server, `GET /v1/strand/${what}agent=absent`)
      expect([absent.status, absent.body.code]).toEqual([404, 'agent_not_found'])
      expect((await checkedCall(server, `GET /v1/strand/${what}agent=a`, { key })).status).toBe(403)
      expect((await checkedCall(server, `GET /v1/strand/${what}agent=a`, { key: null })).status).toBe(401)
    }
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(proofRoutes('default'))).toEqual([])
})
