import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Command } from '../../src/protocol/messages.js'
import { bodyCommitment, recordHash } from '../../src/strand/hash.js'
import { headerText } from '../../src/strand/header.js'
import { formatHlc } from '../../src/strand/hlc.js'
import { openEnvironment } from '../../workers/store/open-environment.js'
import { erasedCommitment } from '../../workers/store/tables/erasures.js'
import { recordBySeq } from '../../workers/store/tables/records.js'
import { TestShard, appendNumber, codeOf, keyed, replyOf, rowsOf } from '../support/shard/shard.js'

let shard: TestShard
const agent = 'notes'

beforeEach(() => {
  shard = new TestShard()
  replyOf(shard.ask({ kind: 'agentCreate', agent, zone: 'free', options: {} }))
})

afterEach(() => shard.remove())

const append = (data: unknown, key?: string): Command => ({
  kind: 'recordAppend',
  agent,
  emerge: false,
  body: Buffer.from(JSON.stringify({ data })),
  options: key === undefined ? {} : keyed(key),
})

const mutate = (action: 'delete' | 'restore' | 'erase', hash: string): Command => ({
  kind: 'recordMutate',
  agent,
  action,
  hash,
  principal: 'root',
  options: {},
})

const write = (data: unknown, key?: string): string => replyOf(shard.ask(append(data, key))).record_id
const view = (hash: string) => replyOf(shard.ask({ kind: 'recordGet', agent, hash }))

/** The number of occurrences of a text in the data file, in used and unused pages. */
function timesInFile(text: string): number {
  return timesIn(readFileSync(join(shard.path, 'data.mdb')), text)
}

/** The number of occurrences of a text in the files of the log, in used and unused segments. */
function timesInLog(text: string): number {
  const directory = join(shard.path, 'log')
  const files = readdirSync(directory).map((name) => readFileSync(join(directory, name)))
  return files.reduce((sum, bytes) => sum + timesIn(bytes, text), 0)
}

function timesIn(bytes: Buffer, text: string): number {
  let times = 0
  for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1)) times++
  return times
}

/**
 * Sizes of bodies that the store encodes differently: within a page, on a separate page, or on several pages.
 */
const sizes = [1, 40, 300, 1_500, 1_990, 2_500, 4_000, 5_000, 14_000, 40_000]

/** A body of about `size` bytes with a unique text at its beginning and its end. */
function secretBody(n: number, size: number): { data: object; texts: string[] } {
  const texts = [`secret-${n}-begins`, `secret-${n}-ends`]
  return { data: { a: texts[0], b: 'x'.repeat(size), c: texts[1] }, texts }
}

describe('an erased record', () => {
  it('is returned without its body, and is not in pages of records', () => {
    const hash = write({ name: 'Ada' })
    const other = write({ name: 'Bob' })
    const before = view(hash)
    expect(replyOf(shard.ask(mutate('erase', hash)))).toEqual({ record_id: hash, state: 'erased', seq: 3 })
    expect(view(hash)).toEqual({ ...before, payload: null, erased: true })
    const page = shard.ask({ kind: 'recordQuery', agent, order: 'asc', limit: 10 })
    expect(rowsOf(page)).toEqual([expect.objectContaining({ record_id: other })])
    const stream = shard.ask({ kind: 'streamPage', agent, fromSeq: 0, limit: 10 })
    expect(stream).toMatchObject({ kind: 'page', events: [{ seq: 2 }], end: true })
    const log = shard.ask({ kind: 'logPage', after: { ms: 0, counter: 0 }, limit: 10 })
    expect(log).toMatchObject({ kind: 'page', events: [{ seq: 2 }], end: true })
  })

  it('keeps the inputs of its header, hash and signature, but nothing from which its body could be derived', async () => {
    const hash = write({ name: 'Ada' })
    const { no } = shard.store.agents.find(agent) ?? { no: -1 }
    const before = recordBySeq(shard.environment, no, 1)
    const commitment = bodyCommitment(before?.salt ?? Buffer.alloc(0), before?.body ?? Buffer.alloc(0))
    shard.ask(mutate('erase', hash))
    await shard.reopen()
    const after = recordBySeq(shard.environment, no, 1)
    expect(after).toMatchObject({ hash, prev: before?.prev, signature: before?.signature, erased: true })
    expect([...(after?.salt ?? [])]).toEqual(Array.from({ length: 16 }, () => 0))
    expect(erasedCommitment(shard.environment, { agentNo: no, seq: 1 })).toBe(commitment)
    const { strand, publicKey: key } = shard.store.agents.find(agent) ?? { strand: '', publicKey: '' }
    const { prev, type } = before ?? { prev: '', type: '' }
    const hlc = formatHlc(before?.hlc ?? { ms: 0, counter: 0 })
    expect(recordHash(headerText({ strand, key, seq: 1, prev, hlc, type, body: commitment }))).toBe(hash)
  })

  it('stays erased: every later mutation is refused', () => {
    const hash = write({ name: 'Ada' })
    shard.ask(mutate('delete', hash))
    expect(replyOf(shard.ask(mutate('erase', hash))).state).toBe('erased')
    expect(view(hash)).toMatchObject({ deleted: true, erased: true })
    for (const action of ['delete', 'restore', 'erase'] as const) {
      expect(codeOf(shard.ask(mutate(action, hash)))).toBe('already_erased')
    }
  })

  it('is erased once by concurrent requests, also together with other records of its block', () => {
    const hashes = shard
      .run(...[1, 2, 3].map((n) => append({ n })))
      .map((one) => replyOf(one).record_id as string)
    const [first = '', second = '', third = ''] = hashes
    const outcomes = shard.run(mutate('erase', first), mutate('erase', second), mutate('erase', first))
    expect(outcomes.map(codeOf)).toEqual(['reply', 'reply', 'already_erased'])
    expect([first, second, third].map((hash) => view(hash).payload)).toEqual([null, null, { n: 3 }])
  })

  it('is reported to the fronts, which drop the recent events of its agent', () => {
    const hash = write({ name: 'Ada' })
    shard.ask(mutate('erase', hash))
    expect(shard.notices).toContainEqual({ kind: 'erased', agents: [agent] })
  })

  it('leaves the idempotent answer of its write unchanged, which never contained the body', () => {
    const hash = write({ name: 'Ada' }, 'once')
    shard.ask(mutate('erase', hash))
    expect(replyOf(shard.ask(append({ name: 'Ada' }, 'once'))).record_id).toBe(hash)
    expect(view(hash).payload).toBeNull()
  })
})

describe('the files of a store after an erasure', () => {
  it('do not contain the body, whatever its size, once an idle shard has overwritten the free pages', () => {
    // Records of other agents lie between the bodies; they fill and split the pages of the tree.
    const secrets = sizes.flatMap((size, index) => {
      return Array.from({ length: 12 }, (_none, n) => ({ ...secretBody(index * 100 + n, size), hash: '' }))
    })
    for (const secret of secrets) {
      secret.hash = write(secret.data)
      shard.run(
        ...Array.from({ length: 5 }, (_none, n) =>
          appendNumber(`other-${n}`, n, keyed(`${secret.hash}${n}`)),
        ),
      )
    }
    shard.store.flush()
    for (const { texts } of secrets) for (const text of texts) expect(timesInFile(text)).toBeGreaterThan(0)
    for (const { hash } of secrets) shard.ask(mutate('erase', hash))
    // It does not wait until the shard is idle.
    expect(shard.needsStep).toBe(true)
    shard.runBackgroundWork()
    for (const { texts } of secrets)
      for (const text of texts) expect([text, timesInFile(text)]).toEqual([text, 0])
  })

  it('have no body in the log as soon as the erasure is answered, flushed before or not', () => {
    for (const flushed of [false, true]) {
      const secrets = sizes.map((size, index) => secretBody(1_000 + index + (flushed ? 100 : 0), size))
      const hashes = secrets.map(({ data }) => write(data))
      if (flushed) shard.store.flush()
      for (const { texts } of secrets) for (const text of texts) expect(timesInLog(text)).toBe(1)
      for (const hash of hashes) shard.ask(mutate('erase', hash))
      for (const { texts } of secrets) for (const text of texts) expect(timesInLog(text)).toBe(0)
    }
  })

  it('continue to be overwritten after a restart', async () => {
    const { data, texts } = secretBody(1, 5_000)
    const hash = write(data)
    write({ n: 1 })
    shard.store.flush()
    shard.ask(mutate('erase', hash))
    const [begins = ''] = texts
    expect(timesInFile(begins)).toBe(1)
    await shard.reopen()
    shard.runBackgroundWork()
    expect(timesInFile(begins)).toBe(0)
    expect([...shard.environment.filling.getKeys({})]).toEqual([])
  })

  it('are overwritten only after all snapshots from before the erasure, which still read the body, have ended', async () => {
    const { data, texts } = secretBody(1, 5_000)
    const [begins = ''] = texts
    const hash = write(data)
    shard.store.flush()
    const reader = openEnvironment(shard.path, 'read')
    const { no } = shard.store.agents.find(agent) ?? { no: -1 }
    const snapshot = reader.root.useReadTransaction()
    shard.ask(mutate('erase', hash))
    shard.runBackgroundWork()
    expect(timesInFile(begins)).toBe(1)
    snapshot.done()
    reader.root.resetReadTxn()
    shard.runBackgroundWork()
    expect(timesInFile(begins)).toBe(0)
    expect(recordBySeq(reader, no, 1)?.erased).toBe(true)
    await reader.root.close()
  })

  it('grow only a little with each erasure', async () => {
    const hashes = Array.from({ length: 30 }, (_none, n) => write(secretBody(n, 5_000).data))
    const reader = openEnvironment(shard.path, 'read')
    // Counts only the used pages; free space for the next commits follows them.
    const bytes = () => (reader.root.getStats() as { lastPageNumber: number }).lastPageNumber * 4_096
    const erase = (hash: string) => {
      shard.ask(mutate('erase', hash))
      shard.runBackgroundWork()
    }
    for (const hash of hashes.slice(0, 5)) erase(hash)
    const before = bytes()
    for (const hash of hashes.slice(5)) erase(hash)
    expect(bytes() - before).toBeLessThan(25 * 40_960)
    await reader.root.close()
  })
})
