/** The ceiling of node:http: a bare node:http server that does the same as echo-server.mjs. */
import { createServer } from 'node:http'

const ANSWER_BYTES = 250
const frame = JSON.stringify({ answer: '' }).length
const answer = JSON.stringify({ answer: 'x'.repeat(ANSWER_BYTES - frame) })

const server = createServer((request, response) => {
  /** @type {Buffer[]} */
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () => {
    if (request.method === 'POST') JSON.parse(Buffer.concat(parts).toString())
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length })
    response.end(answer)
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The echo cannot listen')
  process.stdout.write(`listening on http://127.0.0.1:${address.port}\n`)
})
process.on('SIGTERM', () => process.exit(0))
