import type { Transaction } from 'lmdb'
import { assert } from '../../src/base/assert.js'
import { openEnvironment, type Environment } from './environment.js'

/** One shard's store as it was at one moment, whatever is written to it since. */
export interface Snapshot {
  environment: Environment
  transaction: Transaction
}

/**
 * Takes a snapshot of every store at one moment: no shard committed anything between the first of them and the last, so
 * together they are a state in which the stores really were, and no record is in them without its cause in another
 * shard (docs/adr/0020-backup.md). A shard commits a few thousand times a second at the most, while a try takes a tenth
 * of a millisecond: under load one of the first few holds.
 *
 * If shards are being written, this must be called in their process: LMDB may lose a commit when another process opens
 * the store at the same time.
 * @param scratch an empty directory, in which a store may be made
 * @param attempts after so many tries it gives up
 * @returns undefined when the stores were never seen at rest
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
    const rest = environments.every((environment, index) =>
      isAtRest(environment, { reader, commit: before[index] }),
    )
    if (rest) return snapshots
    for (const { transaction } of snapshots) transaction.done()
  }
  for (const { root } of environments) await root.close()
  return undefined
}

/** A snapshot of one store as it is now. */
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

/** Number of the last commit in the file. */
function lastCommit({ root }: Environment): number {
  return (root.getStats() as { lastTxnId: number }).lastTxnId
}

/**
 * Whether `commit` is the last one in the file, and the one that this thread's snapshot shows. LMDB writes a commit
 * into the file before it shows it to readers, so neither alone shows that nothing happened meanwhile.
 */
function isAtRest(
  environment: Environment,
  { reader, commit }: { reader: string; commit: number | undefined },
): boolean {
  const shown = readersOf(environment).some((one) => one.reader === reader && one.commit === commit)
  return shown && lastCommit(environment) === commit
}

/**
 * The name of this thread in LMDB's lists of readers. The only way to learn it is to be the only reader of a new store.
 */
async function ownReader(scratch: string): Promise<string> {
  const snapshot = snapshotOf(openEnvironment(scratch, 'write'))
  const [own] = readersOf(snapshot.environment)
  assert(own !== undefined, 'a thread that reads is among the readers')
  await closeSnapshot(snapshot)
  return own.reader
}

/** The readers of a store, by process and thread, and the commit that each sees. */
function readersOf({ root }: Environment): { reader: string; commit: number }[] {
  return [...root.readerList().matchAll(/^\s*(\d+\s+[0-9a-f]+)\s+(\d+)\s*$/gm)].map(
    ([, reader = '', commit]) => ({ reader, commit: Number(commit) }),
  )
}
