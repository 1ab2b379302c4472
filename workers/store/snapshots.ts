import type { Transaction } from 'lmdb'
import { openEnvironment, type Environment } from './environment.js'

/** One shard's store as it was at one moment, whatever is written to it since. */
export interface Snapshot {
  environment: Environment
  transaction: Transaction
}

/**
 * Takes a snapshot of every store at one moment: no shard committed anything between the first of them and the last, so
 * that together they are a state in which the stores were, and no record is there without what it followed from in
 * another shard (docs/adr/0020-backup.md). A shard commits a few thousand times a second at the most and stands still
 * for most of each commit, while a try takes microseconds: under load it is the first of some tens that holds.
 * @param attempts tries, after which there is none
 * @returns undefined when the stores were never seen at rest
 */
export async function takeSnapshots(
  paths: readonly string[],
  attempts: number,
): Promise<Snapshot[] | undefined> {
  const environments = paths.map((path) => openEnvironment(path, 'read'))
  for (let attempt = 0; attempt < attempts; attempt++) {
    const before = environments.map(lastCommit)
    const snapshots = environments.map((environment) => {
      environment.root.resetReadTxn()
      return { environment, transaction: environment.root.useReadTransaction() }
    })
    if (environments.every((environment, index) => seesCommit(environment, before[index]))) return snapshots
    for (const { transaction } of snapshots) transaction.done()
  }
  for (const { root } of environments) await root.close()
  return undefined
}

/** Lets go of a snapshot, so that the store can use its pages again. */
export async function closeSnapshot({ environment, transaction }: Snapshot): Promise<void> {
  transaction.done()
  await environment.root.close()
}

/** Number of the last commit that stands in the file. */
function lastCommit({ root }: Environment): number {
  return (root.getStats() as { lastTxnId: number }).lastTxnId
}

/**
 * Whether this process' snapshot is that of `commit`, and there was no later one. LMDB shows the number of a commit in
 * the file before it shows the commit to readers, so both are looked at.
 */
function seesCommit(environment: Environment, commit: number | undefined): boolean {
  const own = new RegExp(`^\\s*${process.pid}\\s+[0-9a-f]+\\s+(\\d+)\\s*$`, 'gm')
  const seen = [...environment.root.readerList().matchAll(own)].map(([, id]) => Number(id))
  return seen.length > 0 && seen.every((id) => id === commit) && lastCommit(environment) === commit
}
