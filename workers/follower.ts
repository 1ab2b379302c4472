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
import { LogLine } from './store/replica/log-line.js'
import type { NodeStore } from './store/replica/node-store.js'

/*
 * The thread of a node that keeps the stores of those shards up to their logs which other nodes own, and tells whether they are
 * alive.
 */

assert(!isMainThread && parentPort !== null, 'logs are followed in a thread of their own')
const parent = parentPort
const given: unknown = workerData
assert(isFollowerSettings(given), 'who follows is handed its settings')
const { cluster, leaseMs } = given
const lease = new LeaseMemory(given.lease)
const secret = { cluster, masterSeed: Buffer.from(given.masterSeed), random: pooledRandom() }

/** A store that is followed, once it is open. */
interface Followed {
  store: NodeStore
  opened: FollowedStore | undefined
}

const all = new Map<number, Followed>()
/** What was ordered and not carried out yet: between two stores, as nobody may close one that is being read. */
const orders: FollowerOrder[] = []
let wake = new AbortController()
const stop = new AbortController()

parent.on('message', (message: unknown) => {
  assert(isFollowerOrder(message), 'who follows is told what this version knows')
  orders.push(message)
  wake.abort()
})

while (!stop.signal.aborted) {
  await round()
  // It hears meanwhile what it is to do, and does so at once.
  await pause(limits.clusterFollowMs, undefined, { signal: wake.signal }).catch(() => undefined)
  wake = new AbortController()
}
for (const shard of all.keys()) await close(shard)
parent.close()

/** Reads on in each log once, to the end that it has then, and tells who owns the shard. */
async function round(): Promise<void> {
  const alive = new Map<string, boolean>()
  await carryOut()
  for (const followed of all.values()) {
    const { shard } = followed.store.line
    if (stop.signal.aborted) return
    try {
      const readAtMs = steadyClock()
      // Looked at first: what is read now is seen later than that beat was sent.
      const beatMs = lease.untilMs - leaseMs
      await readOn(followed)
      followed.opened?.confirm(beatMs)
      tellOwner(followed, { readAtMs, alive })
    } catch (error) {
      if (error instanceof Error && hasLostLog(error)) tell({ kind: 'lost', shard, reason: error.message })
      else tell({ kind: 'failed', shard, reason: String(error) })
      // What it has may be of another history: it is looked at from the beginning.
      await followed.opened?.close()
      followed.opened = undefined
    }
    // Messages come between two turns of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    await carryOut()
  }
}

async function carryOut(): Promise<void> {
  for (let order = orders.shift(); order !== undefined; order = orders.shift()) {
    switch (order.kind) {
      case 'follow': {
        const { path, line } = order
        all.set(line.shard, { store: { path, line: new LogLine(line), secret }, opened: undefined })
        break
      }
      case 'release':
        await close(order.shard)
        tell({ kind: 'released', shard: order.shard })
        break
      case 'remove':
        // Made again from the log when it is needed.
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
  const followed = all.get(shard)
  all.delete(shard)
  await followed?.opened?.close()
  followed?.store.line.close()
}

async function readOn(followed: Followed): Promise<void> {
  if (followed.opened !== undefined) {
    followed.opened.readOn()
    return
  }
  const { store } = followed
  followed.opened = await FollowedStore.open(store)
  const { found } = followed.opened
  if (found.kind === 'caughtUp') return
  const place = found.kind === 'setAside' ? found.place : undefined
  tell({ kind: 'built', shard: store.line.shard, place })
}

/** @param alive which writers are, as this round has found */
function tellOwner(
  { store, opened }: Followed,
  { readAtMs, alive }: { readAtMs: number; alive: Map<string, boolean> },
): void {
  if (opened === undefined) return
  const { segment, writer, isClosed } = opened.at
  const name = `${writer.node} ${writer.incarnation}`
  const isAlive = () => {
    const found = alive.get(name) ?? store.line.isAlive(writer)
    alive.set(name, found)
    return found
  }
  const isOwned = writer.node !== '' && !isClosed && isAlive()
  const { shard } = store.line
  const { node: owner, incarnation } = writer
  const ageMs = steadyClock() - readAtMs
  tell({ kind: 'atEnd', shard, segment, owner, incarnation, isClosed, isOwned, ageMs })
}

function tell(told: FollowerReport): void {
  parent.postMessage(told)
}
