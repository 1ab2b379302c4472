import {
  isMainThread,
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from 'node:worker_threads'
import { assert } from '../src/base/assert.js'
import { steadyClock, systemClock } from '../src/base/clock.js'
import { limits } from '../src/base/limits/limits.js'
import { pooledRandom } from '../src/base/random.js'
import { ConfirmedClock } from '../src/protocol/confirmed-clock.js'
import { Heartbeat } from '../src/protocol/heartbeat.js'
import {
  countOf,
  decodeCommands,
  encodeOutcomes,
  frontOf,
  type CommandFrame,
  type InvalidFrame,
  type LateFrame,
} from '../src/protocol/frame.js'
import {
  closeShard,
  endShard,
  transferShard,
  isFrontJoins,
  isShardWorkerData,
  type ShardReady,
  type ShardWorkerData,
} from '../src/protocol/shard-data.js'
import { ShardMemory } from '../src/protocol/shard-memory.js'
import { deriveSeed } from '../src/strand/keys.js'
import { emailHmacInfo } from '../src/auth/email.js'
import { commands } from './commands/decisions.js'
import { FrontFrames, type SendFrame, Watched } from './shard/front-frames.js'
import { Shard } from './shard/shard.js'
import { type NodeLog, prepareNodeLog } from './store/replica/node-log.js'
import { ShardStore } from './store/shard-store.js'

/*
 * The thread of one shard: the only file that uses its ports, one for each front. Commands that arrive during
 * a commit form the next group, so groups grow with the load and an idle server commits a single record
 * without delay.
 */

assert(!isMainThread && parentPort !== null, 'a shard runs in a worker thread')
const port = parentPort
// A standby thread receives its settings later, in a message.
const data: unknown = workerData ?? (await new Promise((resolve) => port.once('message', resolve)))
if (data === endShard) process.exit()
assert(isShardWorkerData(data), 'a shard receives its settings')
const { settings, heartbeat: memory, shared } = data
const heartbeat = new Heartbeat(memory)
/** The ports with the numbers of their fronts; the first is that of the main thread. */
const ports = new Map([[port, 0]])
const watched = new Watched()
const frames = new FrontFrames(new ShardMemory(shared), watched)
frames.add(0, sender(port))
let isOpen = true
let isStepScheduled = false
/** The next look. It is later while there is nothing to flush, so that many idle shards cost little. */
let nextLook: { timer: NodeJS.Timeout; late: boolean }
const masterSeed = Buffer.from(settings.masterSeed)
const nodeLog = await nodeLogOf(data)
const clock = data.channels === undefined ? systemClock : new ConfirmedClock(data.channels.clock).now
const store = new ShardStore(settings.path, masterSeed, { openLog: nodeLog?.openLog })
// Flush replayed rows, because long reads see only LMDB, and clients may continue reads that began at the
// last owner.
if (nodeLog !== undefined) store.flush()
const shard = new Shard(
  {
    shard: settings.shard,
    store,
    clock,
    steadyClock,
    random: pooledRandom(),
    masterSeed,
    recordBytesMax: settings.recordBytesMax,
    signing: settings.signing,
    auth: settings.auth,
    proposals: settings.proposals,
    emailHmacKey: deriveSeed(masterSeed, emailHmacInfo),
    watched,
    heartbeat: () => heartbeat.step(),
  },
  commands,
  (frame) => frames.send(frame),
)

let closing: 'not' | 'closes' | 'transfers' = 'not'

port.on('message', (message: unknown) => {
  take(message, port)
  work()
})

function sender(to: MessagePort): SendFrame {
  return (frame, late) => {
    const memory = encodeOutcomes(frame)
    const message: ArrayBuffer | LateFrame =
      late === undefined ? memory : { kind: 'late', ...late, frame: memory }
    to.postMessage(message, [memory])
  }
}

/** Accepts commands from an additional front. */
function join(front: number, frontPort: MessagePort): void {
  ports.set(frontPort, front)
  frames.add(front, sender(frontPort))
  frontPort.on('message', (message: unknown) => {
    take(message, frontPort)
    work()
  })
  // This thread closes all ports when it closes; the front of another node may leave earlier.
  frontPort.on('close', () => leave(front, frontPort))
}

function leave(front: number, frontPort: MessagePort): void {
  if (!isOpen || !ports.delete(frontPort)) return
  frames.remove(front)
  watched.remove(front)
}

/**
 * Processes the commands that have arrived. While a group is being synced to a slow disk, one more turn may
 * decide a second group; after that, the callback of the sync continues the work.
 */
function work(): void {
  // Turns since all groups were durable.
  let turns = shard.unsyncedCount
  while (shard.busy && turns < 2) {
    shard.turn()
    if (shard.unsyncedCount > 0 && shard.waits()) shard.syncNow()
    if (shard.unsyncedCount > 0) store.syncSoon(onSynced)
    take()
    shard.flush()
    turns = shard.unsyncedCount > 0 ? turns + 1 : 0
  }
  if (shard.unsyncedCount > 0) store.syncSoon(onSynced)
  else if (closing !== 'not') void close()
  else stepSoon()
  if (nextLook.late && !isFlushed()) {
    clearTimeout(nextLook.timer)
    lookLater()
  }
}

/** Continues after a sync. An error means that it is unknown which groups are durable. */
function onSynced(error: Error | null): void {
  if (error !== null) throw error
  // The store may have closed during the sync.
  if (!isOpen) return
  heartbeat.step()
  shard.releaseDurable()
  take()
  work()
}

/** Processes a message of a port, if given, and all messages that are queued at any port. */
function take(message?: unknown, of = port): void {
  const commands: CommandFrame = []
  if (message !== undefined) takeOne(message, of, commands)
  // The loop includes ports that join during it.
  for (const from of ports.keys()) {
    for (let next = received(from); next !== undefined; next = received(from)) takeOne(next, from, commands)
  }
  if (commands.length > 0) shard.take(commands)
}

function received(from: MessagePort): unknown {
  return receiveMessageOnPort(from)?.message
}

function takeOne(message: unknown, from: MessagePort, commands: CommandFrame): void {
  if (message instanceof ArrayBuffer) {
    for (const command of commandsOf(message, from)) commands.push(command)
  } else if (message === closeShard || message === transferShard) {
    closing = message === transferShard ? 'transfers' : 'closes'
    shard.resume()
  } else if (message === endShard) process.exit()
  else {
    assert(isFrontJoins(message), 'a shard receives frames, fronts and orders to close')
    join(message.front, message.port)
  }
}

/** The commands of a front. An invalid frame of a front in another node is reported, and has none. */
function commandsOf(memory: ArrayBuffer, from: MessagePort): CommandFrame {
  const front = ports.get(from) ?? limits.frontsMax
  if (front < limits.frontsMax) return decodeCommands(memory)
  try {
    const frame = decodeCommands(memory)
    const isOwn = frame.every(([id, command]) => frontOf(id) === front && 'kind' in command)
    assert(isOwn && frame.length === countOf(memory), 'a front sends commands under its number')
    return frame
  } catch {
    from.postMessage({ kind: 'invalid', count: countOf(memory) } satisfies InvalidFrame)
    return []
  }
}

// A timer runs between two frames, when no agent is in use.
setInterval(() => store.agents.evictIdle(), limits.agentIdleMs).unref()

function isFlushed(): boolean {
  return shard.unsyncedCount === 0 && store.memtableBytes === 0
}

function lookLater(): void {
  const late = isFlushed()
  nextLook = { late, timer: setTimeout(look, late ? limits.shardIdleMs : limits.flushCheckMs).unref() }
}

/** Flushes rows to LMDB even if no more commands arrive. */
function look(): void {
  if (!isOpen) return
  if (shard.unsyncedCount === 0) shard.flush()
  if (nodeLog?.checkpoints.ready === true) nodeLog.checkpoints.step()
  // The shard may have paused for its maximum time, or become idle.
  if (shard.busy) work()
  else stepSoon()
  lookLater()
}

lookLater()

const ready: ShardReady = { kind: 'ready', term: nodeLog?.term ?? 0 }
port.postMessage(ready)
if (nodeLog?.notice !== undefined) shard.note(nodeLog.notice)

/** Schedules background work of an idle shard, after frames that have arrived. */
function stepSoon(): void {
  if (isStepScheduled || !shard.needsStep) return
  isStepScheduled = true
  setImmediate(() => {
    isStepScheduled = false
    if (!isOpen || shard.unsyncedCount > 0) return
    if (shard.needsStep) shard.step()
    heartbeat.step()
    stepSoon()
  })
}

/**
 * The log of a node's shard, after applying it to the store; undefined if the log is in files beside the
 * store.
 */
async function nodeLogOf({ settings, channels: lines }: ShardWorkerData): Promise<NodeLog | undefined> {
  if (lines === undefined) return undefined
  return prepareNodeLog({
    path: settings.path,
    channels: lines,
    secret: { cluster: lines.cluster, masterSeed, random: pooledRandom() },
    clock: systemClock,
    heartbeat: () => heartbeat.step(),
    onFailure: ({ message }) => shard.note({ kind: 'failed', failures: [message] }),
  })
}

/** Closes everything that keeps the thread alive. */
async function close(): Promise<void> {
  isOpen = false
  for (const openPort of ports.keys()) openPort.close()
  nodeLog?.checkpoints.close()
  // First transfer the shard, so that the next owner need not wait for the flush of this store.
  if (closing === 'transfers') store.transfer()
  await store.close()
}
