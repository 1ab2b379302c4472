import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { assert } from '../src/base/assert.js'
import { steadyClock } from '../src/base/clock.js'
import { limits } from '../src/base/limits.js'
import { pooledRandom } from '../src/base/random.js'
import { type FollowerTold, isFollowerSettings, stopFollowing } from '../src/protocol/follower-messages.js'
import { FollowedStore } from './store/log/followed-store.js'
import { LogLine } from './store/log/log-line.js'
import type { NodeStore } from './store/log/node-store.js'

/*
 * The thread of a node that stands by: it keeps the stores of all shards up to their logs, which another node writes, and
 * tells whether the node that owns the first shard is alive.
 */

assert(!isMainThread && parentPort !== null, 'logs are followed in a thread of their own')
const parent = parentPort
const given: unknown = workerData
assert(isFollowerSettings(given), 'who follows is handed its settings')
const secret = { masterSeed: Buffer.from(given.masterSeed), random: pooledRandom() }
const stores: readonly NodeStore[] = given.stores.map(({ path, line }) => ({
  path,
  line: new LogLine(line),
  secret,
}))
const followed = new Map<NodeStore, FollowedStore>()
const stop = new AbortController()

parent.on('message', (message: unknown) => {
  assert(message === stopFollowing, 'who follows is told to stop')
  stop.abort()
})

while (!stop.signal.aborted) {
  await round()
  // It hears meanwhile that it is to stop, and does so at once.
  await pause(limits.clusterFollowMs, undefined, { signal: stop.signal }).catch(() => undefined)
}
for (const store of followed.values()) await store.close()
for (const { line } of stores) line.close()
parent.close()

/** Reads on in each log once, to the end that it has then, and tells who owns the shards. */
async function round(): Promise<void> {
  const startedAtMs = steadyClock()
  let failed = false
  for (const store of stores) {
    if (stop.signal.aborted) return
    try {
      await readOn(store)
    } catch (error) {
      failed = true
      tell({ kind: 'failed', shard: store.line.shard, reason: String(error) })
      // What it has may be of another history: it is looked at from the beginning.
      await followed.get(store)?.close()
      followed.delete(store)
    }
  }
  if (failed) return
  try {
    tellOwner(startedAtMs)
  } catch (error) {
    tell({ kind: 'failed', shard: 0, reason: String(error) })
  }
}

async function readOn(store: NodeStore): Promise<void> {
  const before = followed.get(store)
  if (before !== undefined) {
    before.readOn()
    return
  }
  const opened = await FollowedStore.open(store)
  followed.set(store, opened)
  const { found } = opened
  if (found.kind === 'caughtUp') return
  const place = found.kind === 'setAside' ? found.place : undefined
  tell({ kind: 'built', shard: store.line.shard, place })
}

function tellOwner(readAtMs: number): void {
  const [first] = stores
  const at = first && followed.get(first)?.at
  if (first === undefined || at === undefined) return
  const { node } = at.writer
  const ownerIsAlive = node !== '' && !at.isClosed && first.line.isAlive(at.writer)
  tell({ kind: 'atEnd', owner: node, ownerIsAlive, ageMs: steadyClock() - readAtMs })
}

function tell(told: FollowerTold): void {
  parent.postMessage(told)
}
