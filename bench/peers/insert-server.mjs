/**
 * The server that a team would write to store records in PostgreSQL: node:http that INSERTs the body of each
 * request over a pool of connections and answers after the commit. Its arguments are the URL of the database
 * and the table.
 */
import { createServer } from 'node:http'
import { Pool } from 'pg'

const CONNECTIONS = 64
const [, , connectionString, table] = process.argv
const statement = {
  name: 'insert',
  text: `INSERT INTO ${table} (agent, body) VALUES ($1, $2) RETURNING id, taken_at`,
}

const pool = new Pool({ connectionString, max: CONNECTIONS })
const server = createServer((request, response) => {
  /** @type {Buffer[]} */
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () => void insert(request, response, Buffer.concat(parts).toString()))
})

async function insert(request, response, text) {
  const [, agent = '0'] = /(\d+)\/records/.exec(request.url ?? '') ?? []
  try {
    const { rows } = await pool.query({ ...statement, values: [Number(agent), JSON.parse(text).data] })
    const answer = JSON.stringify(rows[0])
    response.writeHead(201, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(answer),
    })
    response.end(answer)
  } catch (error) {
    response.writeHead(500, { 'content-type': 'text/plain' })
    response.end(String(error))
  }
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server cannot listen')
  process.stdout.write(`listening on http://127.0.0.1:${address.port}\n`)
})
process.on('SIGTERM', () => process.exit(0))
