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
import { Heartbeat } from '../src/protocol/heartbeat.js'
import { decodeCommands, encodeOutcomes, type CommandFrame, type LateFrame } from '../src/protocol/frame.js'
import {
  closeShard,
  endShard,
  handOverShard,
  isFrontJoins,
  isShardWorkerData,
  type ShardReady,
  type ShardWorkerData,
} from '../src/protocol/shard-data.js'
import { ShardMemory } from '../src/protocol/shard-memory.js'
import { deriveSeed } from '../src/strand/keys.js'
import { emailHmacInfo } from '../src/auth/email.js'
import { FrontFrames, type SendFrame, Watched } from './shard/front-frames.js'
import { Shard } from './shard/shard.js'
import { type NodeLog, prepareNodeLog } from './store/replica/node-log.js'
import { ShardStore } from './store/shard-store.js'

/*
 * The thread of one shard worker: the only file that uses its ports, one for each front. What arrives while a group is committed makes up
 * the next turn, so groups grow with the load and an idle server commits one record at once.
 */

assert(!isMainThread && parentPort !== null, 'a shard runs in a worker thread')
const port = parentPort
// One that waits for a shard is told later.
const given: unknown = workerData ?? (await new Promise((resolve) => port.once('message', resolve)))
if (given === endShard) process.exit()
assert(isShardWorkerData(given), 'a shard is handed its settings')
const { settings, heartbeat: memory, shared } = given
const heartbeat = new Heartbeat(memory)
/** The first is that of the main thread. */
const ports = [port]
const watched = new Watched()
const frames = new FrontFrames(new ShardMemory(shared), watched)
frames.add(0, sender(port))
let open = true
let stepping = false
const masterSeed = Buffer.from(settings.masterSeed)
const nodeLog = await nodeLogOf(given)
const store = new ShardStore(settings.path, masterSeed, { openLog: nodeLog?.openLog })
// Long reads of what the last owner has located go to this one, and see what LMDB has.
if (nodeLog !== undefined) store.flush()
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
    watched,
    beat: () => heartbeat.beat(),
  },
  (frame) => frames.tell(frame),
)

let closing: 'not' | 'closes' | 'handsOver' = 'not'

port.on('message', (message: unknown) => {
  take(message)
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

/** Takes commands of one more front. */
function join(front: number, its: MessagePort): void {
  ports.push(its)
  frames.add(front, sender(its))
  its.on('message', (message: unknown) => {
    take(message)
    work()
  })
  // The thread ends its ports itself when it closes; another node's front may go before.
  its.on('close', () => leave(front, its))
}

/** A front has gone. */
function leave(front: number, its: MessagePort): void {
  const place = ports.indexOf(its)
  if (!open || place < 0) return
  ports.splice(place, 1)
  frames.remove(front)
  watched.leave(front)
}

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
    take(undefined)
    shard.flush()
    turns = shard.underWay > 0 ? turns + 1 : 0
  }
  if (shard.underWay > 0) store.syncSoon(goOn)
  else if (closing !== 'not') void close()
  else stepSoon()
}

/** Something is on disk now, or nobody knows what is. */
function goOn(error: Error | null): void {
  if (error !== null) throw error
  // The sync of something that the thread has waited for itself meanwhile.
  if (!open) return
  heartbeat.beat()
  shard.releaseDurable()
  take(undefined)
  work()
}

/** Takes a message, if there is one, and all that are queued at any port. */
function take(message: unknown): void {
  const commands: CommandFrame = []
  if (message !== undefined) takeOne(message, commands)
  // A port that joins meanwhile has its turn, too.
  for (const from of ports) {
    for (let next = received(from); next !== undefined; next = received(from)) takeOne(next, commands)
  }
  if (commands.length > 0) shard.take(commands)
}

function received(from: MessagePort): unknown {
  return receiveMessageOnPort(from)?.message
}

function takeOne(message: unknown, commands: CommandFrame): void {
  if (message instanceof ArrayBuffer) {
    for (const command of decodeCommands(message)) commands.push(command)
  } else if (message === closeShard || message === handOverShard) {
    closing = message === handOverShard ? 'handsOver' : 'closes'
    shard.goOn()
  } else if (message === endShard) process.exit()
  else {
    assert(isFrontJoins(message), 'a shard is sent frames, fronts, and that it is to close')
    join(message.front, message.port)
  }
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

const ready: ShardReady = { kind: 'ready', term: nodeLog?.term ?? 0 }
port.postMessage(ready)
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
  if (lines === undefined) return undefined
  return prepareNodeLog({
    path: settings.path,
    lines,
    secret: { cluster: lines.cluster, masterSeed, random: pooledRandom() },
    clock: systemClock,
    beat: () => heartbeat.beat(),
    failed: ({ message }) => shard.note({ kind: 'failed', failures: [message] }),
  })
}

/** Closing ends the thread: nothing else keeps it alive. */
async function close(): Promise<void> {
  open = false
  for (const one of ports) one.close()
  nodeLog?.checkpoints.close()
  // The next owner need not wait until this store has all that its log has.
  if (closing === 'handsOver') store.handOver()
  await store.close()
}
