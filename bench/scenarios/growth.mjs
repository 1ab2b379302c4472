import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { runScript } from '../child.mjs'
import { runCommand } from '../command.mjs'
import { call, credential, startProduct } from '../server.mjs'
import { median, rounded } from '../statistics.mjs'
import { checkSpace, stepsUpTo } from './flatness.mjs'

const generator = new URL('../generators/lines-process.mjs', import.meta.url)
const LINES_A_REQUEST = 25_000
const CONNECTIONS = 4
const PREFIX = 'grown'
const AGENT = `${PREFIX}-0000`
const FIRST_RECORDS = 100_000
/** Records that are written just before a server is killed. */
const UNFINISHED = 50_000
const MANY_AGENTS = 10_000
/** Calls of which the median is taken, except for the first after a start. */
const CALLS = 15
const EXPORTED = 1_000
/** On disk, with pages that compaction frees and, for a while, a backup. */
const BYTES_A_RECORD = 1_500
/** How much a curve that is flat may rise from the first size to the last. */
const FLAT = 2
/** Milliseconds of the first checkpoint, or proof, after a start. */
const COLD_MS = 20
/** How long a server rests after a load, so that it has merged and indexed what was written. */
const REST_MS = 10_000

const query = ({ url }, body) => call(`${url}/v1/agents/${AGENT}/query`, { body })
const checkpoint = (at) => read(at, `/v1/strand/checkpoint?agent=${AGENT}`)
const proof = (at) => read(at, `/v1/strand/proof?agent=${AGENT}&hash=${at.hash}`)

/** What is called at each size, many times. */
const calls = {
  'the newest 100 records': (at) => query(at, { type: 'latest', limit: 100 }),
  'a record by its hash': (at) => read(at, `/v1/agents/${AGENT}/records/${at.hash}`),
  'a page of 10 records by a condition': (at) =>
    query(at, { type: 'latest', limit: 10, where: [{ field: 'status', op: 'eq', value: 'warning' }] }),
  '100 agents by a prefix': (at) => read(at, `/v1/agents?prefix=${PREFIX}&limit=100`),
  'a stream until its first event': firstEvent,
  [`an export of ${EXPORTED} records`]: (at) =>
    read(at, `/v1/strand/export?agent=${AGENT}&from_seq=${at.seq}&to_seq=${at.seq + EXPORTED - 1}`),
  'a checkpoint': checkpoint,
  'a proof': proof,
}

/**
 * What reads, starts and backups cost as a store grows, tenfold at each step, with all records in one agent or
 * in ten thousand. Ten million records take about 15 GB of the temporary directory's disk during the run.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function growth(bench) {
  return [...(await grow(bench, 1)), ...(await grow(bench, MANY_AGENTS))]
}

async function grow({ plan, directory, report }, agents) {
  checkSpace(directory, plan.flatRecords * BYTES_A_RECORD)
  const data = join(directory, `growth-${agents}`)
  const sizes = stepsUpTo(FIRST_RECORDS, plan.flatRecords)
  const steps = []
  let server = await startProduct(data)
  try {
    let records = 0
    for (const size of sizes) {
      report(`${size} records, ${agents} agents`)
      await fill(server.url, { agents, from: records, lines: size - records })
      await rest()
      const at = await middle(server.url)
      const figures = new Map()
      for (const [name, ask] of Object.entries(calls)) figures.set(name, await medianMs(() => ask(at)))
      figures.set('a backup, for a million records', (await backupMs(data, directory)) * (1e6 / size))
      await server.stop()
      server = await startProduct(data)
      await addFirsts(figures, 'a stop', { server, at })
      await fill(server.url, { agents, from: size, lines: UNFINISHED })
      await server.kill()
      server = await startProduct(data)
      await addFirsts(figures, 'a kill', { server, at })
      for (const [name, ms] of figures) report(`  ${name}: ${ms.toFixed(1)} ms`)
      steps.push(figures)
      records = size + UNFINISHED
    }
  } finally {
    await server.stop()
    rmSync(data, { recursive: true, force: true })
  }
  return figuresOf({ steps, sizes, agents })
}

async function fill(url, { agents, from, lines }) {
  const task = { url, prefix: PREFIX, agents, from, lines, linesARequest: LINES_A_REQUEST }
  const how = { connections: CONNECTIONS, headers: credential, signing: 'group' }
  const { accepted } = await runScript(generator, { ...task, ...how })
  if (accepted !== lines) throw new Error(`${lines} lines were sent and ${accepted} accepted`)
}

const rest = () => new Promise((resolve) => setTimeout(resolve, REST_MS))

/** A record in the middle of the strand, so that no cache of its ends helps. */
async function middle(url) {
  const { record_count: count } = await call(`${url}/v1/agents/${AGENT}/status`)
  const seq = Math.max(1, count >> 1)
  const path = `/v1/strand/export?agent=${AGENT}&from_seq=${seq}&to_seq=${seq}`
  // The last line of an export names the hash of its last record.
  const { chain_head: hash } = JSON.parse((await read({ url }, path)).trim().split('\n').at(-1))
  return { url, seq, hash }
}

async function read({ url }, path) {
  const response = await fetch(url + path, { headers: credential })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`Expected 200 of ${path}, got ${response.status}: ${text}`)
  return text
}

async function firstEvent({ url }) {
  const response = await fetch(`${url}/v1/agents/${AGENT}/stream?since=0`, { headers: credential })
  let text = ''
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece
    if (text.includes('event: record\n')) return
  }
  throw new Error(`The stream ended without an event: ${text}`)
}

async function medianMs(ask) {
  const times = []
  for (let n = 0; n < CALLS; n++) times.push(await msOf(ask))
  return median(times)
}

async function msOf(ask) {
  const startMs = performance.now()
  await ask()
  return performance.now() - startMs
}

async function backupMs(data, directory) {
  const copy = join(directory, 'growth-backup')
  try {
    return (await runCommand(['backup', copy], { SERVICE_DATA_DIR: data })).elapsedMs
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** The start of a server, then its first checkpoint and a proof that nothing prepared. */
async function addFirsts(figures, end, { server, at }) {
  // The first request of this process opens its connection.
  await read(server, '/readyz')
  figures.set(`a start after ${end}`, server.startMs)
  figures.set(`the first checkpoint after ${end}`, await msOf(() => checkpoint({ ...at, url: server.url })))
  figures.set(`the first proof after ${end}`, await msOf(() => proof({ ...at, url: server.url })))
}

/** A figure for each curve: the milliseconds at its last size, and all of them. */
function figuresOf({ steps, sizes, agents }) {
  return [...steps[0].keys()].map((name) => {
    const curve = steps.map((figures) => rounded(figures.get(name)))
    const below = name.startsWith('the first') ? COLD_MS : FLAT * curve[0]
    return {
      name: `${name}, ${agents === 1 ? 'one agent' : `${agents} agents`}`,
      value: curve.at(-1),
      unit: 'ms',
      target: { below },
      also: { sizes, curve },
    }
  })
}
