import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { assert } from '../../../src/base/assert.js'
import { readIfExists, syncDirectory, writeDurably } from '../../../src/base/durable-file.js'
import type { LogChannel } from '../../../src/protocol/cluster-log-messages.js'
import {
  type CheckpointHead,
  type CheckpointRows,
  decodeCheckpointHead,
  decodeCheckpointPart,
} from './cluster-checkpoint.js'
import { ClusterReader, FollowedLog, type StoreToCatchUp } from './cluster-reader.js'
import type { ClusterSecret } from './cluster-segment.js'
import { LogClient } from './log-client.js'
import { isOfCluster, positionAt, setPositionAt } from '../log/position.js'
import type { RowChange } from '../log/row-change.js'
import { recover } from '../log/shard-log.js'
import { openEnvironment } from '../open-environment.js'
import { Scrubber } from '../scrubber.js'

/** The last checkpoint of a shard. */
export interface LastCheckpoint {
  head: CheckpointHead | undefined
  /** Bytes of sealed rows in the log after it. */
  stateBytes: number
}

/** A store of a node, and the channel to its log. Any node may own the shard. */
export interface NodeStore {
  /** Directory of the store, which must not be open. */
  path: string
  client: LogClient
  secret: ClusterSecret
}

/** A standalone store to bring up to a segment of a shard's log. */
export interface PullOptions {
  path: string
  channel: LogChannel
  secret: ClusterSecret
  upTo: number
}

/** What `catchUpStore` did. `place` is the path to which the old store was moved. */
export type CatchUpResult = { kind: 'caughtUp' } | { kind: 'built' } | { kind: 'setAside'; place: string }

/** The suffix of a store that is being built. */
const BUILDING = '.building'
/** The suffix of a store of another history. */
const ASIDE = '.other'
/** The file in a store's folder that identifies its data file. */
const IDENTITY = 'data.identity'

/** Also the last checkpoint, and the last segment that was read. */
type CaughtUp = CatchUpResult & { last: LastCheckpoint; segment: number }

/**
 * Applies its shard's log to a store. A missing store is built from the log. A store of another history is
 * set aside first: records that it has beyond the log were never acknowledged, as far as this node knows.
 * @param upTo the last segment to read, as in `ClusterReader.read`
 * @throws Error if the database cannot be read or the disk is full; or, with nothing changed, if the log
 * lacks segments that this node knows to be durable (`hasLostLog`)
 */
export async function catchUpStore(store: NodeStore, upTo = Infinity): Promise<CaughtUp> {
  store.client.durableEnd()
  const { path } = store
  let place: string | undefined
  for (;;) {
    const last = lastCheckpoint(store)
    try {
      const verdict = await examine(store, last.head)
      if (verdict === 'fits') return { kind: 'caughtUp', last, segment: await applyLog(store, { upTo }) }
      if (verdict === 'other') place = setAside(path)
      const segment = await buildStore(store, last.head, upTo)
      return place === undefined
        ? { kind: 'built', last, segment }
        : { kind: 'setAside', place, last, segment }
    } catch (error) {
      if (!hasCheckpointAfter(store, last.head?.segment)) throw error
    }
  }
}

/** Applies the log to a store. @returns the last segment that was read */
async function applyLog(
  store: NodeStore,
  { checkpoint, upTo }: { checkpoint?: CheckpointRows | undefined; upTo: number },
): Promise<number> {
  let reader: ClusterReader | undefined
  await recover(store.path, (from, rowOf) => {
    reader = readerOf(store, { from, rowOf })
    return new FollowedLog(reader, checkpoint, upTo)
  })
  assert(reader !== undefined, 'a log is opened with its store')
  return reader.position.segment
}

/** Builds a store from its shard's log, atomically. @returns the last segment that was read */
async function buildStore(store: NodeStore, head: CheckpointHead | undefined, upTo: number): Promise<number> {
  const { path } = store
  const building = path + BUILDING
  rmSync(building, { recursive: true, force: true })
  const checkpoint = head === undefined ? undefined : checkpointOf(store, head)
  const segment = await applyLog({ ...store, path: building }, { checkpoint, upTo })
  recordIdentity(building)
  syncDirectory(building)
  rmSync(path, { recursive: true, force: true })
  renameSync(building, path)
  // The placeholder of a store that was never created.
  rmSync(`${path}.tmp`, { recursive: true, force: true })
  syncDirectory(dirname(path))
  return segment
}

/**
 * Brings a store up to a segment of its shard's log, or further, if a later checkpoint has replaced that
 * segment or a later segment erases a body that is missing already.
 * @returns the last segment that was read
 */
export async function pullStore({ channel, upTo, ...options }: PullOptions): Promise<number> {
  const client = new LogClient(channel)
  try {
    const found = await catchUpStore({ ...options, client }, upTo)
    // Only after a failover of the database, which lost segments that were read.
    if (found.kind === 'setAside') rmSync(found.place, { recursive: true })
    return found.segment
  } finally {
    client.close()
  }
}

/**
 * Makes a pulled store a standalone one, which has no position in the cluster's log, and nothing left of the
 * bodies that were erased while it was pulled.
 */
export async function detachStore(path: string): Promise<void> {
  const environment = openEnvironment(path, 'write')
  try {
    for (const scrubber = new Scrubber(environment); scrubber.ready;) scrubber.step()
  } finally {
    await environment.root.close()
  }
  await setPositionAt(path, undefined)
  for (const name of ['lock.mdb', IDENTITY]) rmSync(join(path, name), { force: true })
}

/** Reads the head of a shard's last checkpoint. */
export function lastCheckpoint({ client, secret }: Omit<NodeStore, 'path'>): LastCheckpoint {
  const { head, stateBytes } = client.request({ kind: 'lastCheckpoint' }, 'lastCheckpoint')
  if (head === null) return { head: undefined, stateBytes }
  const decoded = decodeCheckpointHead(head, secret)
  if (decoded.shard !== client.shard) throw new Error('A checkpoint in the database is of another shard')
  return { head: decoded, stateBytes }
}

/**
 * Whether there is a checkpoint after a segment. Its writer removes sealed rows that a reader may not have
 * read yet, so that the reading fails.
 */
export function hasCheckpointAfter(store: Omit<NodeStore, 'path'>, segment = -1): boolean {
  const { head } = lastCheckpoint(store)
  return head !== undefined && head.segment > segment
}

/** Records which file the data file of a store is. */
function recordIdentity(path: string): void {
  const { ino, birthtimeNs } = statSync(join(path, 'data.mdb'), { bigint: true })
  writeDurably(join(path, IDENTITY), `${ino} ${birthtimeNs}\n`)
}

/** Whether the data file of a store was copied: a copy has another inode, or was created at another time. */
function isCopied(path: string): boolean {
  const recorded = readIfExists(join(path, IDENTITY))
  if (recorded === undefined) {
    // A pushed store has no identity yet.
    recordIdentity(path)
    return false
  }
  const { ino, birthtimeNs, ctimeNs } = statSync(join(path, 'data.mdb'), { bigint: true })
  const [inode, created] = recorded.trim().split(' ')
  // If the file system does not know when a file was created, Node returns the time of the last change.
  return inode !== `${ino}` || (birthtimeNs !== ctimeNs && created !== `${birthtimeNs}`)
}

/**
 * Whether the log can be applied to a store. A store that is older than the last checkpoint, or was copied,
 * counts as missing: a copy of a file that changes has pages of several moments.
 */
async function examine(
  { path, client }: NodeStore,
  head: CheckpointHead | undefined,
): Promise<'fits' | 'missing' | 'other'> {
  if (!existsSync(join(path, 'data.mdb'))) return 'missing'
  if (isCopied(path)) return 'missing'
  const position = await positionAt(path)
  if (position === undefined || !isOfCluster(position)) return 'other'
  const row = position.offset < 0 ? undefined : client.find(position.offset)
  if (row === undefined || !position.hash.equals(row.hash)) return 'other'
  // The log has all segments of an older store, so it may be deleted.
  return head !== undefined && head.segment > position.offset ? 'missing' : 'fits'
}

function setAside(path: string): string {
  const candidates = Array.from({ length: 100 }, (_none, number) => `${path}${ASIDE}-${number + 1}`)
  const place = candidates.find((candidate) => !existsSync(candidate))
  if (place === undefined)
    throw new Error(`There are too many stores of other histories next to ${path}: remove them`)
  renameSync(path, place)
  syncDirectory(dirname(path))
  return place
}

/** A reader of the shard's log that starts at the position of a store. */
export function readerOf({ client, secret }: NodeStore, store: StoreToCatchUp): ClusterReader {
  return new ClusterReader(client, secret, store)
}

function checkpointOf(store: NodeStore, head: CheckpointHead): CheckpointRows {
  return { segment: head.segment, hash: head.hash, rows: rowsOf(store, head) }
}

function* rowsOf(
  { client, secret }: NodeStore,
  { shard, segment, parts }: CheckpointHead,
): Generator<RowChange[]> {
  for (let part = 1; part <= parts; part++) {
    const { state } = client.request({ kind: 'checkpointPart', segment, part }, 'checkpointPart')
    if (state === null) throw new Error('The checkpoint was replaced by a later one in the meantime')
    yield decodeCheckpointPart({ shard, segment, part }, state, secret)
  }
}
