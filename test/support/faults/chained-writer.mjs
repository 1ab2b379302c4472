/*
 * A thread that writes one number after the other into all stores that it is given, each into the first of them, then
 * into the next: at no moment is a store ahead of one before it, or behind it by more than one. The stores are written
 * so fast that several change while somebody looks at all of them, with rests in between.
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
