import { AgentStatus } from '../wire/agents.js'
import { BatchWritten } from '../wire/records.js'
import { reader } from '../wire/validate.js'
import { type LoadRequest, type LoadResult, runLoad } from './bench-load.js'
import type { BenchServer } from './bench-server.js'

/** One figure of the server. */
export interface Measured extends LoadResult {
  name: string
  unit: 'records/s' | 'reads/s'
}

/** How long to measure, and the listener for progress. */
interface Pace {
  seconds: number
  tell(text: string): void
}

const AGENTS = 32
/** Status of agent_exists. */
const AGENT_EXISTS = 409
const CONNECTIONS = 64
const INGEST_CONNECTIONS = 8
/** Lines of one upload. */
const INGEST_LINES = 250
/** Records that are read, each by its hash. */
const READ_RECORDS = 100
/** Different requests of a load: autocannon prepares all of them for each connection. */
const REQUESTS = 96

const agents = Array.from({ length: AGENTS }, (_, number) => `bench-${String(number).padStart(2, '0')}`)
const readStatus = reader(AgentStatus)
const readBatch = reader(BatchWritten)

/**
 * Measures single durable writes, ingest and reads by hash, one after the other.
 * @throws Error when an answer was wrong, or an answered write is missing in the count afterwards
 */
export async function measureServer(server: BenchServer, pace: Pace): Promise<Measured[]> {
  // They are there already on a running server that was measured before.
  const make = (name: string) =>
    server.call('/v1/agents', JSON.stringify({ name, zone: 'free' }), AGENT_EXISTS)
  await Promise.all(agents.map(make))
  return [
    await measureWrites(server, pace),
    await measureIngest(server, pace),
    await measureReads(server, pace),
  ]
}

async function measureWrites(server: BenchServer, { seconds, tell }: Pace): Promise<Measured> {
  const name = `single durable writes, ${CONNECTIONS} connections`
  tell(`Measuring ${name}`)
  const requests = Array.from({ length: REQUESTS }, (_, number) => {
    const body = JSON.stringify({ data: recordBody(number) })
    return post(server, `/v1/agents/${agentOf(number)}/records`, { body, type: 'application/json' })
  })
  const before = await countRecords(server)
  const result = await runLoad({ url: server.url, requests, connections: CONNECTIONS, seconds })
  const recorded = (await countRecords(server)) - before
  if (recorded < result.answered)
    throw new Error(`${result.answered} writes were answered and ${recorded} recorded`)
  return { ...result, name, unit: 'records/s' }
}

async function measureIngest(server: BenchServer, { seconds, tell }: Pace): Promise<Measured> {
  const name = `NDJSON ingest, ${INGEST_CONNECTIONS} uploads of ${INGEST_LINES} lines`
  tell(`Measuring ${name}`)
  const lines = Array.from({ length: INGEST_LINES }, (_, number) => `${JSON.stringify(recordBody(number))}\n`)
  const body = lines.join('')
  const requests = agents.map((agent) =>
    post(server, `/v1/ingest/${agent}`, { body, type: 'application/x-ndjson' }),
  )
  const before = await countRecords(server)
  const result = await runLoad({ url: server.url, requests, connections: INGEST_CONNECTIONS, seconds })
  const recorded = (await countRecords(server)) - before
  const sent = result.answered * INGEST_LINES
  if (recorded < sent) throw new Error(`${sent} lines were answered and ${recorded} recorded`)
  return { ...result, perSecond: result.perSecond * INGEST_LINES, name, unit: 'records/s' }
}

async function measureReads(server: BenchServer, { seconds, tell }: Pace): Promise<Measured> {
  const name = `get by hash, ${CONNECTIONS} connections`
  tell(`Measuring ${name}`)
  const records = Array.from({ length: READ_RECORDS }, (_, number) => ({ data: recordBody(number) }))
  const path = `/v1/agents/${agentOf(0)}/records`
  const written = readBatch.bytes(await server.call(`${path}/batch`, JSON.stringify({ records })))
  if ('code' in written) throw new Error(`The answer of a batch: ${written.detail}`)
  const requests: LoadRequest[] = written.value.results.flatMap((result) =>
    'content_hash' in result
      ? [{ method: 'GET', path: `${path}/${result.content_hash}`, headers: credential(server) }]
      : [],
  )
  if (requests.length !== READ_RECORDS) throw new Error(`A batch kept ${requests.length} records`)
  const result = await runLoad({ url: server.url, requests, connections: CONNECTIONS, seconds })
  return { ...result, name, unit: 'reads/s' }
}

/** Records of all agents together. */
async function countRecords(server: BenchServer): Promise<number> {
  const counts = agents.map(async (agent) => {
    const status = readStatus.bytes(await server.call(`/v1/agents/${agent}/status`))
    if ('code' in status) throw new Error(`The status of an agent: ${status.detail}`)
    return status.value.record_count
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

function post(
  server: BenchServer,
  path: string,
  { body, type }: { body: string; type: string },
): LoadRequest {
  return { method: 'POST', path, headers: { ...credential(server), 'content-type': type }, body }
}

function credential({ rootKey }: BenchServer): { authorization: string } {
  return { authorization: `Bearer ${rootKey}` }
}

function agentOf(number: number): string {
  return agents[number % agents.length] ?? ''
}

/** A body of about 230 bytes, as a fleet of devices would send it. */
function recordBody(number: number): object {
  return {
    device: `sensor-${String(number).padStart(4, '0')}`,
    site: 'north-hall',
    number,
    taken_at: '2026-03-01T12:00:00.000Z',
    temperature: 20 + (number % 100) / 10,
    humidity: 40 + (number % 37),
    pressure: 1000 + (number % 41) / 2,
    status: number % 50 === 0 ? 'warning' : 'normal',
    note: 'taken by the regular round of the hall',
    firmware: '4.12.7',
  }
}
