/**
 * The demo: streams public data sets into the strands of many agents of a running server, follows the live
 * stream at the same time, then exports the longest strand and verifies it offline. Exits with 1 if any count
 * differs.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startServer } from '../bench/child.mjs'
import { ServiceClient } from '../dist/src/client/index.js'
import { dataSets } from './demo/data-sets.mjs'
import { follow } from './demo/follower.mjs'
import { grouped, showProgress } from './demo/progress.mjs'
import { saveStrand, verifyOffline } from './demo/proof.mjs'
import { upload } from './demo/upload.mjs'

const usage = `Usage: npm run demo -- [--url URL --api-key KEY] [--gzip]
  --url, --api-key  a running server and its root key; without them, the demo starts a server with new data
  --gzip            sends the rows compressed
`
/** Parallel requests for statuses. */
const STATUSES_IN_FLIGHT = 8

const options = readOptions()
if (options === undefined) {
  process.stderr.write(usage)
  process.exitCode = 78
} else {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-demo-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
  process.exitCode = await demo(options, directory)
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        url: { type: 'string' },
        'api-key': { type: 'string' },
        gzip: { type: 'boolean', default: false },
      },
    })
    return (values.url === undefined) === (values['api-key'] === undefined) ? values : undefined
  } catch {
    return undefined
  }
}

/** @returns {Promise<number>} the exit code */
async function demo({ url, 'api-key': key, gzip }, directory) {
  const ownServer = url === undefined ? await startOwn(directory) : undefined
  try {
    const server = { url: url?.replace(/\/+$/, '') ?? ownServer.url, key: key ?? ownServer.key, gzip }
    process.stderr.write(
      `server at ${server.url}${ownServer === undefined ? '' : ', started for this demo'}\n`,
    )
    const faults = await show(server, directory)
    for (const fault of faults) process.stderr.write(`DIFFERS: ${fault}\n`)
    process.stdout.write(faults.length === 0 ? '\nEvery count agrees\n' : '\nNot every count agrees\n')
    return faults.length === 0 ? 0 : 1
  } finally {
    await ownServer?.stop()
  }
}

async function startOwn(directory) {
  const key = randomBytes(24).toString('hex')
  const main = fileURLToPath(new URL('../dist/program/strandfast.js', import.meta.url))
  const server = await startServer([main, 'serve'], {
    SERVICE_DATA_DIR: join(directory, 'data'),
    SERVICE_PORT: '0',
    SERVICE_ROOT_API_KEY: key,
    SERVICE_RATE_LIMIT_RPS: '0',
    SERVICE_LOG_LEVEL: 'warn',
  })
  return { ...server, key }
}

/** @returns {Promise<string[]>} the differences */
async function show(server, directory) {
  const client = new ServiceClient({ url: server.url, apiKey: server.key })
  const agents = rowsByAgent()
  const before = await recordCounts(client, [...agents.keys()])
  const follower = await follow(client, (agent) => agents.has(agent))
  const sent = await sendAll(server, follower)
  await follower.caughtUp(sent.rows)
  const followedSecs = (follower.lastAtMs() - sent.startMs) / 1_000
  follower.close()
  const after = await recordCounts(client, [...agents.keys()])
  const proof = await prove(client, { agent: longest(agents), file: join(directory, 'strand.ndjson') })
  summarize({ agents, sent, follower, followedSecs, proof })
  const faults = [...follower.faults().slice(0, 10), ...sent.faults, ...proof.faults]
  if (sent.accepted !== sent.rows) faults.push(`${sent.rows} rows were sent and ${sent.accepted} accepted`)
  if (follower.count() !== sent.rows)
    faults.push(`${sent.rows} rows were sent and ${follower.count()} events followed`)
  for (const [agent, rows] of agents) {
    const written = after.get(agent) - before.get(agent)
    if (written !== rows) faults.push(`${agent} was sent ${rows} rows and has ${written} more records`)
  }
  return faults
}

/** The number of rows per agent. */
function rowsByAgent() {
  const agents = new Map()
  for (const { rows } of dataSets) {
    for (const { agent } of rows()) agents.set(agent, (agents.get(agent) ?? 0) + 1)
  }
  return agents
}

function longest(agents) {
  return [...agents].reduce((most, one) => (one[1] > most[1] ? one : most))[0]
}

/** The number of records per agent; 0 for a missing agent. */
async function recordCounts(client, names) {
  const counts = new Map()
  const left = [...names]
  const lane = async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      const status = await client
        .agent(name)
        .status()
        .catch((error) => {
          if (error.status === 404) return { record_count: 0 }
          throw error
        })
      counts.set(name, status.record_count)
    }
  }
  await Promise.all(Array.from({ length: STATUSES_IN_FLIGHT }, lane))
  return counts
}

async function sendAll(server, follower) {
  const sent = { rows: 0, accepted: 0, faults: [], startMs: performance.now(), secs: 0 }
  const secs = () => (performance.now() - sent.startMs) / 1_000
  const done = showProgress(
    () =>
      `${grouped(sent.rows)} rows sent (${grouped(sent.rows / secs())}/s), ${grouped(follower.count())} events followed`,
  )
  try {
    for (const { name, rows } of dataSets) {
      const from = { rows: sent.rows, secs: secs() }
      const summary = await upload(server, rows(), () => sent.rows++)
      sent.accepted += summary.accepted
      for (const error of summary.errors.slice(0, 3)) sent.faults.push(`${name}: ${JSON.stringify(error)}`)
      const count = sent.rows - from.rows
      process.stderr.write(
        `${lead()}${name}: ${grouped(count)} rows, ${grouped(count / (secs() - from.secs))}/s\n`,
      )
    }
    sent.secs = secs()
    return sent
  } finally {
    done()
  }
}

/** Clears the progress line before another line. */
function lead() {
  return process.stderr.isTTY ? '\r\u001b[K' : ''
}

async function prove(client, { agent, file }) {
  const { public_key: publicKey, record_count: recordCount } = await client.agent(agent).status()
  const saved = await saveStrand(client, { agent, file })
  const verified = await verifyOffline(file, publicKey)
  // The export contains the genesis record, which is not counted.
  const expected = recordCount + 1
  const faults = []
  if (verified.records !== expected) {
    faults.push(
      `${agent} has ${expected} records and ${verified.records} verified: ${verified.output.trim()}`,
    )
  }
  return { agent, saved, verified, faults }
}

function summarize({ agents, sent, follower, followedSecs, proof }) {
  const { agent, saved, verified } = proof
  const rate = (count, secs) => `${grouped(count)} in ${secs.toFixed(1)} s, ${grouped(count / secs)}/s`
  const lines = [
    ['rows written', `${rate(sent.accepted, sent.secs)}, on the strands of ${grouped(agents.size)} agents`],
    ['events followed', rate(follower.count(), followedSecs)],
    [
      'exported',
      `${agent}: ${rate(verified.records, saved.secs)}, ${(saved.bytes / 1_048_576).toFixed(1)} MiB`,
    ],
    ['verified offline', rate(verified.records, verified.secs)],
  ]
  process.stdout.write(`\n${lines.map(([what, text]) => `${what.padEnd(17)} ${text}\n`).join('')}`)
}
