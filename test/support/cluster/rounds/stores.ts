import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { pooledRandom } from '../../../../src/base/random.js'
import { shardFolder } from '../../../../src/data/shard-folders.js'
import { clusterTables } from '../../../../src/cluster/database/statements.js'
import type { ClusterSecret } from '../../../../workers/store/replica/cluster-segment.js'
import { LogClient } from '../../../../workers/store/replica/log-client.js'
import { FollowedStore } from '../../../../workers/store/replica/followed-store.js'
import { blocksOf, replicatedRows } from '../../../../workers/store/row-mover.js'
import { closeSnapshot, openSnapshot } from '../../../../workers/store/snapshots.js'
import { testSeed } from '../../postgres/cluster-of-one.js'
import { logSettings, shardLine } from '../shard-line.js'
import { erasedText } from './erasures.js'
import { shardCount, type ThreeNodes } from './three-nodes.js'

const keys = { masterSeed: Buffer.from(testSeed, 'hex'), random: pooledRandom() }
const logThread = new URL('../../../../dist/workers/cluster-log.js', import.meta.url)

/**
 * Brings the stores of killed nodes up to the ends of their logs, and compares them with each other, with
 * stores built from the logs alone, and with a pull.
 * @returns differences, and places with erased bodies
 */
export async function differences(nodes: ThreeNodes): Promise<string[]> {
  const faults: string[] = []
  const pulled = nodes.place('pulled')
  const { status, stderr } = await nodes.run(['cluster', 'pull', pulled])
  if (status !== 0) faults.push(`A pull failed: ${stderr}`)
  const clusters = 'SELECT cluster_id FROM strandfast_cluster'
  const [row] = await nodes.rig.primary.query<{ cluster_id: string }>(clusters)
  const secret = { ...keys, cluster: row?.cluster_id ?? '' }
  const worker = new Worker(logThread, { workerData: logSettings(nodes.rig.urls, clusterTables) })
  try {
    for (let shard = 0; shard < shardCount; shard++) {
      const rebuilt = nodes.place(`rebuilt-${shard}`)
      const expected = await bringUp(worker, { shard, path: rebuilt, secret })
      faults.push(
        ...compareRows(`A pull of shard ${shard}`, rowsOf(shardFolder(pulled, shard)), expected.rows),
      )
      for (const { name, dataDir } of nodes.nodes) {
        const path = shardFolder(dataDir, shard)
        const { rows, kind } = await bringUp(worker, { shard, path, secret })
        faults.push(...compareRows(`Shard ${shard} of node ${name} (${kind})`, rows, expected.rows))
      }
    }
  } finally {
    await worker.terminate()
  }
  const directories = [pulled, ...nodes.nodes.map(({ dataDir }) => dataDir)]
  faults.push(...directories.flatMap(erasedBodiesIn))
  const like = 'SELECT 1 FROM strandfast_segments WHERE position($1::bytea IN blocks) > 0'
  const left = await nodes.rig.primary.query(like, [Buffer.from(erasedText)])
  if (left.length > 0) faults.push(`${left.length} rows of the log have bodies that were erased`)
  return faults
}

async function bringUp(
  worker: Worker,
  { shard, path, secret }: { shard: number; path: string; secret: ClusterSecret },
): Promise<{ rows: string[]; kind: string }> {
  const line = new LogClient(shardLine(worker, shard))
  // Like a starting node; this overwrites erased bodies, too.
  const store = await FollowedStore.open({ path, client: line, secret })
  await store.close()
  line.close()
  return { rows: rowsOf(path), kind: store.result.kind }
}

/** The rows that all nodes have in common. */
function rowsOf(path: string): string[] {
  const snapshot = openSnapshot(path)
  const rows = [...replicatedRows(snapshot), ...blocksOf(snapshot)].map(
    ({ table, key, value }) =>
      `${table} ${key.toString('hex')} ${createHash('sha256')
        .update(value ?? '')
        .digest('hex')
        .slice(0, 16)}`,
  )
  void closeSnapshot(snapshot)
  return rows
}

/** The differences between two lists of rows, with the first example of each kind. */
function compareRows(name: string, rows: readonly string[], expected: readonly string[]): string[] {
  const [there, wanted] = [new Set(rows), new Set(expected)]
  const more = rows.filter((row) => !wanted.has(row))
  const missing = expected.filter((row) => !there.has(row))
  if (more.length + missing.length === 0) return []
  return [`${name} has ${more.length} rows more (${more[0]}) and ${missing.length} fewer (${missing[0]})`]
}

function erasedBodiesIn(directory: string): string[] {
  if (!existsSync(directory)) return [`${directory} is missing`]
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8', withFileTypes: true })
  return (
    files
      // A store that was set aside belongs to another history, and may contain such bodies (docs/CLUSTER.md).
      .filter((file) => file.isFile() && !file.parentPath.includes('.other-'))
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((path) => readFileSync(path).includes(erasedText))
      .map((path) => `${path} contains an erased body`)
  )
}
