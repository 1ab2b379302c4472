import { isMainThread, type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { assert, unreachable } from '../src/base/assert.js'
import { steadyClock } from '../src/base/clock.js'
import { limits } from '../src/base/limits.js'
import { CheckpointTable } from '../src/outbound/cluster/checkpoints.js'
import { NodeTable } from '../src/outbound/cluster/nodes.js'
import { SegmentRegister, type AppendOutcome } from '../src/outbound/cluster/register.js'
import { statementsOf } from '../src/outbound/cluster/statements.js'
import { describeTrouble } from '../src/outbound/cluster/trouble.js'
import { Writers } from '../src/outbound/cluster/writers.js'
import {
  endLog,
  isClusterLogSettings,
  isLogRequest,
  isShardLine,
  noClusterFigures,
  type ClusterLogFigures,
  type LogAnswer,
  type LogRequest,
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

parent.on('message', (message: unknown) => {
  if (message === endLog) process.exit()
  assert(isShardLine(message), 'the log of a cluster is sent the lines of shards')
  serve(message)
})
setInterval(() => parent.postMessage(figures), limits.clusterFiguresMs).unref()

/** Carries out what a shard asks for, one after the other, until it closes its line. */
function serve({ shard, port, answers }: ShardLine): void {
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
    last = last.then(async () => answer(await carryOut(register, shard, request)))
  })
  port.on('close', () => void last.then(() => closeRegister(register, port)))
}

async function closeRegister(register: SegmentRegister, port: MessagePort): Promise<void> {
  port.close()
  await register.close()
}

async function carryOut(register: SegmentRegister, shard: number, request: LogRequest): Promise<LogAnswer> {
  if (request.kind === 'append') return append(register, shard, request)
  try {
    return await keepOrRead(register, shard, request)
  } catch (error) {
    return { kind: 'failed', reason: describeTrouble(error) }
  }
}

async function append(
  register: SegmentRegister,
  shard: number,
  { before, after, header, parts, rewrites }: Extract<LogRequest, { kind: 'append' }>,
): Promise<LogAnswer> {
  const sinceMs = steadyClock()
  const outcome = await register.append(
    { number: before.segment, hash: bufferOf(before.hash) },
    {
      shard,
      number: after.segment,
      hash: bufferOf(after.hash),
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
    },
  )
  count(outcome, (steadyClock() - sinceMs) / 1_000)
  return { kind: 'appended', became: outcome.kind, reason: reasonOf(outcome) }
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
  register: SegmentRegister,
  shard: number,
  request: Exclude<LogRequest, { kind: 'append' }>,
): Promise<LogAnswer> {
  if (request.kind === 'read')
    return { kind: 'rows', rows: await register.read(shard, request.after, request) }
  if (request.kind === 'isAlive') {
    const rows = await register.use((session) => new NodeTable(session, statements, { secret }).all())
    return { kind: 'isAlive', alive: writers.isAlive(request, rows, steadyClock()) }
  }
  return register.use((session) => keepOrReadState(new CheckpointTable(session, statements, shard), request))
}

async function keepOrReadState(
  checkpoints: CheckpointTable,
  request: Exclude<LogRequest, { kind: 'append' | 'read' | 'isAlive' }>,
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
      if (part === 1) await checkpoints.begin(segment)
      if (part === 0) await checkpoints.complete(segment, bufferOf(state))
      else await checkpoints.put(segment, part, bufferOf(state))
      return { kind: 'kept' }
    }
    default:
      return unreachable(request)
  }
}

/** What a message carries has lost its class. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
