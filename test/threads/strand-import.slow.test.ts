import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CheckedRecords } from '../../src/protocol/import-messages.js'
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

/** The command that imports a strand; with `hold`, more records of it follow. */
function importCommand(
  strand: SignedStrand,
  { fromSeq = 0, byte = 1, hold = false }: { fromSeq?: number; byte?: number; hold?: boolean } = {},
): CommandOf<'strandImport'> {
  const [first = {}, ...lines] = strand.exportLines(fromSeq)
  const manifest = parseManifest(JSON.stringify(first))
  if (manifest === undefined) throw new Error('Expected a manifest')
  const checked = checkLines({ manifest, lines: Buffer.from(textOf(lines)), agents: [] })
  if ('fault' in checked) throw new Error(JSON.stringify(checked))
  const { agent, strand: hash, toSeq } = manifest
  const end = { lastSeq: toSeq, publicKey: checked.position.place.key, seed: Buffer.alloc(32, byte) }
  return {
    kind: 'strandImport',
    agent,
    strand: hash,
    ...onlyPart(checked.parts),
    principal: 'root',
    fromSeq,
    ...(!hold && { end }),
    audited: true,
    options: {},
  }
}

function onlyPart(parts: readonly CheckedRecords[]): CheckedRecords {
  const [part, ...more] = parts
  if (part === undefined || more.length > 0) throw new Error(`Expected one part, got ${parts.length}`)
  return part
}

function importAll(strand: SignedStrand, options: Parameters<typeof importCommand>[1] = {}): void {
  const outcome = shard.ask(importCommand(strand, options))
  if (outcome.kind !== 'imported') throw new Error(JSON.stringify(outcome))
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
    // One block has the record of the import.
    expect(shard.environment.blocks.getKeysCount()).toBe(blocksBefore + 1)
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
    expect(replyOf(shard.ask(appendNumber('history', 120))).seq).toBe(122)
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
      const checked = checkLines({ manifest, lines: Buffer.from(textOf(upTo.slice(1))), agents: [] })
      if ('fault' in checked) throw new Error(JSON.stringify(checked))
      const { agent, strand: hash } = manifest
      const records = onlyPart(checked.parts)
      expect(
        shard.ask({
          kind: 'strandImport',
          agent,
          strand: hash,
          ...records,
          principal: 'root',
          fromSeq: 0,
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
    importAll(strand, { hold: true })
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

describe('an import in a commit group with other commands', () => {
  it('sees the changes of earlier commands', () => {
    const strand = long('history', 3)
    const end = importCommand(strand)
    const held = importCommand(strand, { hold: true })
    const outcomes = shard.run(held, appendNumber('history', 9), end, appendNumber('history', 3), held)
    expect(outcomes.map(codeOf)).toEqual(['imported', 'import_open', 'imported', 'reply', 'imported'])
    expect(outcomes[2]).toMatchObject({ imported: 0, headSeq: 4, open: true })
    expect(replyOf(outcomes[3])).toMatchObject({ seq: 5 })
    expect(outcomes[4]).toMatchObject({ imported: 0, headSeq: 5, open: true })
    expect(shard.commits).toBe(1)
    expect(codeOf(shard.ask(importCommand(strand.append())))).toBe('import_conflict')
  })

  it('precedes records whose clock readings were reserved earlier', () => {
    const strand = new SignedStrand('history').append({ ms: shard.nowMs + 900 })
    const batch = {
      kind: 'batchAppend',
      agent: 'log',
      emerge: true,
      body: Buffer.from('{"records":[{"data":{}},{"data":{},"type":"sys/x"}],"atomic":false}'),
      options: {},
    } as const
    const outcomes = shard.run(batch, importCommand(strand), appendNumber('history', 1))
    expect(codeOf(outcomes[0])).toBe('reply')
    const written = replyOf(outcomes[2])
    const { timestamp_hlc: before } = replyOf(
      shard.ask({ kind: 'recordGet', agent: 'history', hash: strand.head }),
    )
    expect(written.timestamp_hlc > before).toBe(true)
  })

  it('changes nothing without the seed of the agent, and does not end without it', async () => {
    const strand = long('history', 3)
    const unknown = importCommand(strand, { byte: 99 })
    expect(codeOf(shard.ask(unknown))).toBe('import_rejected')
    expect(shard.store.agents.find('history')).toBeUndefined()
    importAll(strand, { hold: true })
    expect(codeOf(shard.ask(unknown))).toBe('import_rejected')
    await shard.reopen()
    expect(codeOf(shard.ask(appendNumber('history', 1)))).toBe('import_open')
    importAll(strand)
    await shard.reopen()
    expect(replyOf(shard.ask(appendNumber('history', 1))).seq).toBe(5)
  })
})
