/**
 * The ceiling of streams: a bare uWebSockets.js server that writes each body posted to it to every open
 * stream, framed as an event, one corked write a stream. Data that a socket cannot accept yet stays in
 * uWebSockets' buffer.
 */
import { App, us_socket_local_port } from 'uWebSockets.js'

const streams = new Set()
const app = App()
app.get('/stream', (response) => {
  response.onAborted(() => streams.delete(response))
  response.writeHeader('content-type', 'text/event-stream').write(': open\n\n')
  streams.add(response)
})
app.post('/event', (response) => {
  let body = Buffer.alloc(0)
  response.onAborted(() => {})
  response.onData((chunk, isLast) => {
    body = Buffer.concat([body, Buffer.from(chunk)])
    if (!isLast) return
    response.end('{}')
    // Deferred, because the response uses the only cork buffer until this handler returns.
    setImmediate(() => {
      for (const stream of streams) stream.cork(() => stream.write(body))
    })
  })
})
app.listen('127.0.0.1', 0, (socket) => {
  if (!socket) throw new Error('The stream ceiling cannot listen')
  process.stdout.write(`listening on http://127.0.0.1:${us_socket_local_port(socket)}\n`)
})
process.on('SIGTERM', () => {
  app.close()
  process.exit(0)
})
