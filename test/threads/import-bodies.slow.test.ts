import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { parseManifest } from '../../src/proof/export-lines.js'
import { checkLines } from '../../workers/import/check.js'
import { checkStrand } from '../../workers/store/check/strand-check.js'
import { SignedStrand, textOf } from '../client/signed-strand.js'
import { changedValues } from '../support/changed-values.js'
import { appendNumber, codeOf, replyOf, TestShard } from '../support/shard/shard.js'

/*
 * Every number and text of an imported system record has every value that a key, a time or a seq could not
 * hold: the record is refused before anything is committed, or it is harmless.
 */

let shard: TestShard
let strands = 0

beforeEach(() => {
  shard = new TestShard()
})
afterEach(() => shard.remove())

const hashAt = (strand: SignedStrand, seq: number) => Buffer.from(strand.hashes[seq] ?? []).toString('hex')

/** A strand of zone governed: 1 a record, 2 a proposal to delete it, 3 a vote, 4 the end of the proposal. */
function prefix(genesis: Record<string, unknown> = {}): SignedStrand {
  const strand = new SignedStrand(`made-${strands++}`, 1, { zone: 'governed', ...genesis }).append()
  const terms = { principal: 'root', in_zone: 'governed', effective_at_ms: 5_000, expires_at_ms: 9_000 }
  const target = { target: hashAt(strand, 1), target_seq: 1 }
  strand.append({ type: 'sys/proposal', body: { action: 'delete', ...target, ...terms } })
  const proposal = { proposal: strand.head, proposal_seq: 2 }
  strand.append({ type: 'sys/vote', body: { ...proposal, vote: 'approve', principal: 'key_a' } })
  return strand.append({ type: 'sys/applied', body: { ...proposal, state: 'applied', effect_seq: 3 } })
}

type Body = Record<string, unknown>

/** The kinds of system records, each beginning with its type, and a valid body of each, after `prefix`. */
const kinds: [kind: string, body: (strand: SignedStrand) => Body][] = [
  ...['sys/tombstone', 'sys/restore', 'sys/erase'].map((type): [string, (strand: SignedStrand) => Body] => [
    type,
    (strand) => ({ target: hashAt(strand, 1), target_seq: 1, principal: 'root', proposal_seq: 2 }),
  ]),
  ['sys/zone', () => ({ zone: 'free', from: 'governed', principal: 'root', proposal_seq: 2 })],
  ['sys/policy', () => ({ policies: [policy], principal: 'root', proposal_seq: 2 })],
  ...['delete', 'zone', 'policies', 'remove_edge', 'rotate_key'].map(
    (action): [string, (strand: SignedStrand) => Body] => [
      `sys/proposal of ${action}`,
      (strand) => ({ action, ...changeOf(strand)[action], ...terms }),
    ],
  ),
  [
    'sys/vote',
    (strand) => ({ proposal: hashAt(strand, 2), proposal_seq: 2, vote: 'reject', principal: 'a', line: 'b' }),
  ],
  [
    'sys/applied',
    (strand) => ({ proposal: hashAt(strand, 2), proposal_seq: 2, state: 'applied', effect_seq: 3 }),
  ],
  ['sys/imported', (strand) => ({ records: 5, head: strand.head, principal: 'root', line: 'key_a' })],
  ['edge/add', ({ agent: src }) => ({ src, dst: 'there', edge_type: 'feeds', weight: 1 })],
  [
    'edge/remove',
    ({ agent: src }) => ({ src, dst: 'there', edge_type: 'feeds', principal: 'root', proposal_seq: 2 }),
  ],
]

const policy = { actions: ['read'], conditions: [{ field: 'n', op: 'eq', value: 1 }], types: ['reading'] }
const terms = { principal: 'root', line: 'key_a', in_zone: 'governed', effective_at_ms: 1, expires_at_ms: 2 }

function changeOf(strand: SignedStrand): Record<string, Body> {
  return {
    delete: { target: hashAt(strand, 1), target_seq: 1 },
    zone: { zone: 'free' },
    policies: { policies: [policy] },
    remove_edge: { edge_type: 'feeds', dst: 'there' },
    rotate_key: { public_key: 'a'.repeat(64), reason: 'compromise' },
  }
}

/** Imports a strand as a server would. @returns whether it was accepted */
function isAccepted(strand: SignedStrand, byte = 1): boolean {
  const [first = {}, ...lines] = strand.exportLines()
  const manifest = parseManifest(JSON.stringify(first))
  if (manifest === undefined) throw new Error('Expected a manifest')
  const checked = checkLines({ manifest, lines: Buffer.from(textOf(lines)), agents: [] })
  const [part] = 'fault' in checked ? [] : checked.parts
  if ('fault' in checked || part === undefined) return false
  const { agent, strand: hash, toSeq } = manifest
  const end = { lastSeq: toSeq, publicKey: checked.position.place.key, seed: Buffer.alloc(32, byte) }
  const about = { agent, strand: hash, fromSeq: 0, end, principal: 'root', audited: true, options: {} }
  expect(codeOf(shard.ask({ kind: 'strandImport', ...part, ...about }))).toBe('imported')
  return true
}

/** Checks that the strand matches its rows, and that sweeps and the writes of other agents work. */
function expectHarmless(agent: string, n: number): void {
  shard.nowMs += 30 * 86_400_000
  expect(shard.ask({ kind: 'proposalsSweep', options: {} })).toEqual({ kind: 'swept', left: false })
  expect(replyOf(shard.ask(appendNumber('another', n))).agent).toBe('another')
  expect(replyOf(shard.ask(appendNumber(agent, n))).agent).toBe(agent)
  shard.store.flush()
  const row = shard.store.agents.row(agent)
  if (row === undefined) throw new Error('Expected the row of an agent')
  expect([...checkStrand(shard.environment, { name: agent, row }, () => {})]).toEqual([])
  const { proposals, proposalDues } = shard.environment
  expect([proposals.getKeysCount({}), proposalDues.getKeysCount({})]).toEqual([0, 0])
  expect(shard.frames.at(-1)?.figures.setAside).toBe(0)
}

describe('an imported record', () => {
  it.each(kinds)(
    '%s has no member that ends a thread or takes effect as a decision',
    async (kind, bodyOf) => {
      const [type = ''] = kind.split(' ')
      const valid = prefix()
      expect(isAccepted(valid.append({ type, body: bodyOf(valid) }))).toBe(true)
      expectHarmless(valid.agent, 0)
      let versions = 0
      // A strand has other hashes than the next one, so each version is created for its strand.
      const count = [...changedValues(bodyOf(prefix()))].length
      for (; versions < count; versions++) {
        const strand = prefix()
        const body = [...changedValues(bodyOf(strand))][versions]
        if (isAccepted(strand.append({ type, body }))) expectHarmless(strand.agent, versions)
        if (versions % 100 === 99) await shard.reopen()
      }
      expect(versions).toBeGreaterThanOrEqual(4 * 14)
      await shard.reopen()
      expect(replyOf(shard.ask(appendNumber('another', 0))).agent).toBe('another')
    },
  )

  it('has no such member either if it is a genesis record or a rotation', async () => {
    for (const created of changedValues(1)) {
      const strand = prefix({ created_at_ms: created })
      if (isAccepted(strand)) expectHarmless(strand.agent, 1)
    }
    for (const proposal of changedValues(2)) {
      const strand = prefix().rotate(40, { proposal_seq: proposal })
      if (isAccepted(strand, 40)) expectHarmless(strand.agent, 2)
    }
    await shard.reopen()
    expect(replyOf(shard.ask(appendNumber('another', 0))).agent).toBe('another')
  })
})

describe('a part of an import', () => {
  it('has at most as many system records as a commit group, so that its work is bounded', () => {
    const strand = new SignedStrand('crowded')
    const count = limits.commitRecordsMax + 1
    strand.append({ sealedBy: count + 2 })
    const edge = { src: 'crowded', dst: 'there', edge_type: 'feeds', weight: 1 }
    for (let n = 0; n < count; n++) strand.append({ type: 'edge/add', body: edge })
    expect(isAccepted(strand.append())).toBe(false)
  })

  it('has a signature of each system record', () => {
    const strand = prefix()
    strand.append({ type: 'sys/zone', body: { zone: 'free' }, sealedBy: 6 }).append()
    expect(isAccepted(strand)).toBe(false)
  })
})
