import type { Transaction } from 'lmdb'
import { assert } from '../../src/base/assert.js'
import type { Environment } from './environment.js'
import { openEnvironment } from './open-environment.js'

/** One shard's store as of one moment. */
export interface Snapshot {
  environment: Environment
  transaction: Transaction
}

/**
 * Takes a consistent snapshot of all stores: no shard commits between the first snapshot and the last, so no
 * record is in them without its cause in another shard (docs/adr/0020-backup.md). A shard commits at most a
 * few thousand times a second and an attempt takes a tenth of a millisecond, so under load one of the first
 * attempts succeeds.
 *
 * While shards are written to, call this in their process: LMDB may lose a commit if another process opens
 * the store at the same time.
 * @param scratch an empty directory for a temporary store
 * @param attempts the maximum number of attempts
 * @returns undefined if a shard committed during every attempt
 */
export async function takeSnapshots(
  paths: readonly string[],
  { scratch, attempts }: { scratch: string; attempts: number },
): Promise<Snapshot[] | undefined> {
  const reader = await ownReader(scratch)
  const environments = paths.map((path) => openEnvironment(path, 'read'))
  for (let attempt = 0; attempt < attempts; attempt++) {
    const before = environments.map(lastCommit)
    const snapshots = environments.map(snapshotOf)
    const isConsistent = environments.every((environment, index) =>
      isUnchanged(environment, { reader, commit: before[index] }),
    )
    if (isConsistent) return snapshots
    for (const { transaction } of snapshots) transaction.done()
  }
  for (const { root } of environments) await root.close()
  return undefined
}

/** Opens a snapshot of the current state of one store. */
export function openSnapshot(path: string): Snapshot {
  return snapshotOf(openEnvironment(path, 'read'))
}

function snapshotOf(environment: Environment): Snapshot {
  environment.root.resetReadTxn()
  return { environment, transaction: environment.root.useReadTransaction() }
}

/** Closes a snapshot, so that the store can reuse its pages. */
export async function closeSnapshot({ environment, transaction }: Snapshot): Promise<void> {
  transaction.done()
  await environment.root.close()
}

/** The number of the last commit in the file. */
function lastCommit({ root }: Environment): number {
  return (root.getStats() as { lastTxnId: number }).lastTxnId
}

/**
 * Whether `commit` is still the last one in the file, and the one that this thread's snapshot sees. LMDB
 * writes a commit to the file before readers can see it, so both conditions are needed.
 */
function isUnchanged(
  environment: Environment,
  { reader, commit }: { reader: string; commit: number | undefined },
): boolean {
  const isSeen = readersOf(environment).some((one) => one.reader === reader && one.commit === commit)
  return isSeen && lastCommit(environment) === commit
}

/**
 * The name of this thread in LMDB's reader lists. It can only be found as the single reader of a new store.
 */
async function ownReader(scratch: string): Promise<string> {
  const snapshot = snapshotOf(openEnvironment(scratch, 'write'))
  const [own] = readersOf(snapshot.environment)
  assert(own !== undefined, 'a reading thread is in the reader list')
  await closeSnapshot(snapshot)
  return own.reader
}

/** The readers of a store, as process and thread, with the commit that each sees. */
function readersOf({ root }: Environment): { reader: string; commit: number }[] {
  return [...root.readerList().matchAll(/^\s*(\d+\s+[0-9a-f]+)\s+(\d+)\s*$/gm)].map(
    ([, reader = '', commit]) => ({ reader, commit: Number(commit) }),
  )
}
