/**
 * Measures a running server: `npm run bench:running -- --url URL --api-key KEY [--seconds N]`. Writes to the
 * agents `bench-00` to `bench-31`; the records stay there. Exits with 1 when an answer was wrong, or an
 * acknowledged write is missing from the count afterwards.
 */
import { mkdtempSync } from 'node:fs'
import { availableParallelism, cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { prepareLoad, removeAtExit, runCleanly } from './load.mjs'
import { chooseGenerator } from './options.mjs'
import { recordBody, writeRequests } from './records.mjs'
import { call, countRecords } from './server.mjs'

const agents = Array.from({ length: 32 }, (_, number) => `bench-${String(number).padStart(2, '0')}`)
/** Status of agent_exists: the server was measured before. */
const AGENT_EXISTS = 409
const LINES = 250
const READ_RECORDS = 100
/** Different requests of a load. */
const REQUESTS = 96

const figures = [
  {
    name: 'single durable writes, 64 connections',
    unit: 'records/s',
    connections: 64,
    records: 1,
    requests: (_url, headers) => writeRequests(agents, { count: REQUESTS, headers }),
  },
  {
    name: `NDJSON ingest, 8 uploads of ${LINES} lines`,
    unit: 'records/s',
    connections: 8,
    records: LINES,
    requests: (_url, headers) => agents.map((agent) => upload(agent, headers)),
  },
  {
    name: 'get by hash, 64 connections',
    unit: 'reads/s',
    connections: 64,
    records: 0,
    requests: readRequests,
  },
]

try {
  await measure(readArguments())
} catch (error) {
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  process.stderr.write(`Not measured: ${error.message}${cause}\n`)
  process.exitCode = 1
}

function readArguments() {
  const { values } = parseArgs({
    options: {
      url: { type: 'string' },
      'api-key': { type: 'string' },
      seconds: { type: 'string', default: '3' },
      generator: { type: 'string' },
    },
  })
  const { url, 'api-key': key, seconds } = values
  if (url === undefined || key === undefined || !/^[1-9]\d?$/.test(seconds))
    throw new Error('Expected --url URL --api-key KEY, and a number from 1 to 99 after --seconds')
  return {
    url: url.replace(/\/$/, ''),
    headers: { authorization: `Bearer ${key}` },
    seconds: Number(seconds),
    generator: chooseGenerator(values.generator),
  }
}

async function measure({ url, headers, seconds, generator }) {
  await prepare(url, headers)
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-bench-'))
  removeAtExit(directory)
  const cpu = cpus()[0]?.model ?? 'unknown CPU'
  process.stdout.write(`${url}, by ${generator} from here: ${availableParallelism()} cores, ${cpu}\n`)
  for (const { name, unit, connections, records, requests } of figures) {
    const load = prepareLoad(await requests(url, headers), { generator, directory })
    const before = await countRecords(url, agents, headers)
    const found = await runCleanly(load, url, { connections, seconds })
    const recorded = (await countRecords(url, agents, headers)) - before
    const answered = found.requests * records
    if (recorded < answered) throw new Error(`${answered} records were answered and ${recorded} recorded`)
    const rate = Math.round(found.perSecond * Math.max(1, records)).toLocaleString('en')
    const times = `p50 ${found.p50Ms.toFixed(2)} ms, p99 ${found.p99Ms.toFixed(2)} ms`
    process.stdout.write(`${name.padEnd(44)} ${rate.padStart(9)} ${unit.padEnd(10)}  ${times}\n`)
  }
}

/** Creates the agents. Throws if the server rejects the key or limits the rate of this address. */
async function prepare(url, headers) {
  for (const name of agents) {
    const answer = await fetch(`${url}/v1/agents`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ name, zone: 'free' }),
    })
    const text = await answer.text()
    // A limited address gets the header on every answer, also on a refusal for another reason.
    const policy = answer.headers.get('ratelimit-policy')
    if (!answer.ok && answer.status !== AGENT_EXISTS && answer.status !== 429)
      throw new Error(`The server answers ${answer.status}: ${text}`)
    if (policy !== null) {
      throw new Error(
        `The server limits the rate of this address (RateLimit-Policy ${policy}): start it with ` +
          'SERVICE_RATE_LIMIT_EXEMPT, such as 127.0.0.1/32, or SERVICE_RATE_LIMIT_RPS=0',
      )
    }
  }
}

function upload(agent, headers) {
  const lines = Array.from({ length: LINES }, (_, number) => `${JSON.stringify(recordBody(number))}\n`)
  return {
    method: 'POST',
    path: `/v1/ingest/${agent}`,
    headers: { ...headers, 'content-type': 'application/x-ndjson' },
    body: lines.join(''),
  }
}

/** Stores records and prepares a read of each by its hash. */
async function readRequests(url, headers) {
  const path = `/v1/agents/${agents[0]}/records`
  const records = Array.from({ length: READ_RECORDS }, (_, number) => ({ data: recordBody(number) }))
  const written = await call(`${url}${path}/batch`, { headers, body: { records }, status: 201 })
  return written.results.map(({ content_hash: hash }) => ({
    method: 'GET',
    path: `${path}/${hash}`,
    headers,
  }))
}
