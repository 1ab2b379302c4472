import { statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { checkedCall } from '../support/http/answers.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

const SHARDS = 4
const AGENTS = 1_000
const ROUNDS_MAX = 24
const LOOKING_MS = 1_000
const env = { SERVICE_SHARDS: String(SHARDS) }

let server: TestServer

beforeEach(async () => {
  server = await startServer({ env })
})
afterEach(() => server.stop())

const agents = Array.from({ length: AGENTS }, (_none, index) => ({ name: `member-${index}`, zone: 'free' }))

/** One request with its own idempotency key. The server chooses the id. */
const requestOf = (round: number) => ({
  body: { name: `Round ${round}`, agents },
  headers: { 'idempotency-key': `round-${round}` },
})

/** When each shard last wrote its store. */
function lastWrites(): number[] {
  const path = (shard: number) => join(server.dataDir, `shard-${shard}`, 'data.mdb')
  return Array.from({ length: SHARDS }, (_none, shard) => statSync(path(shard)).mtimeMs)
}

/** Sends the request and kills the server as soon as its shards have written `writes` times. */
async function killAfter(round: number, writes: number): Promise<void> {
  const { body, headers } = requestOf(round)
  const text = JSON.stringify(body)
  const connection = await RawConnection.open(server)
  let last = lastWrites()
  connection.write(
    `POST /v1/organisms HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${server.rootKey}\r\n` +
      `Content-Type: application/json\r\nIdempotency-Key: ${headers['idempotency-key']}\r\n` +
      `Content-Length: ${text.length}\r\n\r\n${text}`,
  )
  // Wait until all bytes are sent, because the following loop blocks the event loop.
  while (connection.socket.writableLength > 0) await new Promise((resolve) => setImmediate(resolve))
  // Two writes within one tick of the file system's clock look like one, so there may be fewer to see.
  const until = performance.now() + LOOKING_MS
  for (let seen = 0; seen < writes && performance.now() < until;) {
    const now = lastWrites()
    seen += now.filter((at, shard) => at !== last[shard]).length
    last = now
  }
  await server.halt('SIGKILL')
  connection.destroy()
  server = await startServer({ dataDir: server.dataDir, env })
}

/** The number of agents by organism id. */
async function memberCounts(): Promise<Map<string, number>> {
  const { body } = await checkedCall(server, 'GET /v1/organisms')
  const counts = new Map<string, number>()
  for (const { organism_id: id } of body.organisms) {
    counts.set(id, (await call(server, `GET /v1/agents?prefix=${id}::&limit=1`)).body.total)
  }
  return counts
}

it('a repeated request completes an organism whose creation was interrupted by a kill', async () => {
  let cut = false
  let round = 0
  while (!cut && round < ROUNDS_MAX) {
    // The writes are: the claim of the key, the organism's row, then the agents of each shard.
    await killAfter(round, 3 + (round % 3))
    const before = await memberCounts()
    cut = [...before.values()].some((count) => count < AGENTS)
    const { status, body, text } = await checkedCall(server, 'POST /v1/organisms', requestOf(round))
    expect(status, text).toBe(201)
    expect(body.agents).toHaveLength(AGENTS)
    // The organism from before the kill is completed; no second one is created.
    const after = await memberCounts()
    expect(after.size).toBe(round + 1)
    for (const id of before.keys()) expect(after.has(id)).toBe(true)
    expect(after.get(body.organism_id)).toBe(AGENTS)
    const again = await checkedCall(server, 'POST /v1/organisms', requestOf(round))
    expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([text, 'true'])
    const agent = `${body.organism_id}::member-${AGENTS - 1}`
    const written = await checkedCall(server, `POST /v1/agents/${agent}/records`, {
      body: { data: { round } },
    })
    expect(written.status).toBe(201)
    round++
  }
  expect(cut, `no kill of ${round} came in the middle`).toBe(true)
}, 120_000)
