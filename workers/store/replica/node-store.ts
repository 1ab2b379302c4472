import { existsSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syncDirectory } from '../../../src/base/durable-file.js'
import type { ShardLine } from '../../../src/protocol/cluster-log-messages.js'
import type { CheckpointHead, CheckpointPlace } from './cluster-checkpoint.js'
import { clusterForm, ClusterReader, FollowedLog, type LogForm, type StoreBehind } from './cluster-reader.js'
import type { ClusterSecret } from './cluster-segment.js'
import { LogLine } from './log-line.js'
import { isOfCluster, positionAt, setPositionAt } from '../log/position.js'
import type { RowChange } from '../log/row-change.js'
import { recover } from '../log/shard-log.js'

/** The last checkpoint of a shard, and what has come since. */
export interface LastCheckpoint {
  head: CheckpointHead | undefined
  /** Bytes of sealed rows behind it. */
  stateBytes: number
}

/** A store of a node, whoever owns its shard, and its way to the log. */
export interface NodeStore {
  /** Its directory; nobody has it open. */
  path: string
  line: LogLine
  secret: ClusterSecret
  /** The form of the log; that of nodes when absent. */
  form?: LogForm | undefined
}

/** A store that is made of a shard's log, up to a segment. */
export interface Pulled extends Omit<NodeStore, 'line'> {
  upTo: number
  line: ShardLine
}

/** What became of the store that was there; its place is where it was moved. */
export type Found = { kind: 'caughtUp' } | { kind: 'built' } | { kind: 'setAside'; place: string }

/** A store that is being built. */
const BUILDING = '.building'
/** A store of another history. */
const ASIDE = '.other'

/**
 * Brings a store up to the end of its shard's log. One that is not there is made from it, and one of another history is
 * set aside first: what it has beyond the log was never acknowledged, as far as this node knows.
 * @throws Error when the database cannot be read, or the disk is full; where the log lacks what this node knows to be durable
 * (`hasLostLog`), and then nothing is changed
 */
export async function bringUp(store: NodeStore): Promise<Found & { last: LastCheckpoint }> {
  store.line.known()
  const last = lastCheckpoint(store)
  const { path } = store
  const verdict = await examine(store, last.head)
  if (verdict === 'fits') {
    await recover(path, (from, rowOf) => new FollowedLog(readerOf(store, { from, rowOf })))
    return { kind: 'caughtUp', last }
  }
  const place = verdict === 'other' ? setAside(path) : undefined
  await buildStore(store, last.head)
  return place === undefined ? { kind: 'built', last } : { kind: 'setAside', place, last }
}

/** Makes a store from its shard's log, whole or not at all. @param upTo the last segment that it is to have */
async function buildStore(
  store: NodeStore,
  head: CheckpointHead | undefined,
  upTo = Infinity,
): Promise<void> {
  const { path } = store
  const building = path + BUILDING
  rmSync(building, { recursive: true, force: true })
  const place = head === undefined ? undefined : placeOf(store, head)
  await recover(building, (from, rowOf) => new FollowedLog(readerOf(store, { from, rowOf }), place, upTo))
  syncDirectory(building)
  rmSync(path, { recursive: true, force: true })
  renameSync(building, path)
  // The placeholder of a store that was never made.
  rmSync(`${path}.tmp`, { recursive: true, force: true })
  syncDirectory(dirname(path))
}

/**
 * Makes a store of its own of a shard's log, up to a segment.
 * @returns false where the log has a checkpoint behind that segment, so that it cannot be read up to there any more
 */
export async function pullStore({ line: given, upTo, ...asked }: Pulled): Promise<boolean> {
  const line = new LogLine(given)
  const store = { ...asked, line }
  try {
    const { head } = lastCheckpoint(store)
    if (head !== undefined && head.segment > upTo) return false
    try {
      await buildStore(store, head, upTo)
    } catch (error) {
      // One that was made in the meantime took away what was being read.
      if (lastCheckpoint(store).head?.segment === head?.segment) throw error
      return false
    }
    // It has no log yet.
    await setPositionAt(store.path, undefined)
    rmSync(join(store.path, 'lock.mdb'), { force: true })
    return true
  } finally {
    line.close()
  }
}

/** The last checkpoint of a shard. */
export function lastCheckpoint({
  line,
  secret,
  form = clusterForm,
}: Pick<NodeStore, 'line' | 'secret' | 'form'>): LastCheckpoint {
  const { head, stateBytes } = line.request({ kind: 'lastCheckpoint' }, 'lastCheckpoint')
  if (head === null) return { head: undefined, stateBytes }
  const read = form.checkpointHead(head, secret)
  if (read.shard !== line.shard) throw new Error('A checkpoint of the cluster is of another shard')
  return { head: read, stateBytes }
}

/** Whether the log goes on from a store: not where it is of another history, nor where a checkpoint lies between. */
async function examine(
  { path, line }: NodeStore,
  head: CheckpointHead | undefined,
): Promise<'fits' | 'missing' | 'other'> {
  if (!existsSync(join(path, 'data.mdb'))) return 'missing'
  const position = await positionAt(path)
  if (position === undefined || !isOfCluster(position)) return 'other'
  const row = position.offset < 0 ? undefined : line.find(position.offset)
  if (row === undefined || !position.hash.equals(row.hash)) return 'other'
  // All that it has is in the log, so it may go.
  return head !== undefined && head.segment > position.offset ? 'missing' : 'fits'
}

function setAside(path: string): string {
  const places = Array.from({ length: 100 }, (_none, number) => `${path}${ASIDE}-${number + 1}`)
  const place = places.find((one) => !existsSync(one))
  if (place === undefined)
    throw new Error(`Too many stores of other histories lie beside ${path}: remove them`)
  renameSync(path, place)
  syncDirectory(dirname(path))
  return place
}

/** Reads its shard's log behind a place. */
export function readerOf({ line, secret, form }: NodeStore, behind: StoreBehind): ClusterReader {
  return new ClusterReader(line, secret, { ...behind, form })
}

function placeOf(store: NodeStore, head: CheckpointHead): CheckpointPlace {
  return { segment: head.segment, hash: head.hash, rows: rowsOf(store, head) }
}

function* rowsOf(
  { line, secret, form = clusterForm }: NodeStore,
  { shard, segment, parts }: CheckpointHead,
): Generator<RowChange[]> {
  for (let part = 1; part <= parts; part++) {
    const { state } = line.request({ kind: 'checkpointPart', segment, part }, 'checkpointPart')
    if (state === null) throw new Error('The checkpoint was replaced by a later one in the meantime')
    yield form.checkpointPart({ shard, segment, part }, state, secret)
  }
}
