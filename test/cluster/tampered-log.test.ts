import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { SegmentRow } from '../../src/protocol/cluster-log-messages.js'
import type { Command } from '../../src/protocol/messages.js'
import { openEnvironment } from '../../workers/store/open-environment.js'
import { ClusterReader } from '../../workers/store/replica/cluster-reader.js'
import { FollowedStore } from '../../workers/store/replica/followed-store.js'
import { LogClient } from '../../workers/store/replica/log-client.js'
import { Memtable } from '../../workers/store/log/memtable.js'
import { pullStore } from '../../workers/store/replica/node-store.js'
import { decodeChanges, type RowChange } from '../../workers/store/log/row-change.js'
import { bytesOf, eraseInRows } from '../../workers/store/log/segment-blocks.js'
import { tableIds } from '../../src/store-files/store-tables.js'
import {
  blockCount,
  encodeBlock,
  eraseAt,
  hashAt,
  recordAt,
  type StoredRecord,
} from '../../workers/store/tables/record-codec.js'
import { ShardsOfOneLog, testSecret as secret } from '../support/cluster/shards-of-one-log.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { appendNumber, replyOf } from '../support/shard/shard.js'

const append = (text: string): Command => ({
  kind: 'recordAppend',
  agent: 'agent',
  emerge: false,
  body: Buffer.from(JSON.stringify({ data: { text } })),
  options: {},
})

describe.skipIf(noPostgres)('a node with a log that was changed by SQL', () => {
  let shards: ShardsOfOneLog

  beforeAll(async () => {
    shards = await ShardsOfOneLog.start()
  })

  afterAll(() => shards?.end())

  afterEach(() => shards.clear())

  /**
   * Changes the first block of the log's last segment, as an SQL statement could; the rest of the row stays.
   */
  const tamper = async (change: (block: RowChange, rows: SegmentRow[]) => Buffer) => {
    const rows = await shards.postgres.query<SegmentRow & { segment: string }>(
      'SELECT segment, part, hash, header, blocks, state FROM test_segments ORDER BY segment DESC LIMIT 1',
    )
    const [row] = rows
    const [block] = decodeChanges(Buffer.from(row?.blocks ?? ''))
    if (row === undefined || block === undefined) throw new Error('Expected a segment with a block')
    const blocks = change(block, [{ ...row, segment: Number(row.segment) }])
    await shards.postgres.query('UPDATE test_segments SET blocks = $1 WHERE segment = $2', [
      blocks,
      row.segment,
    ])
  }
  /** The same with changed records. */
  const withRecords = (change: (records: StoredRecord[]) => StoredRecord[]) => (block: RowChange) => {
    const value = block.value ?? Buffer.alloc(0)
    const records = Array.from({ length: blockCount(value) }, (_none, at) => recordAt(value, at))
    return bytesOf([{ ...block, value: encodeBlock(change(records)) }])
  }
  /** The part of a former header that describes a block. */
  const formerHeader = ({ key, value = Buffer.alloc(0) }: RowChange) =>
    Buffer.concat([
      key,
      ...Array.from({ length: blockCount(value) }, (_none, at) => Buffer.from(hashAt(value, at), 'hex')),
    ])
  const changes: [string, (block: RowChange, rows: SegmentRow[]) => Buffer][] = [
    [
      'another body',
      withRecords(([first, ...others]) => {
        if (first === undefined) return others
        const body = Buffer.from(Buffer.from(first.body).toString().replace('the truth', 'a lie, so'))
        return [{ ...first, body }, ...others]
      }),
    ],
    [
      'no newest record',
      (block) =>
        Buffer.concat([
          withRecords((records) => records.slice(0, -1))(block),
          bytesOf([{ table: block.table, key: formerHeader(block).subarray(-32), value: undefined }]),
        ]),
    ],
    ['a record of another agent', withRecords((all) => all.map((one) => ({ ...one, agentNo: 0 })))],
    ['a record without its signature', withRecords((all) => all.map(withoutSignature))],
    ['an imported block', (block) => bytesOf([{ ...block, table: tableIds.importedBlocks }])],
    ['no block', (block) => bytesOf([{ table: block.table, key: formerHeader(block), value: undefined }])],
    [
      'a row of another table',
      (block) => bytesOf([{ table: tableIds.apiKeys, key: formerHeader(block), value: undefined }]),
    ],
    ['a missing body', erasedBySql(0)],
    ['another body instead of an erased one', erasedBySql(1)],
  ]

  it.each(changes)(
    'rejects a segment with %s at a start, in a follower and in a pull',
    async (_what, change) => {
      await shards.begin()
      const shard = shards.node('a')
      shard.ask(appendNumber('other', 0))
      replyOf(shard.ask({ kind: 'agentCreate', agent: 'agent', zone: 'free', options: {} }))
      const path = mkdtempSync(join(tmpdir(), 'strandfast-changes-'))
      const clients = [new LogClient(shards.line()), new LogClient(shards.line())] as const
      const store = (nth: 0 | 1) => ({ path: join(path, `${nth}`), client: clients[nth], secret })
      const followed = await FollowedStore.open(store(0))
      shard.run(append('the truth'), append('another one'))
      await tamper(change)
      try {
        const refusal = /has rows that do not match its header|lacks the body of a record/
        expect(() => shards.node('b')).toThrow(refusal)
        expect(() => followed.catchUp()).toThrow(refusal)
        await expect(FollowedStore.open(store(1))).rejects.toThrow(refusal)
        const pulled = { path: join(path, 'pulled'), upTo: 5, channel: shards.line(), secret }
        await expect(pullStore(pulled)).rejects.toThrow(refusal)
      } finally {
        await followed.close()
        for (const client of clients) client.close()
        rmSync(path, { recursive: true, force: true })
      }
    },
  )

  it('makes a store restart before a segment without a body, until the erasure has been read', async () => {
    await shards.begin()
    const shard = shards.node('a')
    replyOf(shard.ask({ kind: 'agentCreate', agent: 'agent', zone: 'free', options: {} }))
    const { content_hash: hash } = replyOf(shard.ask(append('first')))
    shard.ask(append('second'))
    replyOf(
      shard.ask({
        kind: 'recordMutate',
        agent: 'agent',
        action: 'erase',
        hash,
        principal: 'root',
        options: {},
      }),
    )
    const client = new LogClient(shards.line())
    const rows = new Memtable()
    const path = mkdtempSync(join(tmpdir(), 'strandfast-read-'))
    const environment = openEnvironment(path, 'write', rows)
    const reader = new ClusterReader(client, secret, { from: undefined, rowOf: (...at) => rows.row(...at) })
    const offsets: number[] = []
    for (const { changes } of reader.read()) {
      for (const change of changes) if (change.table < 254) rows.replay(change)
      offsets.push(reader.positionAt(0).offset)
    }
    client.close()
    await environment.root.close()
    rmSync(path, { recursive: true })
    // Segments 0 and 1 begin the log; segment 3 lacks the body that segment 5 erases.
    expect(offsets).toEqual([2, 2, 2, 5])
  })

  it('rejects a segment of another cluster with the same master seed', async () => {
    await shards.begin()
    shards.node('a').ask(appendNumber('agent', 0))
    const elsewhere = { ...secret, cluster: '08'.repeat(16) }
    const client = new LogClient(shards.line())
    const path = mkdtempSync(join(tmpdir(), 'strandfast-elsewhere-'))
    const store = { path: join(path, 'store'), client, secret: elsewhere }
    await expect(FollowedStore.open(store)).rejects.toThrow(`is of another cluster, ${secret.cluster}`)
    client.close()
    rmSync(path, { recursive: true })
  })
})

function withoutSignature({ signature: _none, ...record }: StoredRecord): StoredRecord {
  return { ...record, sealedBy: 1 }
}

/**
 * Erases the first record of a block, with one byte of its salt, and everything else that a segment has of
 * the record.
 */
function erasedBySql(salt: number) {
  return (block: RowChange, rows: SegmentRow[]) => {
    const value = Buffer.from(block.value ?? '')
    eraseAt(value, 0)
    const [from, to] = [value.readUInt32LE(2), value.readUInt32LE(6)]
    value[from + 90] = salt
    value.writeUInt32LE(crc32(value.subarray(from + 4, to)), from)
    const { rewrites } = eraseInRows(rows, { ...block, value })
    return Buffer.concat(rewrites.map(({ blocks }) => blocks))
  }
}
