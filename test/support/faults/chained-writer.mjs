/*
 * A thread that writes consecutive numbers into all given stores, in the order of the stores: a store is
 * never ahead of the previous one, or behind it by more than one. With pauses, but so fast that several
 * stores change while a reader opens them.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { open } from 'lmdb'

const binary = { encoding: 'binary', keyEncoding: 'binary' }
const stores = workerData.map((path) => {
  const root = open({ path, ...binary, overlappingSync: false, noSync: true, maxDbs: 48 })
  return { root, names: root.openDB({ name: 'names', ...binary }) }
})

const REST_MS = 1
const rest = new Int32Array(new SharedArrayBuffer(4))
let writing = true
parentPort.on('message', () => (writing = false))

async function writeOne(number) {
  const value = Buffer.alloc(4)
  value.writeUInt32BE(number)
  for (const { root, names } of stores) root.transactionSync(() => void names.put(Buffer.alloc(4), value))
  if (number === 1) parentPort.postMessage('writing')
  Atomics.wait(rest, 0, 0, REST_MS)
  if (writing) setImmediate(() => void writeOne(number + 1))
  else {
    for (const { root } of stores) await root.close()
    parentPort.close()
  }
}

await writeOne(1)
