import { isMainThread, type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { assert } from '../src/base/assert.js'
import { steadyClock } from '../src/base/clock.js'
import { SegmentRegister, type AppendOutcome } from '../src/outbound/cluster/register.js'
import { statementsOf } from '../src/outbound/cluster/statements.js'
import {
  isClusterLogSettings,
  isLogRequest,
  isShardLine,
  type LogAnswer,
  type LogRequest,
  type ShardLine,
} from '../src/protocol/cluster-log-messages.js'

/*
 * The thread that brings the logs of this node's shards to the database of the cluster, by a connection each. A shard that
 * waits for its answer sees it in shared memory, since it takes no messages then.
 */

assert(!isMainThread && parentPort !== null, 'the log of a cluster has a thread of its own')
const given: unknown = workerData
assert(isClusterLogSettings(given), 'the log of a cluster is handed its settings')
const { urls, tables } = given
const statements = statementsOf(tables)

parentPort.on('message', (line: unknown) => {
  assert(isShardLine(line), 'the log of a cluster is sent the lines of shards')
  serve(line)
})

/** Carries out what a shard asks for, one after the other, until it closes its line. */
function serve({ shard, port, answers }: ShardLine): void {
  const register = new SegmentRegister({ urls, statements, nowMs: steadyClock, chance: Math.random })
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
  if (request.kind === 'read') return read(register, shard, request)
  const { before, after, header, parts, rewrites } = request
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
  return { kind: 'appended', became: outcome.kind, reason: reasonOf(outcome) }
}

function reasonOf(outcome: AppendOutcome): string {
  return outcome.kind === 'unknown' ? outcome.reason : ''
}

async function read(
  register: SegmentRegister,
  shard: number,
  { after, rows }: Extract<LogRequest, { kind: 'read' }>,
): Promise<LogAnswer> {
  try {
    return { kind: 'rows', rows: await register.read(shard, after, rows) }
  } catch (error) {
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
  }
}

/** What a message carries has lost its class. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
