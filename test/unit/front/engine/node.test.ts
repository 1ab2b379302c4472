import { Worker } from 'node:worker_threads'
import { expect, it } from 'vitest'
import { nodeListener } from '../../../../src/front/engine/node.js'
import { eventually } from '../../../support/eventually.js'

const CONNECTIONS = 1_000

/** Opens connections, and counts in `opened` how many the system has accepted. */
const opener = `
  const { connect } = require('node:net')
  const { parentPort, workerData: { port, count, opened } } = require('node:worker_threads')
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1', () => {
    Atomics.add(opened, 0, 1)
    Atomics.notify(opened, 0)
  }))
  parentPort.on('message', () => { for (const socket of sockets) socket.destroy(); parentPort.close() })
`

it('accepts a thousand connections that arrived while it was busy; with the default backlog it would be 511', async () => {
  const listener = nodeListener({ tls: undefined, problem: () => '' })
  let open = 0
  listener.onConnection((_connection, change) => (open += change))
  const port = await listener.listen('127.0.0.1', 0, false)
  const opened = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(opener, { eval: true, workerData: { port, count: CONNECTIONS, opened } })
  await new Promise((resolve) => worker.once('online', resolve))
  // This blocks the thread. It times out if the backlog of the system is full.
  let seen = 0
  while (seen < CONNECTIONS && Atomics.wait(opened, 0, seen, 10_000) !== 'timed-out')
    seen = Atomics.load(opened, 0)
  expect({ seen, open }).toEqual({ seen: CONNECTIONS, open: 0 })
  await eventually(() => open === CONNECTIONS)
  worker.postMessage('close')
  await eventually(() => open === 0)
  listener.close()
})
