import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { assert } from '../src/base/assert.js'
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
  const found = await round()
  // A turn of the event loop, in which it hears that it is to stop.
  await new Promise((resolve) => setTimeout(resolve, found ? 0 : limits.clusterFollowMs))
}
for (const store of followed.values()) await store.close()
for (const { line } of stores) line.close()
parent.close()

/** Reads on in each log once. @returns whether there was anything */
async function round(): Promise<boolean> {
  let [found, failed] = [false, false]
  for (const store of stores) {
    if (stop.signal.aborted) return false
    try {
      found = (await readOn(store)) || found
    } catch (error) {
      failed = true
      tell({ kind: 'failed', shard: store.line.shard, reason: String(error) })
      // What it has may be of another history: it is looked at from the beginning.
      await followed.get(store)?.close()
      followed.delete(store)
    }
  }
  if (found || failed) return found
  try {
    tellOwner()
  } catch (error) {
    tell({ kind: 'failed', shard: 0, reason: String(error) })
  }
  return false
}

async function readOn(store: NodeStore): Promise<boolean> {
  const before = followed.get(store)
  if (before !== undefined) return before.readOn()
  const opened = await FollowedStore.open(store)
  followed.set(store, opened)
  const { found } = opened
  if (found.kind === 'caughtUp') return true
  const place = found.kind === 'setAside' ? found.place : undefined
  tell({ kind: 'built', shard: store.line.shard, place })
  return true
}

function tellOwner(): void {
  const [first] = stores
  const at = first && followed.get(first)?.at
  if (first === undefined || at === undefined) return
  const { node } = at.writer
  const ownerIsAlive = node !== '' && first.line.isAlive(at.writer)
  tell({ kind: 'atEnd', owner: node, ownerIsAlive })
}

function tell(told: FollowerTold): void {
  parent.postMessage(told)
}
