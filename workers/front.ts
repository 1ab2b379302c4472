import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { assert } from '../src/base/assert.js'
import { isFrontGiven } from '../src/server/calls/front-messages.js'
import { runFront } from '../src/server/fronts/front.js'

/* The thread of one front beside the main thread (docs/adr/0045-fronts.md). */

assert(!isMainThread && parentPort !== null, 'a front runs in a worker thread')
const given: unknown = workerData
assert(isFrontGiven(given), 'a front is handed its settings')
runFront(given, parentPort)
