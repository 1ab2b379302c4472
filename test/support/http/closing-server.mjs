import { createServer } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

/*
 * The thread of test/support/http/closing-server.ts: answers every request with `{}`, and closes all its
 * connections on a message.
 */
const [closings, connections] = [0, 1]
const counts = new Int32Array(workerData)
const sockets = new Set()

const server = createServer((incoming, response) => {
  incoming.resume()
  incoming.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
})
server.on('connection', (socket) => {
  Atomics.add(counts, connections, 1)
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
})
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))

parentPort.on('message', async () => {
  const closed = [...sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve)))
  for (const socket of sockets) socket.destroy()
  await Promise.all(closed)
  Atomics.add(counts, closings, 1)
  Atomics.notify(counts, closings)
})
