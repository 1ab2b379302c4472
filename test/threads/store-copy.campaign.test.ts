import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pooledRandom } from '../../src/base/random.js'
import type { Command } from '../../src/protocol/messages.js'
import { CommitGroup } from '../../workers/shard/commit-group.js'
import { checkStore } from '../../workers/store/check/store-check.js'
import { erasures } from '../../workers/store/tables/erasures.js'
import { headsRoot } from '../../workers/store/tables/heads.js'
import { openEnvironment } from '../../workers/store/open-environment.js'
import { ShardStore } from '../../workers/store/shard-store.js'
import { closeSnapshot, takeSnapshots } from '../../workers/store/snapshots.js'
import { copyStore } from '../../workers/store/row-mover.js'
import { TestShard, appendNumber, replyOf } from '../support/shard/shard.js'

let shard: TestShard
let directory: string

beforeEach(() => {
  shard = new TestShard()
  directory = mkdtempSync(join(tmpdir(), 'strandfast-copy-'))
})

afterEach(async () => {
  await shard.remove()
  rmSync(directory, { recursive: true, force: true })
})

/** Copies the current store of the test's shard. */
async function copied(): Promise<string> {
  const path = mkdtempSync(join(directory, 'copy-'))
  shard.store.flush()
  const { environment } = shard
  environment.root.resetReadTxn()
  const transaction = environment.root.useReadTransaction()
  await copyStore({ environment, transaction }, path, () => {})
  transaction.done()
  return path
}

const append = (data: unknown): Command => ({
  kind: 'recordAppend',
  agent: 'notes',
  emerge: false,
  body: Buffer.from(JSON.stringify({ data })),
  options: {},
})

const erase = (hash: string): Command => ({
  kind: 'recordMutate',
  agent: 'notes',
  action: 'erase',
  hash,
  principal: 'root',
  options: {},
})

function timesInFile(path: string, text: string): number {
  const bytes = readFileSync(join(path, 'data.mdb'))
  let times = 0
  for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1)) times++
  return times
}

/**
 * Writes bodies of all sizes that the store encodes differently, with records of other agents between them.
 */
function writeSecrets(): { texts: string[]; hash: string }[] {
  replyOf(shard.ask({ kind: 'agentCreate', agent: 'notes', zone: 'free', options: {} }))
  return [1, 300, 1_500, 1_990, 2_500, 5_000, 14_000, 40_000].flatMap((size, sizeIndex) =>
    Array.from({ length: 12 }, (_none, n) => {
      const texts = [`secret-${sizeIndex}-${n}-begins`, `secret-${sizeIndex}-${n}-ends`]
      const data = { a: texts[0], b: 'x'.repeat(size), c: texts[1] }
      const hash: string = replyOf(shard.ask(append(data))).record_id
      shard.run(...Array.from({ length: 5 }, (_one, other) => appendNumber(`other-${other}`, n)))
      return { texts, hash }
    }),
  )
}

describe('the copy of a store', () => {
  it('has every row, has no faults and accepts new records', async () => {
    writeSecrets()
    const path = await copied()
    const { faults, ...counts } = await checkStore({ path, shard: 0 }, () => {})
    expect(faults).toEqual([])
    expect(counts).toMatchObject({ agents: 6, records: 96 * 6 + 6 })
    expect(await headsRoot([path], () => {})).toBe(await headsRoot([shard.path], () => {}))
    const store = new ShardStore(path, Buffer.alloc(32, 7))
    const agent = store.agents.find('notes')
    if (agent === undefined) throw new Error('Expected the agent in the copy')
    const clock = { next: () => ({ ms: store.lastHlc.ms + 1, counter: 0 }) }
    const group = new CommitGroup(clock as ConstructorParameters<typeof CommitGroup>[0], pooledRandom())
    group.append(agent, { type: 'record', body: Buffer.from('{}'), signing: 'record' })
    group.seal()
    store.commit(group, 0)
    await store.close()
    expect((await checkStore({ path, shard: 0 }, () => {})).faults).toEqual([])
  })

  it('has the contents of the snapshot, and nothing that was written later', async () => {
    shard.ask(appendNumber('a', 1))
    shard.runBackgroundWork()
    // Opened as in another thread, without the rows that are only in the log.
    const environment = openEnvironment(shard.path, 'read')
    environment.root.resetReadTxn()
    const transaction = environment.root.useReadTransaction()
    shard.run(...Array.from({ length: 100 }, (_none, n) => appendNumber('b', n)))
    const path = mkdtempSync(join(directory, 'copy-'))
    const copy = await copyStore({ environment, transaction }, path, () => {})
    transaction.done()
    await environment.root.close()
    expect(copy).toEqual({ agents: 1, records: 2 })
  })

  it('has no body that was erased earlier, even if the original file still contains it', async () => {
    const secrets = writeSecrets()
    for (const { hash } of secrets) shard.ask(erase(hash))
    // The free pages are not overwritten yet.
    const left = secrets.filter(({ texts }) => texts.some((text) => timesInFile(shard.path, text) > 0))
    expect(left.length).toBeGreaterThan(0)
    const path = await copied()
    for (const { texts } of secrets) {
      for (const text of texts) expect([text, timesInFile(path, text)]).toEqual([text, 0])
    }
  })

  it('has each body only where an erasure overwrites it', async () => {
    const secrets = writeSecrets()
    const path = await copied()
    for (const { texts } of secrets)
      for (const text of texts) expect(timesInFile(path, text)).toBeGreaterThan(0)
    const store = new ShardStore(path, Buffer.alloc(32, 7))
    const agent = store.agents.find('notes')
    const group = new CommitGroup(
      { next: () => undefined } as unknown as ConstructorParameters<typeof CommitGroup>[0],
      pooledRandom(),
    )
    for (const { hash } of secrets) {
      const record = agent === undefined ? undefined : store.findRecord(agent, hash)
      if (record !== undefined) group.changes.of(erasures).add({ agentNo: record.agentNo, seq: record.seq })
    }
    expect(group.changes.of(erasures).all).toHaveLength(secrets.length)
    store.commit(group, 0)
    while (store.needsStep) store.step()
    await store.close()
    for (const { texts } of secrets) {
      for (const text of texts) expect([text, timesInFile(path, text)]).toEqual([text, 0])
    }
  })

  it('can be interrupted', async () => {
    shard.run(...Array.from({ length: 100 }, (_none, n) => appendNumber('a', n)))
    const { environment } = shard
    const transaction = environment.root.useReadTransaction()
    const path = mkdtempSync(join(directory, 'copy-'))
    const copying = copyStore({ environment, transaction }, path, () => {
      throw new Error('Interrupted')
    })
    await expect(copying).rejects.toThrow('Interrupted')
    transaction.done()
  })
})

describe('snapshots of several stores', () => {
  const scratch = () => mkdtempSync(join(directory, 'scratch-'))

  it('are of one moment, while the stores are written one after another', async () => {
    const paths = Array.from({ length: 8 }, (_none, number) => join(directory, `shard-${number}`))
    for (const path of paths) mkdirSync(path)
    const writer = new Worker(join(import.meta.dirname, '../support/faults/chained-writer.mjs'), {
      workerData: paths,
    })
    await once(writer, 'message')
    for (let round = 0; round < 200; round++) {
      const snapshots = await takeSnapshots(paths, { scratch: scratch(), attempts: 100_000 })
      if (snapshots === undefined) throw new Error('Expected a moment at which nothing was committed')
      const numbers = snapshots.map(({ environment, transaction }) => {
        for (const { value } of environment.names.raw.getRange({ transaction })) return value.readUInt32BE(0)
        return 0
      })
      for (const snapshot of snapshots) await closeSnapshot(snapshot)
      expect(numbers).toEqual([...numbers].sort((one, other) => other - one))
      expect(numbers.at(-1)).toBeGreaterThanOrEqual((numbers[0] ?? 0) - 1)
    }
    const exited = once(writer, 'exit')
    writer.postMessage('stop')
    await exited
  })

  it('are not taken if the stores are never idle', async () => {
    const path = join(directory, 'shard-0')
    mkdirSync(path)
    await openEnvironment(path, 'write').root.close()
    expect(await takeSnapshots([path], { scratch: scratch(), attempts: 0 })).toBeUndefined()
  })
})

it('creates only the data file and the lock file of LMDB', async () => {
  expect(readdirSync(await copied()).sort()).toEqual(['data.mdb', 'lock.mdb'])
})
