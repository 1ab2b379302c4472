import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SignedStrand, textOf } from '../../client/signed-strand.js'
import { checkedCall, headOf, expectUnchanged, newAgent, scopedKey } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { exportOf, fill, importTo, sharedSeed } from '../../support/shard/imports.js'
import { newOrganism, registerIn } from '../../support/auth/organisms.js'
import { startServer, type TestAnswer, type TestServer } from '../../support/server/server.js'

/*
 * Existing strands that an attacker with the seed of the agent continues from outside: changes that need a
 * proposal on the server also need one in an import.
 */

let server: TestServer
let strandCount = 0

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  await newAgent(server, 'there')
})
afterAll(() => server.stop())

const seedOf = (byte: number) => ({ 'strandfast-agent-seed': Buffer.alloc(32, byte).toString('hex') })

/** An existing strand of a zone, with an edge, that takes writes: records 0 to 3. */
async function existingStrand(zone: string): Promise<{ strand: SignedStrand; byte: number }> {
  const byte = 60 + strandCount
  const strand = new SignedStrand(`zoned-${strandCount++}`, byte, zone).append().append()
  const { agent } = strand
  strand.append({ type: 'edge/add', body: { src: agent, dst: 'there', edge_type: 'knows', weight: 1 } })
  const { status, body, text } = await importTo(server, strand.exportText(), { headers: seedOf(byte) })
  expect([status, body.open], text).toEqual([200, true])
  return { strand, byte }
}

/** Sends the records of a strand, starting with `from`. */
async function continueStrand(
  { strand, byte }: { strand: SignedStrand; byte: number },
  from = 4,
): Promise<TestAnswer> {
  return importTo(server, textOf(strand.exportLines(from)), { headers: seedOf(byte) })
}

const hashAt = (strand: SignedStrand, seq: number) => Buffer.from(strand.hashes[seq] ?? []).toString('hex')
const policies = [{ actions: ['read'], conditions: [] }]

/** Changes of a strand, by records as the server writes them. */
const changes: [string, (strand: SignedStrand, by: Record<string, unknown>) => SignedStrand][] = [
  ['deletes', (one, by) => one.append(targeted(one, 'sys/tombstone', by))],
  ['restores', (one, by) => one.append(targeted(one, 'sys/restore', by))],
  ['erases', (one, by) => one.append(targeted(one, 'sys/erase', by))],
  [
    'removes an edge',
    (one, by) =>
      one.append({
        type: 'edge/remove',
        body: { src: one.agent, dst: 'there', edge_type: 'knows', principal: 'root', ...by },
      }),
  ],
  [
    'changes the zone',
    (one, by) => one.append({ type: 'sys/zone', body: { zone: 'free', principal: 'root', ...by } }),
  ],
  [
    'changes the policies',
    (one, by) => one.append({ type: 'sys/policy', body: { policies, principal: 'root', ...by } }),
  ],
  ['rotates the key', (one) => one.rotate(200 + strandCount)],
]

function targeted(strand: SignedStrand, type: string, by: Record<string, unknown>) {
  return { type, body: { target: hashAt(strand, 1), target_seq: 1, principal: 'root', ...by } }
}

function proposal(zone: string, effectiveAtMs: number | null, target: Record<string, unknown>) {
  const body = { ...target, principal: 'root', in_zone: zone, effective_at_ms: effectiveAtMs }
  return { type: 'sys/proposal', body: { ...body, expires_at_ms: Date.now() + 86_400_000 } }
}

const approval = (strand: SignedStrand, seq: number, principal: string) => ({
  type: 'sys/vote',
  body: { proposal: hashAt(strand, seq), proposal_seq: seq, vote: 'approve', principal },
})

async function expectRejected(
  existing: Awaited<ReturnType<typeof existingStrand>>,
  seq: number,
): Promise<void> {
  const answer = await expectUnchanged(server, existing.strand.agent, () => continueStrand(existing))
  expect([answer.status, answer.body.code, answer.body.seq], answer.text).toEqual([
    422,
    'import_rejected',
    seq,
  ])
}

describe.each(['governed', 'protected', 'immutable_core'])('an existing strand of zone %s', (zone) => {
  it.each(changes)('cannot be continued with a record that %s', async (_what, change) => {
    const one = await existingStrand(zone)
    change(one.strand, {})
    await expectRejected(one, 4)
  })

  it('can be continued with records of users and edges', async () => {
    const one = await existingStrand(zone)
    one.strand.append().append({
      type: 'edge/add',
      body: { src: one.strand.agent, dst: 'there', edge_type: 'likes', weight: 2 },
    })
    const { status, body } = await continueStrand(one)
    expect([status, body.imported, body.open]).toEqual([200, 2, true])
  })

  it('accepts no approvals from the owner of the seed', async () => {
    const one = await existingStrand(zone)
    const effectiveAtMs = zone === 'governed' ? Date.now() + 60_000 : null
    one.strand.append(proposal(zone, effectiveAtMs, { action: 'policies', policies }))
    one.strand.append(approval(one.strand, 4, 'key_a')).append(approval(one.strand, 4, 'key_b'))
    one.strand.append({ type: 'sys/policy', body: { policies, principal: 'root', proposal_seq: 4 } })
    await expectRejected(one, 5)
    expect((await checkedCall(server, `GET /v1/agents/${one.strand.agent}/policies`)).body.policies).toEqual(
      [],
    )
  })

  it('accepts no proposal that only another zone requires', async () => {
    const one = await existingStrand(zone)
    const other = zone === 'governed' ? 'protected' : 'governed'
    one.strand.append(proposal(other, other === 'governed' ? 1 : null, { action: 'zone', zone: 'free' }))
    await expectRejected(one, 4)
  })
})

it('does not apply a backdated proposal automatically', async () => {
  const one = await existingStrand('governed')
  one.strand.append(proposal('governed', 5_000, { action: 'zone', zone: 'free' }))
  const back = { zone: 'free', from: 'governed', principal: 'root', proposal_seq: 4 }
  one.strand.append({ type: 'sys/zone', body: back, ms: 6_000 })
  await expectRejected(one, 5)
  const other = await existingStrand('governed')
  const beforeMs = Date.now()
  other.strand.append(proposal('governed', 5_000, { action: 'zone', zone: 'free' }))
  expect((await continueStrand(other)).status).toBe(200)
  const { proposals } = (await checkedCall(server, `GET /v1/proposals?agent=${other.strand.agent}`)).body
  expect(proposals).toMatchObject([{ state: 'proposed' }])
  expect(proposals[0].effective_at_ms).toBeGreaterThanOrEqual(beforeMs + 60_000)
})

it('refuses erased records in an immutable strand', async () => {
  const one = await existingStrand('immutable_core')
  one.strand.append({ erased: true })
  await expectRejected(one, 4)
})

it('lets a strand of zone free be continued with any records, erased ones only with the record of the erasure', async () => {
  for (const [, change] of changes.slice(0, -1)) {
    const one = await existingStrand('free')
    change(one.strand, {})
    expect((await continueStrand(one)).body.imported).toBe(1)
  }
  const one = await existingStrand('free')
  one.strand.append({ erased: true })
  const { status, body } = await continueStrand(one)
  expect([status, body.code, body.seq]).toEqual([422, 'import_rejected', 4])
  expect(await headOf(server, one.strand.agent)).toMatchObject({ seq: 4 })
  one.strand.append({
    type: 'sys/erase',
    body: { target: hashAt(one.strand, 4), target_seq: 4, principal: 'root' },
  })
  expect((await continueStrand(one)).body.open).toBe(true)
})

it('uses the zone of the strand at each record', async () => {
  const one = await existingStrand('free')
  const zoned = { type: 'sys/zone', body: { zone: 'immutable_core', from: 'free', principal: 'root' } }
  one.strand.append(targeted(one.strand, 'sys/tombstone', {})).append(zoned)
  one.strand.append(targeted(one.strand, 'sys/restore', {}))
  await expectRejected(one, 6)
})

it('accepts valid decisions of a server with the same master seed', async () => {
  const source = await startServer({ env: { ...sharedSeed, SERVICE_SHARDS: '1' } })
  const target = await startServer({ env: { ...sharedSeed, SERVICE_SHARDS: '1' } })
  try {
    const decider = await scopedKey(source, ['proposals:decide'])
    for (const zone of ['protected', 'governed']) {
      const agent = await newAgent(source, `own-${zone}`, zone)
      const [hash] = await fill(source, agent, { from: 0, count: 2 })
      expect((await importTo(target, await exportOf(source, agent))).body.open).toBe(true)
      const { body: proposed } = await checkedCall(source, `POST /v1/agents/${agent}/records/${hash}/erase`)
      const approve = `POST /v1/proposals/${proposed.proposal_id}/approve`
      expect((await checkedCall(source, approve, { key: decider.key })).body.state).toBe('applied')
      const newer = await exportOf(source, agent)
      expect((await importTo(target, newer)).body).toMatchObject({ imported: 4, open: true })
      expect(await exportOf(target, agent)).toBe(newer)
    }
    const agent = await newAgent(source, 'own-core', 'immutable_core')
    expect((await importTo(target, await exportOf(source, agent))).body.open).toBe(true)
    await fill(source, agent, { from: 0, count: 1 })
    const exported = await exportOf(source, agent)
    const stripped = exported.replace(/,"salt":"[0-9a-f]{32}","body":"\{\\"n\\":0\}"/, ',"erased":true')
    expect(stripped).not.toBe(exported)
    const refused = await expectUnchanged(target, agent, () => importTo(target, stripped))
    expect([refused.status, refused.body.seq]).toEqual([422, 1])
  } finally {
    await source.stop()
    await target.stop()
  }
})

it('accepts the strand of an auth namespace only from unlimited admins', async () => {
  const now = await startAuthServer()
  const copy = mkdtempSync(join(tmpdir(), 'strandfast-'))
  await newOrganism(now, 'acme', { agents: ['notes'] })
  const limited = await scopedKey(now, ['admin:*'], ['acme::*'])
  const lesser = await scopedKey(now, ['agents:admin', 'admin:organisms'])
  await now.halt()
  cpSync(now.dataDir, copy, { recursive: true })
  const later = await startAuthServer({ dataDir: now.dataDir })
  const old = await startAuthServer({ dataDir: copy })
  try {
    await registerIn(later, 'acme', 'bob@example.com')
    const auth = await exportOf(later, 'acme::auth')
    for (const { key } of [limited, lesser]) {
      const refused = await expectUnchanged(old, 'acme::auth', () => importTo(old, auth, { key }))
      expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
    }
    expect((await importTo(old, auth)).body.open).toBe(true)
    expect(await exportOf(old, 'acme::auth')).toBe(auth)
  } finally {
    await later.stop()
    await old.stop()
  }
})
