import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Command } from '../../../src/protocol/messages.js'
import { apiKeys } from '../../../workers/store/tables/api-keys.js'
import { blockKey } from '../../../workers/store/tables/tables.js'
import { TestShard, appendNumber, codeOf, replyOf, signed } from '../../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})

afterEach(() => shard.remove())

function get(agent: string, hash: string): Command {
  return { kind: 'recordGet', agent, hash }
}

/** Appends `count` records, a hundred in each commit. @returns their hashes */
function fill(agent: string, count: number): string[] {
  const hashes: string[] = []
  for (let from = 0; from < count; from += 100) {
    const commands = Array.from({ length: Math.min(100, count - from) }, (_none, index) =>
      appendNumber(agent, from + index, signed('group')),
    )
    for (const outcome of shard.run(...commands)) hashes.push(replyOf(outcome).content_hash)
  }
  return hashes
}

function numberOf(agent: string, hash: string | undefined): number {
  return replyOf(shard.ask(get(agent, hash ?? ''))).payload.n
}

/** Changes one byte of a block, `fromEnd` bytes before its end. */
function damage(blockNo: number, fromEnd: number): void {
  const block = shard.environment.blocks.get(blockKey(blockNo))
  if (block === undefined) throw new Error(`Expected a block ${blockNo}`)
  const damaged = Buffer.from(block)
  const at = damaged.length - fromEnd
  damaged[at] = (damaged[at] ?? 0) ^ 1
  shard.environment.blocks.putSync(blockKey(blockNo), damaged)
}

describe('a store whose log has not been flushed', () => {
  it('has no rows from it in LMDB, because the log of a cluster may not be durable yet', () => {
    const lastTransaction = () => Reflect.get(shard.environment.root.getStats(), 'lastTxnId')
    shard.runBackgroundWork()
    const before = lastTransaction()
    expect(before).toBeGreaterThan(0)
    fill('agent', 10)
    expect(lastTransaction()).toBe(before)
    shard.runBackgroundWork()
    expect(lastTransaction()).toBeGreaterThan(before)
  })

  it('applies removals in the log after a crash of its process', async () => {
    const making = { name: 'one', scopes: ['admin:*'], agents: [], maker: 'root', options: {} }
    const made = shard.ask({ kind: 'apiKeyCreate', ...making })
    shard.runBackgroundWork()
    if (made.kind !== 'apiKeyMade') throw new Error('Expected a key')
    shard.ask({ kind: 'apiKeyDelete', keyId: made.row.keyId, maker: 'root', options: {} })
    const crashed = mkdtempSync(join(tmpdir(), 'strandfast-crashed-'))
    cpSync(shard.path, crashed, { recursive: true })
    const restarted = new TestShard(crashed)
    expect(restarted.store.tables.of(apiKeys).page({ after: '', limit: 9 }).rows).toEqual([])
    await restarted.remove()
  })
})

describe('a store that is opened again', () => {
  it('finds every record by its hash, also if its index entry was only in memory', async () => {
    // More than the index holds in memory, so that both parts are searched.
    const hashes = fill('agent', 17_000)
    const later = fill('other', 50)
    await shard.reopen()
    for (let n = 0; n < hashes.length; n += 997) expect(numberOf('agent', hashes[n])).toBe(n)
    for (const [n, hash] of later.entries()) expect(numberOf('other', hash)).toBe(n)
    shard.runBackgroundWork()
    await shard.reopen()
    expect(numberOf('agent', hashes.at(-1))).toBe(16_999)
  })

  it('continues chains, blocks and agent numbers', async () => {
    fill('agent', 250)
    const before = replyOf(shard.ask({ kind: 'agentStatus', agent: 'agent' }))
    await shard.reopen()
    expect(replyOf(shard.ask({ kind: 'agentStatus', agent: 'agent' }))).toEqual(before)
    const next = replyOf(shard.ask(appendNumber('agent', 250)))
    expect(next).toMatchObject({ seq: 251, parent_hash: before.chain_head })
    expect(replyOf(shard.ask(appendNumber('new', 0))).seq).toBe(1)
    expect(shard.store.agents.find('new')?.no).toBe(1)
    expect(numberOf('agent', next.content_hash)).toBe(250)
  })

  it('does not return the record of another agent for a hash', () => {
    const [hash = ''] = fill('one', 1)
    fill('two', 1)
    expect(codeOf(shard.ask(get('two', hash)))).toBe('record_not_found')
  })
})

describe('a changed byte in a block on disk', () => {
  it('is detected when its record is read; only other records are served', () => {
    const [first = '', last = ''] = [fill('agent', 1), fill('agent', 1)].flat()
    damage(1, 1)
    expect(codeOf(shard.ask(get('agent', last)))).toBe('internal_error')
    expect(shard.notices).toEqual([{ kind: 'failed', failures: [expect.stringContaining('checksum')] }])
    expect(numberOf('agent', first)).toBe(0)
    expect(codeOf(shard.ask(appendNumber('agent', 2)))).toBe('reply')
  })

  it('fails pages, streams and replays that reach it', async () => {
    fill('agent', 1)
    fill('agent', 1)
    damage(1, 1)
    const page: Command = { kind: 'recordQuery', agent: 'agent', order: 'asc', limit: 10 }
    const replay: Command = { kind: 'streamPage', agent: 'agent', fromSeq: 0, limit: 10 }
    const log: Command = { kind: 'logPage', after: { ms: 0, counter: 0 }, limit: 10 }
    for (const command of [page, replay, log]) expect(codeOf(shard.ask(command))).toBe('internal_error')
    await expect(shard.reopen()).rejects.toThrow('checksum')
  })

  it('is detected at each position', () => {
    const [hash = ''] = fill('agent', 1)
    const bytes = shard.environment.blocks.get(blockKey(0))?.length ?? 0
    const record = { start: 0, end: 0 }
    const block = shard.environment.blocks.get(blockKey(0)) ?? Buffer.alloc(0)
    record.start = block.readUInt32LE(6)
    record.end = block.readUInt32LE(10)
    expect(record.end).toBe(bytes)
    for (let at = record.start; at < record.end; at++) {
      damage(0, bytes - at)
      expect(codeOf(shard.ask(get('agent', hash))), `byte ${at}`).toBe('internal_error')
      damage(0, bytes - at)
    }
    expect(numberOf('agent', hash)).toBe(0)
  })
})
