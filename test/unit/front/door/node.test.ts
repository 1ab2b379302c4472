import { Worker } from 'node:worker_threads'
import { expect, it } from 'vitest'
import { nodeDoor } from '../../../../src/front/door/node.js'
import { eventually } from '../../../support/eventually.js'

const CONNECTIONS = 1_000

/** Opens connections, and says through `opened` how many the system has taken. */
const opener = `
  const { connect } = require('node:net')
  const { parentPort, workerData: { port, count, opened } } = require('node:worker_threads')
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1', () => {
    Atomics.add(opened, 0, 1)
    Atomics.notify(opened, 0)
  }))
  parentPort.on('message', () => { for (const socket of sockets) socket.destroy(); parentPort.close() })
`

it('accepts a thousand connections that came while it was busy: Node would have the system keep 511 of them', async () => {
  const door = nodeDoor({ tls: undefined, problem: () => '' })
  let open = 0
  door.onConnection((_connection, change) => (open += change))
  const port = await door.listen('127.0.0.1', 0, false)
  const opened = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(opener, { eval: true, workerData: { port, count: CONNECTIONS, opened } })
  await new Promise((resolve) => worker.once('online', resolve))
  // This blocks the thread. It gives up where the system has no more room, instead of blocking it for good.
  let seen = 0
  while (seen < CONNECTIONS && Atomics.wait(opened, 0, seen, 10_000) !== 'timed-out')
    seen = Atomics.load(opened, 0)
  expect({ seen, open }).toEqual({ seen: CONNECTIONS, open: 0 })
  await eventually(() => open === CONNECTIONS)
  worker.postMessage('close')
  await eventually(() => open === 0)
  door.close()
})
