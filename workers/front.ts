import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { assert } from '../src/base/assert.js'
import { isFrontWorkerData } from '../src/server/calls/front-messages.js'
import { runFront } from '../src/server/fronts/front.js'

/* The thread of an additional front, besides the one in the main thread (docs/adr/0045-fronts.md). */

assert(!isMainThread && parentPort !== null, 'a front runs in a worker thread')
const data: unknown = workerData
assert(isFrontWorkerData(data), 'a front receives its settings')
runFront(data, parentPort)
