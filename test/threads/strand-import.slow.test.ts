import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandOf } from '../../src/protocol/messages.js'
import { parseManifest } from '../../src/proof/export-lines.js'
import { checkLines } from '../../workers/import/check.js'
import { SinkLog } from '../../workers/sink/log.js'
import { blockCount } from '../../workers/store/tables/record-codec.js'
import { importedBlocksFrom, isImportedBlock } from '../../workers/store/tables/tables.js'
import { SignedStrand, textOf } from '../client/signed-strand.js'
import { appendNumber, codeOf, replyOf, TestShard } from '../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})
afterEach(() => shard.remove())

/** The commands that import a strand: one with its checked records, and one that ends the import. */
function importCommands(
  strand: SignedStrand,
  { fromSeq = 0, byte = 1 }: { fromSeq?: number; byte?: number } = {},
): [CommandOf<'strandImport'>, CommandOf<'strandImportEnd'>] {
  const [first = {}, ...lines] = strand.exportLines(fromSeq)
  const manifest = parseManifest(JSON.stringify(first))
  if (manifest === undefined) throw new Error('Expected a manifest')
  const checked = checkLines({ manifest, lines: Buffer.from(textOf(lines)) })
  if ('fault' in checked || checked.records === undefined) throw new Error(JSON.stringify(checked))
  const { agent, strand: hash, toSeq } = manifest
  const seed = Buffer.alloc(32, byte)
  return [
    {
      kind: 'strandImport',
      agent,
      strand: hash,
      ...checked.records,
      agents: [],
      admin: true,
      audited: true,
      options: {},
    },
    {
      kind: 'strandImportEnd',
      agent,
      strand: hash,
      lastSeq: toSeq,
      seed,
      hold: false,
      audited: true,
      options: {},
    },
  ]
}

function importAll(strand: SignedStrand, options: { fromSeq?: number; byte?: number } = {}): void {
  const [records, end] = importCommands(strand, options)
  for (const command of [records, end]) {
    const outcome = shard.ask(command)
    if (outcome.kind !== 'imported') throw new Error(JSON.stringify(outcome))
  }
}

const long = (agent: string, count: number) => {
  const strand = new SignedStrand(agent)
  for (let n = 0; n < count; n++) strand.append({ body: { n } })
  return strand
}
const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('hex')

describe('imported records', () => {
  it('are stored in separate blocks, which are not in the log, and are found by their hash', async () => {
    shard.ask(appendNumber('log', 1))
    const blocksBefore = shard.environment.blocks.getKeysCount()
    const strand = long('history', 120)
    importAll(strand)
    expect(shard.environment.blocks.getKeysCount()).toBe(blocksBefore)
    const keys = [...shard.environment.importedBlocks.getKeys({})].map((key) => key.readUIntBE(0, 6))
    expect(keys[0]).toBe(importedBlocksFrom)
    expect(keys.every(isImportedBlock)).toBe(true)
    const found = (n: number) =>
      replyOf(shard.ask({ kind: 'recordGet', agent: 'history', hash: hex(strand.hashes[n + 1]) })).payload.n
    for (const n of [0, 60, 119]) expect(found(n)).toBe(n)
    await shard.reopen()
    for (const n of [0, 60, 119]) expect(found(n)).toBe(n)
    // Later imports and writes are appended, both to the blocks and to the log.
    importAll(long('more', 3), { byte: 1 })
    expect(replyOf(shard.ask(appendNumber('log', 2))).seq).toBe(2)
    await shard.reopen()
    expect(found(119)).toBe(119)
    expect(replyOf(shard.ask(appendNumber('history', 120))).seq).toBe(121)
  })

  it('are found after the index has flushed them, with records of the log between them', async () => {
    const strand = long('history', 600)
    const logged: string[] = []
    const lines = strand.exportLines()
    for (let part = 0; part < 6; part++) {
      // A part of the strand, then so many records of the log that the index must be flushed.
      const upTo = lines.slice(0, 1 + (part + 1) * 100)
      const manifest = parseManifest(JSON.stringify(lines[0]))
      if (manifest === undefined) throw new Error('Expected a manifest')
      const checked = checkLines({ manifest, lines: Buffer.from(textOf(upTo.slice(1))) })
      if ('fault' in checked || checked.records === undefined) throw new Error(JSON.stringify(checked))
      const { agent, strand: hash } = manifest
      const records = checked.records
      expect(
        shard.ask({
          kind: 'strandImport',
          agent,
          strand: hash,
          ...records,
          agents: [],
          admin: true,
          audited: true,
          options: {},
        }).kind,
      ).toBe('imported')
      for (let from = 0; from < 4_000; from += 1_000) {
        const commands = Array.from({ length: 1_000 }, (_none, n) =>
          appendNumber('log', from + n, { signing: 'group' }),
        )
        logged.push(...shard.run(...commands).map((outcome) => replyOf(outcome).content_hash))
      }
    }
    const check = () => {
      for (let n = 0; n < 600; n += 37) {
        const hash = hex(strand.hashes[n])
        expect(replyOf(shard.ask({ kind: 'recordGet', agent: 'history', hash })).seq).toBe(n)
      }
      for (let n = 0; n < logged.length; n += 997) {
        const hash = logged[n] ?? ''
        expect(replyOf(shard.ask({ kind: 'recordGet', agent: 'log', hash })).content_hash).toBe(hash)
      }
    }
    check()
    await shard.reopen()
    check()
    shard.runBackgroundWork()
    await shard.reopen()
    check()
  })

  it('are not delivered by a sink, which continues with ingested records', () => {
    const log = new SinkLog(0, () => shard.environment)
    const ingest = (n: number) =>
      shard.ask({ kind: 'ingestOne', agent: 'feed', body: Buffer.from(`{"n":${n}}`), options: {} })
    ingest(1)
    const first = log.nextBatch()
    expect(first?.rows).toHaveLength(1)
    if (first !== undefined) log.confirm(first)
    importAll(long('history', 50))
    expect(log.nextBatch()).toBeUndefined()
    ingest(2)
    while (log.countNew());
    expect(log.lagRecords).toBe(1)
    expect(log.nextBatch()?.rows.map(({ body }) => Buffer.from(body ?? []).toString())).toEqual(['{"n":2}'])
  })

  it('do not appear in pages of the log, which contain each record of the log once', () => {
    shard.ask(appendNumber('log', 1))
    const page = (after: { ms: number; counter: number }) => {
      const outcome = shard.ask({ kind: 'logPage', after, limit: 100 })
      if (outcome.kind !== 'page') throw new Error('Expected a page')
      return {
        numbers: outcome.events.map(({ data }) => JSON.parse(data).payload.n),
        reached: outcome.reached,
      }
    }
    const { reached } = page({ ms: 0, counter: 0 })
    importAll(long('history', 10))
    shard.ask(appendNumber('log', 2))
    expect(page(reached).numbers).toEqual([2])
    expect(page({ ms: 0, counter: 0 }).numbers).toEqual([1, 2])
  })

  it('leave no bytes of a record that is erased later', async () => {
    const secret = 'a-secret-that-must-be-erased'
    const strand = new SignedStrand('history').append({ body: { secret } }).append()
    importAll(strand)
    const [key = Buffer.alloc(0)] = shard.environment.importedBlocks.getKeys({})
    const block = () => Buffer.from(shard.environment.importedBlocks.get(key) ?? [])
    expect(block().includes(secret)).toBe(true)
    expect(blockCount(block())).toBe(3)
    const target = { target: hex(strand.hashes[1]), target_seq: 1 }
    importAll(strand.append({ type: 'sys/erase', body: target }), { fromSeq: 3 })
    expect(block().includes(secret)).toBe(false)
    shard.runBackgroundWork()
    await shard.reopen()
    const { erased, payload } = replyOf(
      shard.ask({ kind: 'recordGet', agent: 'history', hash: hex(strand.hashes[1]) }),
    )
    expect([erased, payload]).toEqual([true, null])
  })
})

describe('an open proposal of a strand that is imported', () => {
  it('has no due time until the import has ended, so that no sweep skips it', () => {
    const strand = long('history', 2)
    const target = { target: hex(strand.hashes[1]), target_seq: 1 }
    const terms = { principal: 'root', in_zone: 'governed', effective_at_ms: 5, expires_at_ms: 9 }
    const [records, end] = importCommands(
      strand.append({ type: 'sys/proposal', body: { action: 'delete', ...target, ...terms } }),
    )
    shard.ask(records)
    const { proposalDues, proposalsOpen } = shard.environment
    expect([proposalDues.getKeysCount(), proposalsOpen.getKeysCount()]).toEqual([0, 1])
    shard.ask(end)
    expect([proposalDues.getKeysCount(), proposalsOpen.getKeysCount()]).toEqual([1, 1])
    shard.ask({ kind: 'proposalsSweep', options: {} })
    expect([proposalDues.getKeysCount(), proposalsOpen.getKeysCount()]).toEqual([0, 0])
    const hash = target.target
    expect(replyOf(shard.ask({ kind: 'recordGet', agent: 'history', hash })).deleted).toBe(true)
  })
})

describe('an import in a commit group with other commands', () => {
  it('sees the changes of earlier commands', () => {
    const strand = long('history', 3)
    const [records, end] = importCommands(strand)
    const outcomes = shard.run(records, appendNumber('history', 9), end, appendNumber('history', 3), records)
    expect(outcomes.map(codeOf)).toEqual(['imported', 'import_open', 'imported', 'reply', 'imported'])
    expect(replyOf(outcomes[3])).toMatchObject({ seq: 4, parent_hash: strand.head })
    expect(outcomes[4]).toMatchObject({ imported: 0, headSeq: 4, open: true })
    expect(shard.commits).toBe(1)
    const fork = strand.append()
    expect(codeOf(shard.run(importCommands(fork)[0])[0])).toBe('import_conflict')
  })

  it('precedes records whose clock readings were reserved earlier', () => {
    const strand = new SignedStrand('history').append({ ms: shard.nowMs + 900 })
    const [records, end] = importCommands(strand)
    const batch = {
      kind: 'batchAppend',
      agent: 'log',
      emerge: true,
      body: Buffer.from('{"records":[{"data":{}},{"data":{},"type":"sys/x"}],"atomic":false}'),
      options: {},
    } as const
    const outcomes = shard.run(batch, records, end, appendNumber('history', 1))
    expect(codeOf(outcomes[0])).toBe('reply')
    const written = replyOf(outcomes[3])
    const { timestamp_hlc: before } = replyOf(
      shard.ask({ kind: 'recordGet', agent: 'history', hash: strand.head }),
    )
    expect(written.timestamp_hlc > before).toBe(true)
  })

  it('does not end without the seed of the agent, which then takes no writes', async () => {
    const [records, end] = importCommands(long('history', 3))
    shard.ask(records)
    expect(codeOf(shard.ask({ ...end, seed: Buffer.alloc(32, 99) }))).toBe('import_rejected')
    await shard.reopen()
    expect(codeOf(shard.ask(appendNumber('history', 1)))).toBe('import_open')
    expect(codeOf(shard.ask(end))).toBe('imported')
    await shard.reopen()
    expect(replyOf(shard.ask(appendNumber('history', 1))).seq).toBe(4)
  })
})

it('refuses an import with more open proposals than an agent can have', () => {
  const strand = new SignedStrand('history', 1, 'protected')
  const about = { action: 'delete', principal: 'root', in_zone: 'protected', effective_at_ms: null }
  for (let n = 0; n < 1_004; n++) {
    const target = { target: '0'.repeat(64), target_seq: n }
    strand.append({ type: 'sys/proposal', body: { ...about, ...target, expires_at_ms: 9_999_999_999_999 } })
  }
  const [records] = importCommands(strand)
  const refused = shard.ask(records)
  expect(refused).toMatchObject({ code: 'import_rejected' })
  expect(shard.store.agents.find('history')).toBeUndefined()
})

describe('an export that would grow without bound', () => {
  const proposing = (agent: string, count: number) => {
    const strand = new SignedStrand(agent)
    strand.append({ body: { n: 0 } })
    for (let n = 0; n < count; n++) {
      const body = {
        action: 'zone',
        zone: 'protected',
        principal: 'root',
        in_zone: 'free',
        effective_at_ms: null,
        expires_at_ms: 9_000_000_000_000,
      }
      strand.append({ type: 'sys/proposal', body })
    }
    return strand
  }

  it('is refused beyond the maximum number of votes of a proposal', () => {
    const strand = proposing('voted', 1)
    const vote = (n: number) => ({ proposal, proposal_seq: 2, vote: 'approve', principal: `key_${n}` })
    const proposal = strand.head
    for (let n = 0; n < limits.importVotesMax; n++) strand.append({ type: 'sys/vote', body: vote(n) })
    const [first] = importCommands(strand)
    expect(shard.ask(first)).toMatchObject({ kind: 'imported' })
    strand.append({ type: 'sys/vote', body: vote(-1) })
    const [more] = importCommands(strand)
    expect(codeOf(shard.ask(more))).toBe('import_rejected')
  })
})
