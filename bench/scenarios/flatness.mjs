import { join } from 'node:path'
import { signRate } from '../ceilings/sign-rate.mjs'
import { runScript } from '../child.mjs'
import { prepareLoad, runCleanly } from '../load.mjs'
import { agentNames, writeRequests } from '../records.mjs'
import { cpuMsOf, credential, startProduct } from '../server.mjs'
import { median } from '../statistics.mjs'

const generator = new URL('../generators/lines-process.mjs', import.meta.url)
const CONNECTIONS = 64
const FILL_CONNECTIONS = 4
const LINES_A_REQUEST = 50_000
const FIRST_RECORDS = 10_000
/** Agents that the records of the first measurement are of, and those that are written to. */
const AGENTS = 100
const REQUESTS_MAX = 100_000
const FLAT = 1.5

/**
 * What a durable write costs as a store grows: from ten thousand records up to very many of the same agents, and from
 * one agent up to very many. The cost is the server's CPU time a write in units of a signature, both taken in the same
 * minute, so that a machine whose speed moves shows in neither.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function flatness(bench) {
  const byRecords = await alongRecords(bench)
  const byAgents = await alongAgents(bench)
  return [...byRecords, ...byAgents]
}

async function alongRecords(bench) {
  const { plan, directory, tell } = bench
  const product = await startProduct(join(directory, 'flatness-records'))
  try {
    const sizes = stepsUpTo(FIRST_RECORDS, plan.flatRecords)
    const costs = []
    let records = 0
    for (const size of sizes) {
      tell(`a write among ${size} records`)
      await fill(product.url, { agents: AGENTS, from: records, lines: size - records, signing: 'group' })
      records = size
      costs.push(await costOfWrite(bench, product, AGENTS))
    }
    return measured('records', sizes, costs)
  } finally {
    await product.stop()
  }
}

async function alongAgents(bench) {
  const { plan, directory, tell } = bench
  const product = await startProduct(join(directory, 'flatness-agents'))
  try {
    const sizes = stepsUpTo(1, plan.flatAgents)
    const costs = []
    for (const size of sizes) {
      tell(`a write among ${size} agents`)
      // Each has its genesis record before it is measured.
      await fill(product.url, { agents: size, from: 0, lines: size, signing: 'record' })
      costs.push(await costOfWrite(bench, product, size))
    }
    return measured('agents', sizes, costs)
  } finally {
    await product.stop()
  }
}

/** Ten times as many each time, the last one `end`. */
function stepsUpTo(first, end) {
  const steps = []
  for (let size = first; size < end; size *= 10) steps.push(size)
  return [...steps, end]
}

async function fill(url, { agents, from, lines, signing }) {
  const { accepted } = await runScript(generator, {
    url,
    prefix: 'agent',
    agents,
    from,
    lines,
    linesARequest: LINES_A_REQUEST,
    connections: FILL_CONNECTIONS,
    headers: credential,
    signing,
  })
  if (accepted !== lines) throw new Error(`${lines} lines were sent and ${accepted} accepted`)
}

/**
 * Single writes turn by turn to `agents` agents.
 * @returns {Promise<{signatures: number, perSecond: number, p99Ms: number}>} `signatures`: CPU time of a write by that
 *   of a signature
 */
async function costOfWrite({ plan, directory, tell }, { url, pid }, agents) {
  // In an order that no page of the store knows: neighbours in time are none in the store.
  const names = shuffled(agentNames('agent', agents))
  const count = Math.min(REQUESTS_MAX, Math.max(agents, AGENTS))
  const requests = writeRequests(names, { count, headers: credential })
  const load = prepareLoad(requests, { generator: plan.generator, directory })
  // Long enough that a server that has just begun runs compiled code.
  await runCleanly(load, url, { connections: CONNECTIONS, seconds: plan.warmUpSeconds + plan.seconds })
  const rounds = []
  for (let round = 1; round <= plan.rounds; round++) {
    const before = await signCpuUs(plan)
    const cpuMs = cpuMsOf(pid)
    const {
      requests: writes,
      perSecond,
      p99Ms,
    } = await runCleanly(load, url, {
      connections: CONNECTIONS,
      seconds: plan.seconds,
    })
    const writeUs = ((cpuMsOf(pid) - cpuMs) * 1_000) / writes
    const signUs = (before + (await signCpuUs(plan))) / 2
    rounds.push({ signatures: writeUs / signUs, perSecond, p99Ms })
    tell(`  round ${round}: ${writeUs.toFixed(1)} us, ${(writeUs / signUs).toFixed(2)} signatures`)
  }
  const of = (name) => median(rounds.map((round) => round[name]))
  return { signatures: of('signatures'), perSecond: of('perSecond'), p99Ms: of('p99Ms') }
}

/** CPU time of a signature, microseconds: what of it is waiting for a busy machine does not count. */
async function signCpuUs(plan) {
  const before = process.cpuUsage()
  const startMs = performance.now()
  const rate = await signRate({ threads: 1, durationMs: plan.signMs })
  const { user, system } = process.cpuUsage(before)
  const share = Math.min(1, (user + system) / 1_000 / (performance.now() - startMs))
  return (1_000_000 / rate) * share
}

function shuffled(names) {
  // A fixed step that shares no factor with the count visits each name once.
  const step = nextPrime(Math.floor(names.length * 0.618))
  return names.map((_, index) => names[(index * step) % names.length])
}

function nextPrime(from) {
  for (let candidate = Math.max(2, from); ; candidate++) {
    let prime = true
    for (let divisor = 2; divisor * divisor <= candidate && prime; divisor++) {
      if (candidate % divisor === 0) prime = false
    }
    if (prime) return candidate
  }
}

function measured(of, sizes, costs) {
  const first = costs[0].signatures
  const figures = costs.map(({ signatures, perSecond, p99Ms }, index) => ({
    name: `a write among ${sizes[index]} ${of}`,
    value: signatures,
    unit: 'signatures',
    also: { writes_per_second: Math.round(perSecond), p99_ms: p99Ms },
  }))
  const growth = Math.max(...costs.map(({ signatures }) => signatures)) / first
  const name = `growth of a write up to ${sizes.at(-1)} ${of}`
  return [...figures, { name, value: growth, unit: 'times', target: { below: FLAT } }]
}
