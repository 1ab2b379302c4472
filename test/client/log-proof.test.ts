import { createHash } from 'node:crypto'
import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes, hexToBytes } from '@noble/hashes/utils.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ServiceClient,
  verifyConsistency,
  verifyLoggedHead,
  type LoggedHeadProof,
} from '../../src/client/index.js'
import { webCryptoJobs } from '../../src/client/webcrypto.js'
import { runAsync } from '../../src/proof/job.js'
import {
  type Consistency,
  type Inclusion,
  growsFrom,
  leadsToRoot,
  pathOf,
} from '../../src/proof/tree-proof.js'
import { consistencyPath, inclusionPath, treeRoot, type LeafReader } from '../../src/strand/merkle.js'
import { headNow, untilLogged } from '../support/server/server-log.js'
import { startServer, type TestServer } from '../support/server/server.js'

const leaves = Array.from({ length: 70 }, (_none, at) => createHash('sha256').update(`leaf ${at}`).digest())
const reader: LeafReader = { leaves: (start, end) => leaves.slice(start, end) }
const rootHex = (size: number) => Buffer.from(treeRoot(size, reader)).toString('hex')
const hexes = (path: readonly Uint8Array[]) => path.map((hash) => Buffer.from(hash).toString('hex'))
const leads = (proof: Inclusion) => runAsync(leadsToRoot(proof), webCryptoJobs())
const grows = (proof: Consistency) => runAsync(growsFrom(proof), webCryptoJobs())

describe('tree proofs in the client', () => {
  it('are valid for each leaf of each small tree, and for no other leaf', async () => {
    for (let size = 1; size <= 33; size++) {
      for (let index = 0; index < size; index++) {
        const path = hexes(inclusionPath(index, size, reader))
        const [leaf = ''] = hexes(leaves.slice(index))
        const proof = { index, size, leaf, path, rootHex: rootHex(size) }
        expect(await leads(proof)).toBe(true)
        expect(await leads({ ...proof, index: index + 1 })).toBe(false)
        expect(await leads({ ...proof, path: [...path, leaf] })).toBe(false)
        expect(await leads({ ...proof, rootHex: rootHex(size + 1) })).toBe(false)
      }
    }
  })

  it('are valid between all pairs of trees up to many leaves, and between no others', async () => {
    const many = 33
    for (let to = 1; to <= many; to++) {
      for (let from = 1; from <= to; from++) {
        const path = hexes(consistencyPath(from, to, reader))
        const proof = { from, to, fromRootHex: rootHex(from), toRootHex: rootHex(to), path }
        expect(await grows(proof)).toBe(true)
        expect(await grows({ ...proof, fromRootHex: rootHex(from + 1) })).toBe(false)
        expect(await grows({ ...proof, toRootHex: rootHex(to + 1) })).toBe(false)
        expect(await grows({ ...proof, path: [...path, '0'.repeat(64)] })).toBe(false)
        if (from < to) expect(await grows({ ...proof, path: path.slice(1) })).toBe(false)
      }
    }
  })

  it('consist of whole hashes', () => {
    expect(pathOf(['00'.repeat(32)])).toEqual(['00'.repeat(32)])
    for (const path of [undefined, 'x', ['00'], [`${'00'.repeat(31)}0G`], [7]])
      expect(pathOf(path)).toBeUndefined()
  })
})

describe('proofs of a running server', () => {
  let server: TestServer
  let client: ServiceClient
  let logKey = ''
  let publicKey = ''
  const log = 'server::log'

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_LOG_INTERVAL_SECS: '1', SERVICE_SHARDS: '2' } })
    client = new ServiceClient({ url: server.url, apiKey: server.rootKey })
    await client.collection('a').write({ n: 1 })
    await client.collection('b').write({ n: 1 })
    await untilLogged(server, ['a', 'b'])
    logKey = (await client.agent(log).status()).public_key
    publicKey = (await client.agent('a').status()).public_key
  })
  afterAll(() => server.stop())

  it('show that a strand has only grown since a checkpoint', async () => {
    const kept = await client.checkpoint('a')
    await client.collection('a').writeBatch([{ n: 2 }, { n: 3 }, { n: 4 }])
    const proof = await client.consistency('a', 2)
    const { strand } = await client.agent('a').status()
    expect(await verifyConsistency(kept, proof, { publicKey })).toEqual({
      ok: true,
      origin: `strandfast/${strand}`,
      from: 2,
      to: 5,
    })
    // Computed with another library than the client's: the path from 2 to 5 is one node of two leaves, and
    // the last leaf.
    const [pair = '', last = ''] = proof.path
    const node = (left: Uint8Array, right: Uint8Array) => sha256(concatBytes(Uint8Array.of(1), left, right))
    const newer = node(node(hexToBytes(proof.from_root), hexToBytes(pair)), hexToBytes(last))
    expect(Buffer.from(newer).toString('hex')).toBe(proof.to_root)

    const reasons = await Promise.all([
      verifyConsistency(kept, proof, { publicKey: logKey }),
      verifyConsistency(kept, proof, { publicKey, keptKey: logKey }),
      verifyConsistency(kept, { ...proof, path: proof.path.slice(1) }, { publicKey }),
      verifyConsistency(kept, { ...proof, checkpoint: null }, { publicKey }),
      verifyConsistency(await client.checkpoint('a'), { ...proof, checkpoint: kept }, { publicKey }),
      verifyConsistency(kept, await client.log.consistency(1), { publicKey: logKey, keptKey: publicKey }),
    ])
    expect(reasons.map((one) => (one.ok ? 'fine' : one.reason))).toEqual([
      'The earlier checkpoint is not signed by the key',
      'The earlier checkpoint is not signed by the key',
      'The proof does not show that the first 2 of 5 records are unchanged',
      'The proof has no checkpoint',
      'The tail was cut: the earlier checkpoint has 5 records, the newer one 2',
      'The proof is of another strand',
    ])
  })

  it('show that the log has only grown, and the logged head of a strand', async () => {
    const kept = await client.log.checkpoint()
    const from = Number(kept.split('\n')[1])
    await client.collection('b').write({ n: 2 })
    await untilLogged(server, ['a', 'b'])
    const grown = await verifyConsistency(kept, await client.log.consistency(from), { publicKey: logKey })
    expect(grown).toMatchObject({ ok: true, from })
    const proof = await client.log.proof('b')
    const seen = await verifyLoggedHead(proof, { logKey })
    expect(seen).toEqual({ ok: true, ...(await headNow(server, 'b')), logSize: proof.log.tree_size })
    const before = await verifyLoggedHead(await client.log.proof('b', { at: from }), { logKey })
    expect(before).toMatchObject({ ok: true, size: 2, logSize: from })
  })

  it('are refused if anything in them is changed', async () => {
    const proof = await client.log.proof('a')
    const other = await client.log.proof('b')
    const genesis = await new Response(await client.exportStrand({ agent: log, toSeq: 0 })).text()
    const lines = genesis.split('\n')
    const record = proof.log.record
    const inLog = (change: Partial<LoggedHeadProof['log']>) => ({
      ...proof,
      log: { ...proof.log, ...change },
    })
    const inRecord = (change: Partial<typeof record>) => inLog({ record: { ...record, ...change } })
    const zeros = '0'.repeat(64)
    const cases: [LoggedHeadProof, string][] = [
      [{ ...proof, size: proof.size + 1 }, 'The record of the log has another head'],
      [{ ...proof, hash: zeros }, 'The record of the log has another head'],
      [{ ...proof, strand: zeros }, 'The record of the log has another head'],
      [inRecord({ body: record.body.replace(proof.hash, zeros) }), 'The record of the log is not of heads'],
      [inRecord({ salt: '0'.repeat(32) }), 'The record of the log is not of heads'],
      [inRecord({ sig: '0'.repeat(128) }), 'The record of the log is not signed by the key'],
      [
        inRecord({ h: record.h.replace('sys/heads', 'sys/headz') }),
        'The record of the log is not signed by the key',
      ],
      [inRecord({ h: 'x' }), 'The record of the log is malformed'],
      [inLog({ record: JSON.parse(lines[1] ?? '') }), 'The checkpoint is of another strand'],
      [inLog({ path: ['x'] }), 'The record of the log is malformed'],
      [inLog({ path: [...proof.log.path, zeros] }), 'The proof does not show that the record is in the log'],
      [
        inLog({ path: other.log.path.map(() => zeros).concat(zeros) }),
        'The proof does not show that the record is in the log',
      ],
      [
        inLog({ checkpoint: await client.checkpoint('a') }),
        'The checkpoint of the log is not signed by the key',
      ],
    ]
    for (const [changed, reason] of cases) {
      expect(await verifyLoggedHead(changed, { logKey })).toEqual({ ok: false, reason })
    }
    const wrongKey = await verifyLoggedHead(proof, { logKey: publicKey })
    expect(wrongKey).toEqual({ ok: false, reason: 'The checkpoint of the log is not signed by the key' })
  })
})
