/**
 * The simplest server that stores records durably: node:http and SQLite in one process. Bodies that arrive
 * within one turn of the event loop are written in one transaction and answered after its commit.
 */
import { createServer } from 'node:http'
import { openRecords } from './sqlite-records.mjs'

const { insertAll, count, close } = openRecords(process.argv[2])
let pending = []

const server = createServer((request, response) => {
  if (request.url === '/count') return answer(response, 200, { rows: count() })
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const { data } = JSON.parse(Buffer.concat(chunks).toString())
    if (pending.length === 0) setImmediate(commit)
    const agent = request.url.split('/')[3]
    pending.push({ row: { agent, body: JSON.stringify(data) }, response })
  })
})

function commit() {
  const group = pending
  pending = []
  insertAll(group.map(({ row }) => row))
  for (const { row, response } of group) answer(response, 201, { agent: row.agent, written: true })
}

function answer(response, status, body) {
  const text = JSON.stringify(body)
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text)
}

server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`listening on http://127.0.0.1:${server.address().port}\n`)
})
process.on('SIGTERM', () => {
  close()
  process.exit(0)
})
