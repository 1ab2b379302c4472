import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { assert, unreachable } from '../src/base/assert.js'
import { steadyClock } from '../src/base/clock.js'
import { hasLostLog } from '../src/protocol/fenced.js'
import { limits } from '../src/base/limits/limits.js'
import { pooledRandom } from '../src/base/random.js'
import {
  type FollowerOrder,
  type FollowerReport,
  isFollowerOrder,
  isFollowerSettings,
} from '../src/protocol/follower-messages.js'
import { LeaseMemory } from '../src/protocol/lease-memory.js'
import { FollowedStore } from './store/replica/followed-store.js'
import { LogClient } from './store/replica/log-client.js'
import type { NodeStore } from './store/replica/node-store.js'

/*
 * The thread of a node that follows the logs of shards that other nodes own. It keeps their stores up to
 * date, and reports whether the owners are alive.
 */

assert(!isMainThread && parentPort !== null, 'a follower runs in a worker thread')
const parent = parentPort
const data: unknown = workerData
assert(isFollowerSettings(data), 'a follower receives its settings')
const { cluster, leaseMs } = data
const lease = new LeaseMemory(data.lease)
const secret = { cluster, masterSeed: Buffer.from(data.masterSeed), random: pooledRandom() }

/** A shard that is followed. Its store is opened in the first round. */
interface FollowedShard {
  store: NodeStore
  opened: FollowedStore | undefined
}

const shards = new Map<number, FollowedShard>()
/**
 * Orders that were not executed yet. They are executed between two stores, so that no store is closed while
 * it is read.
 */
const orders: FollowerOrder[] = []
let wake = new AbortController()
const stop = new AbortController()

parent.on('message', (message: unknown) => {
  assert(isFollowerOrder(message), 'a follower receives known orders')
  orders.push(message)
  wake.abort()
})

while (!stop.signal.aborted) {
  await round()
  // An order ends the pause.
  await pause(limits.clusterFollowMs, undefined, { signal: wake.signal }).catch(() => undefined)
  wake = new AbortController()
}
for (const shard of shards.keys()) await close(shard)
parent.close()

/** Reads each log once to its current end, and reports the owner of the shard. */
async function round(): Promise<void> {
  const alive = new Map<string, boolean>()
  await executeOrders()
  for (const followed of shards.values()) {
    const { shard } = followed.store.client
    if (stop.signal.aborted) return
    try {
      const readAtMs = steadyClock()
      // Read the time of the heartbeat first, so that the heartbeat was sent before the segments were read.
      const heartbeatMs = lease.untilMs - leaseMs
      await catchUp(followed)
      followed.opened?.confirm(heartbeatMs)
      reportOwner(followed, { readAtMs, alive })
    } catch (error) {
      if (error instanceof Error && hasLostLog(error)) report({ kind: 'lost', shard, reason: error.message })
      else report({ kind: 'failed', shard, reason: String(error) })
      // The store may be of another history, so it is examined again in the next round.
      await followed.opened?.close()
      followed.opened = undefined
    }
    // Let messages arrive.
    await new Promise((resolve) => setImmediate(resolve))
    await executeOrders()
  }
}

async function executeOrders(): Promise<void> {
  for (let order = orders.shift(); order !== undefined; order = orders.shift()) {
    switch (order.kind) {
      case 'follow': {
        const { path, channel } = order
        shards.set(channel.shard, {
          store: { path, client: new LogClient(channel), secret },
          opened: undefined,
        })
        break
      }
      case 'release':
        await close(order.shard)
        report({ kind: 'released', shard: order.shard })
        break
      case 'remove':
        // The store is rebuilt from the log when it is needed.
        rmSync(order.path, { recursive: true, force: true })
        break
      case 'stop':
        stop.abort()
        break
      default:
        unreachable(order)
    }
  }
}

async function close(shard: number): Promise<void> {
  const followed = shards.get(shard)
  shards.delete(shard)
  await followed?.opened?.close()
  followed?.store.client.close()
}

async function catchUp(followed: FollowedShard): Promise<void> {
  if (followed.opened !== undefined) {
    if (followed.opened.catchUp()) return
    await followed.opened.close()
    followed.opened = undefined
  }
  const { store } = followed
  followed.opened = await FollowedStore.open(store)
  const { result: found } = followed.opened
  if (found.kind === 'caughtUp') return
  const place = found.kind === 'setAside' && { place: found.place }
  report({ kind: 'built', shard: store.client.shard, ...place })
}

/** @param alive cache of this round: which writers are alive */
function reportOwner(
  { store, opened }: FollowedShard,
  { readAtMs, alive }: { readAtMs: number; alive: Map<string, boolean> },
): void {
  if (opened === undefined) return
  const { segment, writer, isClosed } = opened.position
  const name = `${writer.node} ${writer.incarnation}`
  const isAlive = () => {
    const found = alive.get(name) ?? store.client.isAlive(writer)
    alive.set(name, found)
    return found
  }
  const isOwned = writer.node !== '' && !isClosed && isAlive()
  const { shard } = store.client
  const { node: owner, incarnation } = writer
  const ageMs = steadyClock() - readAtMs
  report({ kind: 'atEnd', shard, segment, owner, incarnation, isClosed, isOwned, ageMs })
}

function report(message: FollowerReport): void {
  parent.postMessage(message)
}
