/**
 * The ceiling of every request: a bare uWebSockets.js server that reads the body, parses it and answers a
 * fixed JSON of 250 bytes, and answers a GET with the same. It checks no credential, stores nothing and signs
 * nothing.
 */
import { App, us_socket_local_port } from 'uWebSockets.js'

const ANSWER_BYTES = 250
const frame = JSON.stringify({ answer: '' }).length
const answer = JSON.stringify({ answer: 'x'.repeat(ANSWER_BYTES - frame) })

const app = App()
app.post('/*', (response) => {
  /** @type {Buffer | undefined} */
  let before
  response.onAborted(() => {})
  response.onData((chunk, isLast) => {
    if (!isLast || before !== undefined) {
      // uWebSockets.js reuses its bytes when this returns.
      const copy = Buffer.from(Buffer.from(chunk))
      before = before === undefined ? copy : Buffer.concat([before, copy])
      if (!isLast) return
    }
    JSON.parse((before ?? Buffer.from(chunk)).toString())
    response.writeHeader('content-type', 'application/json').end(answer)
  })
})
app.get('/*', (response) => {
  response.writeHeader('content-type', 'application/json').end(answer)
})
app.listen('127.0.0.1', 0, (socket) => {
  if (!socket) throw new Error('The echo cannot listen')
  process.stdout.write(`listening on http://127.0.0.1:${us_socket_local_port(socket)}\n`)
})
process.on('SIGTERM', () => {
  app.close()
  process.exit(0)
})
