import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { arenas } from '../support/cluster/hostile/arenas.js'
import { edits, editing, foreignAddresses, replaced } from '../support/cluster/hostile/attacks.js'
import { forgeryOf } from '../support/cluster/hostile/forged-blocks.js'
import { HostileCluster } from '../support/cluster/hostile/hostile-cluster.js'
import { documented, plant, type Planted, scan } from '../support/cluster/hostile/planted.js'
import { allowedBy } from '../support/cluster/hostile/rounds.js'
import { inOne, type Table, tablesOf } from '../support/cluster/hostile/tables.js'
import { noPostgres } from '../support/postgres/postgres.js'

/** The attack: SQL statements. */
type Attack = (
  hostile: HostileCluster,
  tables: readonly Table[],
) => Promise<readonly string[]> | readonly string[]

const cases: [string, keyof typeof arenas, Attack][] = [
  ['a body that was changed under its checksums', 'fresh start', (_hostile, tables) => edits(tables)],
  [
    'a strand whose newest record was removed',
    'fresh start',
    async ({ database, belief }) => [
      await forgeryOf(database, 'newest record removed', lastRecord(belief.known.records)),
    ],
  ],
  [
    'a record that was moved to another agent',
    'fresh start',
    async ({ database, belief }) => [await forgeryOf(database, 'agent', lastRecord(belief.known.records))],
  ],
  [
    'a body that was changed before it was followed, and the address of another console',
    'following',
    (_hostile, tables) => [...editing(tables), ...foreignAddresses(tables)],
  ],
  [
    'the last two segments of a log, exchanged',
    'take-over',
    // Found by seed 48927349.
    () => {
      const move = (from: string, to: string) =>
        `UPDATE strandfast_segments SET segment = ${to} WHERE shard = 0 AND segment = ${from}`
      const last = '(SELECT max(segment) FROM strandfast_segments WHERE shard = 0)'
      return [move(last, '-1'), move(last, 'segment + 1'), move('-1', `${last} - 1`)]
    },
  ],
  [
    'logs without their ends, which the node knows',
    'restart',
    () => replaced({ name: 'strandfast_segments' }, 'before', 'true'),
  ],
  ['another number of shards', 'fresh start', () => ['UPDATE strandfast_cluster SET shards = 1']],
  ['an earlier era of tokens', 'fresh start', () => ['UPDATE strandfast_cluster SET token_era = 0']],
  [
    'the logs of another cluster with the same seed',
    'fresh start',
    () =>
      ['strandfast_segments', 'strandfast_checkpoints'].flatMap((name) =>
        replaced({ name }, 'other_cluster', 'true'),
      ),
  ],
  ['logs without their checkpoints', 'fresh start', () => ['DELETE FROM strandfast_checkpoints']],
  [
    'the cluster of another seed',
    'pull',
    () => ["UPDATE strandfast_cluster SET seed_fingerprint = 'another'"],
  ],
]

describe.skipIf(noPostgres)(
  'a node whose database is controlled by an attacker without the master seed',
  () => {
    let hostile: HostileCluster
    let planted: Planted

    beforeAll(async () => {
      hostile = await HostileCluster.make(async (url) => (planted = await plant(url)))
    })

    afterAll(() => hostile?.remove())

    it.each(cases)('does not serve %s: %s', async (_what, arena, attack) => {
      await hostile.restore()
      const execute = async () =>
        inOne(hostile.database, await attack(hostile, await tablesOf(hostile.database)))
      expect(await arenas[arena](hostile, execute, () => allowedBy(hostile))).toEqual([])
    })

    it('stores in the clear what SECURITY.md states for each column, and nothing else', async () => {
      await hostile.restore()
      const stated = documented(readFileSync('docs/SECURITY.md', 'utf8'))
      const { cluster: id } = JSON.parse(readFileSync(join(hostile.kept, 'format.json'), 'utf8'))
      const found = await scan(
        hostile.database,
        new Map([...planted, ['the id of the cluster', [String(id)]]]),
      )
      expect(Object.fromEntries(stated)).toEqual(Object.fromEntries(found))
    })
  },
)

/** The hash of the last record of the last written agent. */
function lastRecord(records: readonly string[]): string {
  return records.at(-1)?.split('/').at(-1) ?? ''
}
