import { isMainThread, type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { assert, unreachable } from '../src/base/assert.js'
import { steadyClock } from '../src/base/clock.js'
import { limits } from '../src/base/limits/limits.js'
import { CheckpointTable } from '../src/cluster/database/checkpoints.js'
import { hashOf } from '../src/cluster/database/status.js'
import { KnownEnd } from '../src/cluster/database/known-end.js'
import { describeLoss, findLoss } from '../src/cluster/database/loss.js'
import { NodeTable, Writers } from '../src/cluster/database/nodes.js'
import {
  SegmentRegister,
  type AppendOutcome,
  type SegmentPosition,
} from '../src/cluster/database/register.js'
import { statementsOf } from '../src/cluster/database/statements.js'
import { requireTables } from '../src/cluster/database/tables.js'
import { describeDatabaseError } from '../src/cluster/database/database-errors.js'
import {
  endLog,
  isClusterLogSettings,
  isLogRequest,
  isLogChannel,
  noClusterFigures,
  type ClusterLogFigures,
  type LogAnswer,
  type LogRequest,
  type SegmentName,
  type LogChannel,
} from '../src/protocol/cluster-log-messages.js'

/*
 * The thread that writes the logs of this node's shards to the database of the cluster, with one connection
 * for each shard. A shard that blocks until its answer is woken through shared memory, because it handles no
 * messages then.
 */

assert(!isMainThread && parentPort !== null, 'the log of a cluster runs in a worker thread')
const parent = parentPort
const data: unknown = workerData
assert(isClusterLogSettings(data), 'the log of a cluster receives its settings')
const { urls, tables, identity, rows: secret, takeOverDelayMs } = data
const writers = new Writers(takeOverDelayMs)
const statements = statementsOf(tables)
const figures: ClusterLogFigures = { ...noClusterFigures }
/** The durable ends of the logs that this node knows, by path of the file. */
const ends = new Map<string, KnownEnd>()

parent.on('message', (message: unknown) => {
  if (message === endLog) process.exit()
  assert(isLogChannel(message), 'the log of a cluster receives only channels of shards')
  serve(message)
})
setInterval(() => parent.postMessage(figures), limits.clusterMetricsMs).unref()

/** Executes the requests of a shard, one after another, until the shard closes its port. */
function serve({ shard, port, answers, known }: LogChannel): void {
  const connected = () => void (figures.connections += 1)
  const register = new SegmentRegister({
    urls,
    statements,
    nowMs: steadyClock,
    chance: Math.random,
    connected,
    // A pull reads whatever is wrong with the tables.
    ...(identity !== undefined && {
      examine: async (session) => void (await requireTables(session, tables, identity)),
    }),
  })
  const answerCount = new Int32Array(answers)
  const answer = (found: LogAnswer) => {
    port.postMessage(found)
    Atomics.add(answerCount, 0, 1)
    Atomics.notify(answerCount, 0)
  }
  let last = Promise.resolve()
  port.on('message', (request: unknown) => {
    assert(isLogRequest(request), 'a shard sends known requests')
    last = last.then(async () => answer(await execute({ register, shard, known }, request)))
  })
  port.on('close', () => void last.then(() => closeRegister(register, port)))
}

async function closeRegister(register: SegmentRegister, port: MessagePort): Promise<void> {
  port.close()
  await register.close()
}

/** The shard whose request is executed, and its connection. */
interface RequestContext extends Pick<LogChannel, 'shard'> {
  register: SegmentRegister
  known?: string | undefined
}

async function execute(context: RequestContext, request: LogRequest): Promise<LogAnswer> {
  if (request.kind === 'append') return append(context, request)
  try {
    return await confirmOrRead(context, request)
  } catch (error) {
    return { kind: 'failed', reason: describeDatabaseError(error) }
  }
}

async function append(
  context: RequestContext,
  { before, after, header, parts, rewrites }: Extract<LogRequest, { kind: 'append' }>,
): Promise<LogAnswer> {
  const { register, shard, known } = context
  const sinceMs = steadyClock()
  const outcome = await register.append(positionOf(before), {
    shard,
    ...positionOf(after),
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
  if (outcome.kind === 'lost') return { kind: 'appended', result: 'lost', reason: await lossText(context) }
  try {
    // Before the shard acknowledges anything.
    if (outcome.kind === 'durable') await recordDurable(known, positionOf(after))
  } catch (error) {
    const reason = `this node could not record that the segment is durable: ${describeDatabaseError(error)}`
    return { kind: 'appended', result: 'unknown', reason }
  }
  return { kind: 'appended', result: outcome.kind, reason: reasonOf(outcome) }
}

/** Describes which durable segments the log lacks; empty if it lacks none or that is unknown. */
async function lossText(context: RequestContext): Promise<string> {
  try {
    return (await compareEnd(context)).loss
  } catch {
    return ''
  }
}

/** Compares the durable end that this node knows with the log. */
async function compareEnd({
  register,
  shard,
  known: path,
}: RequestContext): Promise<LogAnswer & { kind: 'known' }> {
  const known = path === undefined ? undefined : endAt(path).position
  if (known === undefined) return { kind: 'known', segment: -1, loss: '' }
  const loss = await register.use((session) => findLoss(session, statements, { shard, known }))
  return { kind: 'known', segment: known.number, loss: loss === undefined ? '' : describeLoss(loss) }
}

async function isInLog({ register, shard }: RequestContext, name: SegmentName): Promise<boolean> {
  const { number: segment, hash } = positionOf(name)
  const there = await register.use((session) => hashOf(session, statements, { shard, segment }))
  return there?.equals(hash) === true
}

/**
 * Records the last durable segment in a file.
 * @param synced `now` to resolve after a sync; `soon` if no answer depends on it
 * @throws Error of the file system; the next call opens the file again
 */
async function recordDurable(
  path: string | undefined,
  position: SegmentPosition,
  synced: 'now' | 'soon' = 'now',
): Promise<void> {
  if (path === undefined) return
  const end = endAt(path)
  try {
    await end.record(position)
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

async function confirmOrRead(
  context: RequestContext,
  request: Exclude<LogRequest, { kind: 'append' }>,
): Promise<LogAnswer> {
  const { register, shard, known } = context
  if (request.kind === 'read')
    return { kind: 'rows', rows: await register.read(shard, request.after, request) }
  if (request.kind === 'known') return compareEnd(context)
  if (request.kind === 'confirm') {
    const { there, durable } = request
    const isThere = there === null || (await isInLog({ register, shard }, there))
    if (isThere && durable !== null) await recordDurable(known, positionOf(durable), 'soon')
    return { kind: 'confirmed', isThere }
  }
  if (request.kind === 'isAlive') {
    const rows = await register.use((session) => new NodeTable(session, statements, { secret }).all())
    return { kind: 'isAlive', alive: writers.isAlive(request, rows, steadyClock()) }
  }
  return register.use((session) => accessCheckpoint(new CheckpointTable(session, statements, shard), request))
}

async function accessCheckpoint(
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
      return { kind: 'done' }
    }
    case 'removeSealed':
      await checkpoints.removeSealed(request.segment)
      return { kind: 'done' }
    default:
      return unreachable(request)
  }
}

function positionOf({ segment, hash }: SegmentName): SegmentPosition {
  return { number: segment, hash: bufferOf(hash) }
}

/** A Buffer that is sent in a message arrives as a Uint8Array. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
