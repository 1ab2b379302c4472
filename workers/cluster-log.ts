import { isMainThread, type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { assert, unreachable } from '../src/base/assert.js'
import { steadyClock } from '../src/base/clock.js'
import { limits } from '../src/base/limits/limits.js'
import { CheckpointTable } from '../src/cluster/database/checkpoints.js'
import { hashOf } from '../src/cluster/database/standing.js'
import { KnownEnd } from '../src/cluster/database/known-end.js'
import { describeLoss, lossOf } from '../src/cluster/database/loss.js'
import { NodeTable, Writers } from '../src/cluster/database/nodes.js'
import {
  SegmentRegister,
  type AppendOutcome,
  type SegmentPosition,
} from '../src/cluster/database/register.js'
import { statementsOf } from '../src/cluster/database/statements.js'
import { describeTrouble } from '../src/cluster/database/trouble.js'
import {
  endLog,
  isClusterLogSettings,
  isLogRequest,
  isShardLine,
  noClusterFigures,
  type ClusterLogFigures,
  type LogAnswer,
  type LogRequest,
  type SegmentName,
  type ShardLine,
} from '../src/protocol/cluster-log-messages.js'

/*
 * The thread that brings the logs of this node's shards to the database of the cluster, by a connection each. A shard that
 * waits for its answer sees it in shared memory, since it takes no messages then.
 */

assert(!isMainThread && parentPort !== null, 'the log of a cluster has a thread of its own')
const parent = parentPort
const given: unknown = workerData
assert(isClusterLogSettings(given), 'the log of a cluster is handed its settings')
const { urls, tables, rows: secret, patienceMs } = given
const writers = new Writers(patienceMs)
const statements = statementsOf(tables)
const figures: ClusterLogFigures = { ...noClusterFigures }
/** What this node knows to be durable of the logs, by the paths of the files. */
const ends = new Map<string, KnownEnd>()

parent.on('message', (message: unknown) => {
  if (message === endLog) process.exit()
  assert(isShardLine(message), 'the log of a cluster is sent the lines of shards')
  serve(message)
})
setInterval(() => parent.postMessage(figures), limits.clusterFiguresMs).unref()

/** Carries out what a shard asks for, one after the other, until it closes its line. */
function serve({ shard, port, answers, known }: ShardLine): void {
  const connected = () => void (figures.connections += 1)
  const register = new SegmentRegister({
    urls,
    statements,
    nowMs: steadyClock,
    chance: Math.random,
    connected,
  })
  const words = new Int32Array(answers)
  const answer = (found: LogAnswer) => {
    port.postMessage(found)
    Atomics.add(words, 0, 1)
    Atomics.notify(words, 0)
  }
  let last = Promise.resolve()
  port.on('message', (request: unknown) => {
    assert(isLogRequest(request), 'a shard asks in a way that this version knows')
    last = last.then(async () => answer(await carryOut({ register, shard, known }, request)))
  })
  port.on('close', () => void last.then(() => closeRegister(register, port)))
}

async function closeRegister(register: SegmentRegister, port: MessagePort): Promise<void> {
  port.close()
  await register.close()
}

/** What requests of a line are carried out with. */
interface Served extends Pick<ShardLine, 'shard' | 'known'> {
  register: SegmentRegister
}

async function carryOut(served: Served, request: LogRequest): Promise<LogAnswer> {
  if (request.kind === 'append') return append(served, request)
  try {
    return await keepOrRead(served, request)
  } catch (error) {
    return { kind: 'failed', reason: describeTrouble(error) }
  }
}

async function append(
  served: Served,
  { before, after, header, parts, rewrites }: Extract<LogRequest, { kind: 'append' }>,
): Promise<LogAnswer> {
  const { register, shard, known } = served
  const sinceMs = steadyClock()
  const outcome = await register.append(placeOf(before), {
    shard,
    ...placeOf(after),
    header,
    parts: parts.map(({ blocks, state }) => ({
      blocks: bufferOf(blocks),
      state: state === null ? null : bufferOf(state),
    })),
    rewrites: rewrites.map(({ hash, blocks, ...more }) => ({
      ...more,
      hash: bufferOf(hash),
      blocks: bufferOf(blocks),
    })),
  })
  count(outcome, (steadyClock() - sinceMs) / 1_000)
  if (outcome.kind === 'lost') return { kind: 'appended', became: 'lost', reason: await lossText(served) }
  try {
    // Before anything is answered upon it.
    if (outcome.kind === 'durable') await keep(known, placeOf(after))
  } catch (error) {
    const reason = `this node could not note that it is durable: ${describeTrouble(error)}`
    return { kind: 'appended', became: 'unknown', reason }
  }
  return { kind: 'appended', became: outcome.kind, reason: reasonOf(outcome) }
}

/** What of the log is missing that this node knows to be durable; an empty text where nothing is, or that cannot be found out. */
async function lossText(served: Served): Promise<string> {
  try {
    return (await compare(served)).loss
  } catch {
    return ''
  }
}

/** Compares what this node knows of the log with the log. */
async function compare({ register, shard, known: path }: Served): Promise<LogAnswer & { kind: 'known' }> {
  const known = path === undefined ? undefined : endAt(path).place
  if (known === undefined) return { kind: 'known', segment: -1, loss: '' }
  const loss = await register.use((session) => lossOf(session, statements, { shard, known }))
  return { kind: 'known', segment: known.number, loss: loss === undefined ? '' : describeLoss(loss) }
}

async function isInLog({ register, shard }: Served, name: SegmentName): Promise<boolean> {
  const { number: segment, hash } = placeOf(name)
  const there = await register.use((session) => hashOf(session, statements, { shard, segment }))
  return there?.equals(hash) === true
}

/**
 * Notes the last segment that is durable.
 * @param synced whether it is on disk when this resolves, or soon afterwards, where nothing is answered upon it
 * @throws Error of the file system: the file is opened anew the next time
 */
async function keep(
  path: string | undefined,
  place: SegmentPosition,
  synced: 'now' | 'soon' = 'now',
): Promise<void> {
  if (path === undefined) return
  const end = endAt(path)
  try {
    await end.keep(place)
    if (synced === 'now') await end.synced
  } catch (error) {
    ends.delete(path)
    await end.close().catch(() => undefined)
    throw error
  }
}

function endAt(path: string): KnownEnd {
  const end = ends.get(path) ?? new KnownEnd(path)
  ends.set(path, end)
  return end
}

function count({ kind }: AppendOutcome, secs: number): void {
  if (kind === 'durable') {
    figures.appends += 1
    figures.appendSecs += secs
  } else figures[kind === 'unknown' ? 'unknown' : 'fenced'] += 1
}

function reasonOf(outcome: AppendOutcome): string {
  return outcome.kind === 'unknown' ? outcome.reason : ''
}

async function keepOrRead(
  served: Served,
  request: Exclude<LogRequest, { kind: 'append' }>,
): Promise<LogAnswer> {
  const { register, shard, known } = served
  if (request.kind === 'read')
    return { kind: 'rows', rows: await register.read(shard, request.after, request) }
  if (request.kind === 'known') return compare(served)
  if (request.kind === 'confirm') {
    const { there, durable } = request
    const isThere = there === null || (await isInLog({ register, shard }, there))
    if (isThere && durable !== null) await keep(known, placeOf(durable), 'soon')
    return { kind: 'confirmed', isThere }
  }
  if (request.kind === 'isAlive') {
    const rows = await register.use((session) => new NodeTable(session, statements, { secret }).all())
    return { kind: 'isAlive', alive: writers.isAlive(request, rows, steadyClock()) }
  }
  return register.use((session) => keepOrReadState(new CheckpointTable(session, statements, shard), request))
}

async function keepOrReadState(
  checkpoints: CheckpointTable,
  request: Exclude<LogRequest, { kind: 'append' | 'read' | 'known' | 'confirm' | 'isAlive' }>,
): Promise<LogAnswer> {
  switch (request.kind) {
    case 'lastCheckpoint': {
      const { head = null, stateBytes } = await checkpoints.last()
      return { kind: 'lastCheckpoint', head, stateBytes }
    }
    case 'checkpointPart': {
      const { segment, part } = request
      return { kind: 'checkpointPart', state: (await checkpoints.part(segment, part)) ?? null }
    }
    case 'putCheckpoint': {
      const { segment, part, state } = request
      await checkpoints.put(segment, part, bufferOf(state))
      return { kind: 'kept' }
    }
    default:
      return unreachable(request)
  }
}

function placeOf({ segment, hash }: SegmentName): SegmentPosition {
  return { number: segment, hash: bufferOf(hash) }
}

/** What a message carries has lost its class. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
