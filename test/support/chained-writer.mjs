/*
 * A process that writes one number after the other into all stores that its arguments name, each into the first of them,
 * then into the next: at no moment is a store ahead of one before it, or behind it by more than one. The stores are
 * written so fast that several change while somebody looks at all of them, with rests in between.
 */
import { open } from 'lmdb'

const binary = { encoding: 'binary', keyEncoding: 'binary' }
const stores = process.argv.slice(2).map((path) => {
  const root = open({ path, ...binary, overlappingSync: false, noSync: true, maxDbs: 48 })
  return { root, names: root.openDB({ name: 'names', ...binary }) }
})
process.on('disconnect', () => process.exit(0))

const REST_MS = 1
const rest = new Int32Array(new SharedArrayBuffer(4))

function writeOne(number) {
  const value = Buffer.alloc(4)
  value.writeUInt32BE(number)
  for (const { root, names } of stores) root.transactionSync(() => void names.put(Buffer.alloc(4), value))
  if (number === 1) process.send('writing')
  Atomics.wait(rest, 0, 0, REST_MS)
  setImmediate(() => writeOne(number + 1))
}

writeOne(1)
