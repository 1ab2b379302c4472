import { isMainThread, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { assert } from '../src/base/assert.js'
import { steadyClock, systemClock } from '../src/base/clock.js'
import { limits } from '../src/base/limits.js'
import { pooledRandom } from '../src/base/random.js'
import { Heartbeat } from '../src/protocol/heartbeat.js'
import { decodeCommands, encodeOutcomes, type CommandFrame } from '../src/protocol/frame.js'
import type { ShardWorkerData } from '../src/protocol/messages.js'
import { isShardWorkerData } from '../src/protocol/shard-data.js'
import { deriveSeed } from '../src/strand/keys.js'
import { emailHmacInfo } from '../src/auth/email.js'
import { Shard } from './shard/shard.js'
import { type NodeLog, prepareNodeLog } from './store/log/node-log.js'
import { ShardStore } from './store/shard-store.js'

/*
 * The thread of one shard worker: the only file that uses the port. What arrives while a group is committed makes up
 * the next turn, so groups grow with the load and an idle server commits one record at once.
 */

assert(!isMainThread && parentPort !== null, 'a shard runs in a worker thread')
const port = parentPort
const given: unknown = workerData
assert(isShardWorkerData(given), 'a shard is handed its settings')
const { settings, heartbeat: memory } = given
const heartbeat = new Heartbeat(memory)
let open = true
let stepping = false
const masterSeed = Buffer.from(settings.masterSeed)
const nodeLog = await nodeLogOf(given)
const store = new ShardStore(settings.path, masterSeed, { openLog: nodeLog?.openLog })
const shard = new Shard(
  {
    shard: settings.shard,
    store,
    clock: systemClock,
    steadyClock,
    random: pooledRandom(),
    masterSeed,
    recordBytesMax: settings.recordBytesMax,
    signing: settings.signing,
    auth: settings.auth,
    proposals: settings.proposals,
    emailHmacKey: deriveSeed(masterSeed, emailHmacInfo),
    watched: new Set(),
    beat: () => heartbeat.beat(),
  },
  (frame) => {
    const memory = encodeOutcomes(frame)
    port.postMessage(memory, [memory])
  },
)

let closing = false

port.on('message', (message: unknown) => {
  take(message)
  work()
})

/**
 * Carries out what has arrived. While a group is on its way to a slow disk, one more turn is taken, which may leave a
 * second group or none; then the event loop tells when the disk has them.
 */
function work(): void {
  // Turns since everything was on disk.
  let turns = shard.underWay
  while (shard.busy && turns < 2) {
    shard.turn()
    if (shard.underWay > 0 && shard.waits()) shard.syncNow()
    if (shard.underWay > 0) store.syncSoon(goOn)
    take(receiveMessageOnPort(port)?.message)
    shard.flush()
    turns = shard.underWay > 0 ? turns + 1 : 0
  }
  if (shard.underWay > 0) store.syncSoon(goOn)
  else if (closing) void close()
  else stepSoon()
}

/** Something is on disk now, or nobody knows what is. */
function goOn(error: Error | null): void {
  if (error !== null) throw error
  // The sync of something that the thread has waited for itself meanwhile.
  if (!open) return
  heartbeat.beat()
  shard.tellDurable()
  take(receiveMessageOnPort(port)?.message)
  work()
}

/** Takes a message and all that are queued behind it. */
function take(message: unknown): void {
  const commands: CommandFrame = []
  for (let next = message; next !== undefined; next = receiveMessageOnPort(port)?.message) {
    if (next === 'close') {
      closing = true
      shard.goOn()
    } else {
      assert(next instanceof ArrayBuffer, 'a shard is sent frames')
      for (const command of decodeCommands(next)) commands.push(command)
    }
  }
  if (commands.length > 0) shard.take(commands)
}

// Safe between two frames, when no agent is in use. The timer keeps no thread alive.
setInterval(() => store.agents.rest(), limits.agentRestMs).unref()

// What no further command brings to LMDB.
setInterval(() => {
  if (!open) return
  if (shard.underWay === 0) shard.flush()
  if (nodeLog?.checkpoints.ready === true) nodeLog.checkpoints.step()
  // Where it has rested for as long as it may.
  if (shard.busy) work()
}, limits.flushLookMs).unref()

port.postMessage('ready')
if (nodeLog?.notice !== undefined) shard.note(nodeLog.notice)

/** Has an idle shard continue work that it has put off; frames that wait come first. */
function stepSoon(): void {
  if (stepping || !shard.needsStep) return
  stepping = true
  setImmediate(() => {
    stepping = false
    if (!open || shard.underWay > 0) return
    if (shard.needsStep) shard.step()
    heartbeat.beat()
    stepSoon()
  })
}

/** The log of a node's shard, with the store brought up to it; undefined where the log lies beside the store. */
async function nodeLogOf({ settings, lines }: ShardWorkerData): Promise<NodeLog | undefined> {
  const { path, node } = settings
  if (node === undefined || lines === undefined) return undefined
  return prepareNodeLog({
    path,
    node,
    lines,
    secret: { masterSeed, random: pooledRandom() },
    clock: systemClock,
    beat: () => heartbeat.beat(),
    failed: ({ message }) => shard.note({ kind: 'failed', failures: [message] }),
  })
}

/** Closing ends the thread: nothing else keeps it alive. */
async function close(): Promise<void> {
  open = false
  port.close()
  nodeLog?.checkpoints.close()
  await store.close()
}
