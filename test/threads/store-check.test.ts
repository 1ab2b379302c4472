import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AgentRow } from '../../workers/store/tables/agent.js'
import { checkStore } from '../../workers/store/check/store-check.js'
import type { CheckedTable, Table } from '../../workers/store/tables/checked-table.js'
import type { Environment } from '../../workers/store/environment.js'
import { openEnvironment } from '../../workers/store/open-environment.js'
import { putPart } from '../../workers/store/hash-index/format.js'
import {
  blockCount,
  encodeBlock,
  recordAt,
  type StoredRecord,
} from '../../workers/store/tables/record-codec.js'
import { ShardStore } from '../../workers/store/shard-store.js'
import { copyStore } from '../../workers/store/row-mover.js'
import { fillShard } from '../support/shard/full-shard.js'
import { TestShard, appendNumber, signed } from '../support/shard/shard.js'

let shard: TestShard
let directory: string
let hashes: { deleted: string; erased: string }

beforeAll(() => {
  shard = new TestShard()
  directory = mkdtempSync(join(tmpdir(), 'strandfast-check-'))
  hashes = fillShard(shard)
  shard.store.flush()
})

afterAll(async () => {
  await shard.remove()
  rmSync(directory, { recursive: true, force: true })
})

/** The faults that a check finds in a copy of the store after `tamper`. */
async function faultsAfter(tamper: (environment: Environment) => void): Promise<string[]> {
  const path = mkdtempSync(join(directory, 'copy-'))
  const { environment } = shard
  environment.root.resetReadTxn()
  const transaction = environment.root.useReadTransaction()
  await copyStore({ environment, transaction }, path, () => {})
  transaction.done()
  const copy = openEnvironment(path, 'write')
  copy.root.transactionSync(() => tamper(copy))
  await copy.root.close()
  return (await checkStore({ path, shard: 3 }, () => {})).faults
}

/** Changes the row of an agent. */
function changeAgent({ agents }: Environment, name: string, change: Partial<AgentRow>): void {
  const key = Buffer.from(name)
  const row: AgentRow = JSON.parse(String(agents.get(key)))
  agents.put(key, Buffer.from(JSON.stringify({ ...row, ...change })))
}

/** Encodes the block with the record of this hash again, with a changed record. */
function changeRecord(environment: Environment, hash: string, change: Partial<StoredRecord>): void {
  let found = 0
  for (const { key, value } of Array.from(environment.blocks.getRange({}))) {
    const block = Buffer.from(value)
    const records = Array.from({ length: blockCount(block) }, (_none, position) => recordAt(block, position))
    const index = records.findIndex((record) => record.hash === hash)
    const record = records[index]
    if (record === undefined) continue
    records[index] = { ...record, ...change }
    environment.blocks.putSync(key, encodeBlock(records))
    found++
  }
  expect(found).toBe(1)
}

/** The hash of the first record that is sealed by a later record. */
function sealedHash({ blocks }: Environment): string {
  for (const { value } of blocks.getRange({})) {
    for (let position = 0; position < blockCount(value); position++) {
      const { signature, hash } = recordAt(value, position)
      if (signature === undefined) return hash
    }
  }
  throw new Error('Expected a sealed record')
}

const firstKey = (table: CheckedTable | Table): Buffer => {
  for (const key of table.getKeys({ limit: 1 })) return key
  throw new Error('Expected the table to have a row')
}
const removeFirst = (table: CheckedTable) => table.remove(firstKey(table))
const changeFirst = (table: CheckedTable, value: Buffer) => table.put(firstKey(table), value)
const zeroed = (table: CheckedTable) => Buffer.alloc(table.get(firstKey(table))?.length ?? 0)

it('finds no fault in a store with every kind of record, and counts the records', async () => {
  expect(await faultsAfter(() => {})).toEqual([])
  const steps: number[] = []
  const check = await checkStore({ path: shard.path, shard: 0 }, (count) => steps.push(count))
  const records = [...shard.environment.blocks.getRange({})].reduce(
    (sum, { value }) => sum + blockCount(value),
    0,
  )
  expect(check).toMatchObject({ agents: 4, records, faults: [] })
  expect(steps.reduce((sum, count) => sum + count, 0)).toBe(2 * records)
})

const cases: [string, (environment: Environment) => void, RegExp][] = [
  [
    'another body of a record',
    (one) => changeRecord(one, hashes.deleted, { body: Buffer.from('{"n":9}') }),
    /agent notes: record 1: The signature does not verify/,
  ],
  [
    'another body of a sealed record',
    (one) => changeRecord(one, sealedHash(one), { body: Buffer.from('{"n":9}') }),
    /agent feed: record 1: The stored hash does not match the header/,
  ],
  [
    'another signature',
    (one) => changeRecord(one, hashes.deleted, { signature: Buffer.alloc(64, 1) }),
    /agent notes: record 1: The signature does not verify/,
  ],
  [
    'a flipped bit in a block',
    ({ blocks }) => {
      const value = Buffer.from(blocks.get(firstKey(blocks)) ?? [])
      value[60] = (value[60] ?? 0) ^ 4
      blocks.putSync(firstKey(blocks), value)
    },
    /blocks: Check failed: a stored record matches its checksum/,
  ],
  ['a missing block', ({ blocks }) => void blocks.removeSync(firstKey(blocks)), /shard 3, /],
  [
    'an agent that names another strand',
    (one) => changeAgent(one, 'feed', { strand: '0'.repeat(64) }),
    /agent feed: record 0: /,
  ],
  [
    'an agent that names another key',
    (one) => changeAgent(one, 'feed', { publicKey: 'a'.repeat(64) }),
    /agent feed: record 0: /,
  ],
  ['a rotation that is forgotten', (one) => changeAgent(one, 'notes', { retiredKeys: [] }), /agent notes: /],
  [
    'a rotation at another record',
    (one) => {
      const row: AgentRow = JSON.parse(String(one.agents.get(Buffer.from('notes'))))
      const retiredKeys = (row.retiredKeys ?? []).map((key) => ({ ...key, lastSeq: 2 }))
      changeAgent(one, 'notes', { retiredKeys })
    },
    /agent notes: The keys of the agent do not match its records/,
  ],
  [
    'another zone',
    (one) => changeAgent(one, 'notes', { zone: 'protected' }),
    /agent notes: The zone is protected, which does not match the records/,
  ],
  [
    'other policies',
    (one) => changeAgent(one, 'feed', { policies: [] }),
    /agent feed: The policies do not match/,
  ],
  [
    'another creation time',
    (one) => changeAgent(one, 'feed', { createdAtMs: 1 }),
    /The creation time of the agent does not match/,
  ],
  [
    'an agent without a row',
    ({ agents }) => agents.remove(Buffer.from('feed')),
    /agent feed: The agent has no row/,
  ],
  ['an agent without a name', ({ names }) => removeFirst(names), /The agent number 1 is out of sequence/],
  [
    'a deletion that reads as a restoring',
    ({ mutations }) => changeFirst(mutations, Buffer.of(0)),
    /The row of the mutation does not match the record/,
  ],
  [
    'a deletion that is forgotten',
    ({ mutations }) => removeFirst(mutations),
    /The tables have 2 mutations, but the records have 3/,
  ],
  [
    'a deletion without a record',
    ({ mutations }) => mutations.put(Buffer.alloc(16), Buffer.of(1)),
    /The tables have 4 mutations, but the records have 3/,
  ],
  ['a missing commitment of an erased record', ({ erasures }) => removeFirst(erasures), /commitment/],
  [
    'another commitment of an erased record',
    ({ erasures }) => changeFirst(erasures, Buffer.alloc(32, 1)),
    /agent notes: record 3: /,
  ],
  [
    'a change of the zone that is forgotten',
    ({ zoneChanges }) => removeFirst(zoneChanges),
    /The row of the zone change does not match the record/,
  ],
  [
    'an edge of another weight',
    ({ edges }) => changeFirst(edges, zeroed(edges)),
    /The row of the edge does not match the record/,
  ],
  [
    'an edge that is forgotten',
    ({ edges }) => removeFirst(edges),
    /The row of the edge does not match the record/,
  ],
  [
    'an edge that is not found by its end',
    ({ edgesIn }) => removeFirst(edgesIn),
    /1 edges by destination and 2 edges/,
  ],
  [
    'the past of an edge that is forgotten',
    ({ edgeHistory }) => removeFirst(edgeHistory),
    /The row of the edge does not match the record/,
  ],
  [
    'a proposal that is forgotten',
    ({ proposals }) => removeFirst(proposals),
    /The row of the proposal is missing/,
  ],
  [
    'an open proposal that is not in the index',
    ({ proposalsOpen }) => removeFirst(proposalsOpen),
    /open proposals/,
  ],
  [
    'an open proposal that is never due',
    ({ proposalDues }) => removeFirst(proposalDues),
    /due times of proposals/,
  ],
  [
    'an open proposal without its target',
    ({ proposalTargets }) => removeFirst(proposalTargets),
    /targets of proposals/,
  ],
  [
    'an account without its e-mail',
    ({ auth }) => auth.remove(Buffer.from('\0auth:email:ada@example.com')),
    /An account is not found by its e-mail/,
  ],
  [
    'a row that is not JSON',
    ({ idempotency }) => changeFirst(idempotency, Buffer.from('{')),
    /The row idempotency [0-9a-f]{64} is invalid/,
  ],
  [
    'an agent with an invalid member',
    (environment) => {
      const text = String(environment.agents.get(Buffer.from('notes')))
      environment.agents.put(
        Buffer.from('notes'),
        Buffer.from(text.replace('"zone":"free"', '"zone":"none"')),
      )
    },
    /agent notes: The row agents notes is invalid/,
  ],
  [
    'an account with an invalid member',
    ({ auth }) => {
      const rows = Array.from(auth.getRange({}), ({ key, value }) => ({ key: Buffer.from(key), value }))
      for (const { key, value } of rows) {
        const changed = value.toString().replace('"mailboxProven":false', '"mailboxProven":0')
        auth.put(key, Buffer.from(changed))
      }
    },
    /tables: The row auth [0-9a-f]+ is invalid/,
  ],
]

it.each(cases)('finds %s', async (_what, tamper, expected) => {
  const faults = await faultsAfter(tamper)
  expect(faults.join('\n')).toMatch(expected)
  expect(faults.every((fault) => fault.startsWith('shard 3, '))).toBe(true)
})

it('finds a record that is not in the hash index', async () => {
  const full = new TestShard()
  try {
    // More records than the index holds in memory, so that its oldest part is on disk.
    for (let round = 0; round < 5; round++) {
      full.run(...Array.from({ length: 3_500 }, (_none, n) => appendNumber('a', n, signed('group'))))
    }
    full.runBackgroundWork()
    expect((await checkStore({ path: full.path, shard: 0 }, () => {})).faults).toEqual([])
    const { hashes: index } = full.environment
    const chunk = [...index.getRange({})].find(({ key }) => key[0] === 1)
    if (chunk === undefined) throw new Error('Expected the index to be on disk')
    const value = Buffer.from(chunk.value.subarray(0, -4))
    // The location of the first entry.
    value.writeDoubleLE(1, value.length / 2)
    putPart(index, chunk.key, value)
    const { faults } = await checkStore({ path: full.path, shard: 0 }, () => {})
    expect(faults).toEqual([expect.stringMatching(/Record [0-9a-f]{64} is not in the hash index/)])
  } finally {
    await full.remove()
  }
})

it('reports a bounded number of faults', async () => {
  const faults = await faultsAfter((one) => {
    for (const key of Array.from(one.names.getKeys({}))) one.names.put(key, Buffer.from('unknown'))
    for (const key of Array.from(one.auth.getKeys({}))) one.auth.put(key, Buffer.from('{'))
    for (let row = 0; row < 50; row++) one.organisms.put(Buffer.from(`o${row}`), Buffer.from('{'))
  })
  expect(faults).toHaveLength(20)
})

it('leaves a store unchanged, which can still be opened', async () => {
  const path = mkdtempSync(join(directory, 'copy-'))
  const { environment } = shard
  const transaction = environment.root.useReadTransaction()
  await copyStore({ environment, transaction }, path, () => {})
  transaction.done()
  await checkStore({ path, shard: 0 }, () => {})
  const store = new ShardStore(path, Buffer.alloc(32, 7))
  expect(store.lastHlc).toEqual(shard.store.lastHlc)
  const notes = store.agents.find('notes')
  expect(notes?.head).toEqual(shard.store.agents.find('notes')?.head)
  await store.close()
})
