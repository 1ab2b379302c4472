import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { credential, startProduct } from '../server.mjs'
import { median, rounded } from '../statistics.mjs'
import { singleWrites } from '../writers.mjs'
import { inTurn } from './alternation.mjs'

/** Of a write that a node passes on, by one at the owner of the shards. */
const FORWARDED_TARGET = 0.75
const CONNECTIONS = [64, 512]
/** The lease of the nodes that are killed and stopped, seconds. */
const LEASE_SECS = 2
const AGENT = 'failover'
const PAUSE_MS = 5
const PATIENCE_MS = 60_000

/**
 * Writes at a node that stands by, which passes them on to the owner over a link, by writes at the owner. Both nodes, the
 * database and the load share two processors, so that the second node takes its work from the first.
 * @param {{bench: import('./alternation.mjs').Bench, node: {url: string}, env: Record<string, string>}} run `node` owns the shards
 */
export async function forwarded({ bench, node, env }) {
  const standby = await startProduct(join(bench.directory, 'standby'), { ...env, ...ownOf('standby') })
  try {
    await answers(standby.url)
    const { load } = singleWrites(bench)
    const measured = []
    for (const connections of CONNECTIONS) {
      bench.tell(`single writes through a link, ${connections} connections`)
      const product = { url: standby.url, load }
      const turn = await inTurn(bench, { product, ceiling: { url: node.url, load }, connections })
      const { value, ceiling, ratio, also } = turn
      const name = `writes through a link, ${connections} connections, by those at the owner`
      measured.push({
        name,
        value,
        unit: 'writes/s',
        ceiling,
        ratio,
        target: { ratio: FORWARDED_TARGET },
        also,
      })
    }
    return measured
  } finally {
    await standby.stop()
  }
}

/**
 * How long nobody answers a write: after a kill of the owner, and where it is stopped in order. What is killed or stopped is
 * started again, and stands by.
 * @param {{bench: import('./alternation.mjs').Bench, env: Record<string, string>}} run no node runs
 */
export async function failovers({ bench, env }) {
  const { plan, tell, directory } = bench
  const start = (name) =>
    startProduct(join(directory, `failover-${name}`), {
      ...env,
      ...ownOf(name),
      SERVICE_CLUSTER_LEASE_SECS: String(LEASE_SECS),
    })
  const names = ['one', 'two']
  const nodes = new Map()
  for (const name of names) nodes.set(name, await start(name))
  const gaps = { kill: [], stop: [] }
  try {
    for (let round = 1; round <= plan.rounds; round++) {
      for (const how of ['kill', 'stop']) {
        for (const { url } of nodes.values()) await answers(url)
        const owner = await ownerOf(nodes)
        const gap = writeOver([...nodes.values()].map(({ url }) => url))
        await pause(500)
        await nodes.get(owner)[how]()
        const ms = await gap
        gaps[how].push(ms)
        nodes.set(owner, await start(owner))
        tell(`  round ${round}: ${how} of the owner, ${Math.round(ms)} ms until a write is answered`)
      }
    }
  } finally {
    for (const node of nodes.values()) await node.stop()
  }
  const leaseMs = LEASE_SECS * 1_000
  const figure = (what, ms, target) => ({
    name: `time until a write is answered, ${what}`,
    value: median(ms),
    unit: 'ms',
    target: { below: target },
    also: { lease_ms: leaseMs, most_ms: rounded(Math.max(...ms)) },
  })
  return [
    figure('after a kill of the owner', gaps.kill, 1.2 * leaseMs + 2_000),
    figure('where the owner is stopped in order', gaps.stop, 500),
  ]
}

function ownOf(name) {
  return { SERVICE_CLUSTER_NODE: name, SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0' }
}

/** Waits until a node takes requests. */
async function answers(url) {
  const untilMs = performance.now() + PATIENCE_MS
  while (performance.now() < untilMs) {
    const found = await fetch(`${url}/readyz`).catch(() => undefined)
    if (found?.status === 200) return
    await pause(PAUSE_MS)
  }
  throw new Error(`Expected ${url} to take requests`)
}

async function ownerOf(nodes) {
  for (const [name, { url }] of nodes) {
    const metrics = await (await fetch(`${url}/metrics`)).text()
    if (metrics.includes('\nstrandfast_cluster_serving 1\n')) return name
  }
  throw new Error('Expected one of the nodes to own the shards')
}

/** Writes at one node after the other, from before something happens. @returns the longest time between two answers, ms */
async function writeOver(urls) {
  const startedMs = performance.now()
  let [answeredMs, longestMs] = [startedMs, 0]
  for (let at = 0; performance.now() - startedMs < PATIENCE_MS; at++) {
    const answered = await write(urls[at % urls.length])
    if (answered) {
      longestMs = Math.max(longestMs, performance.now() - answeredMs)
      answeredMs = performance.now()
      // It is over when a second has passed without more.
      if (longestMs > 100 && performance.now() - startedMs > longestMs + 1_500) return longestMs
    }
    await pause(PAUSE_MS)
  }
  return longestMs
}

async function write(url) {
  try {
    const { status } = await fetch(`${url}/v1/collections/${AGENT}/records`, {
      method: 'POST',
      headers: { ...credential, 'content-type': 'application/json' },
      body: JSON.stringify({ data: { text: 'over' } }),
      signal: AbortSignal.timeout(1_000),
    })
    return status === 201
  } catch {
    return false
  }
}
