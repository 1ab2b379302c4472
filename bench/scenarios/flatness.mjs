import { rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { signRate } from '../ceilings/sign-rate.mjs'
import { runScript } from '../child.mjs'
import { prepareLoad, runCleanly } from '../load.mjs'
import { agentNames, writeRequests } from '../records.mjs'
import { cpuMsOf, credential, startProduct } from '../server.mjs'
import { median } from '../statistics.mjs'

const generator = new URL('../generators/lines-process.mjs', import.meta.url)
/** Enough that the fixed cost of a commit is a small part of each write's cost. */
const CONNECTIONS = 512
const FILL_CONNECTIONS = 4
const LINES_A_REQUEST = 50_000
const FIRST_RECORDS = 10_000
/** Agents of the records of the first measurement; also the number of agents that are written to. */
const AGENTS = 100
const REQUESTS_MAX = 100_000
const FLAT = 1.5
/** On disk, of a record with its index entry and the pages that were overwritten; about 480 were seen. */
const BYTES_A_RECORD = 600

/**
 * The cost of a durable write as a store grows: from ten thousand records to very many of the same agents,
 * and from one agent to very many. The cost is the server's CPU time for a write, the speed is the writes a
 * second. Both are in units of a signature measured in the same minute, so that changes of the machine's
 * speed cancel out. Ten million records take about 5 GB of the temporary directory's disk during the run.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function flatness(bench) {
  const byRecords = await alongRecords(bench)
  const byAgents = await alongAgents(bench)
  return [...byRecords, ...byAgents]
}

async function alongRecords(bench) {
  const { plan, directory, report } = bench
  checkSpace(directory, plan.flatRecords * BYTES_A_RECORD)
  const dataDirectory = join(directory, 'flatness-records')
  const product = await startProduct(dataDirectory)
  try {
    const sizes = stepsUpTo(FIRST_RECORDS, plan.flatRecords)
    const costs = []
    let records = 0
    for (const size of sizes) {
      report(`a write among ${size} records`)
      await fill(product.url, { agents: AGENTS, from: records, lines: size - records, signing: 'group' })
      records = size
      costs.push(await costOfWrite(bench, product, AGENTS))
    }
    return measured('records', sizes, costs)
  } finally {
    await product.stop()
    rmSync(dataDirectory, { recursive: true, force: true })
  }
}

async function alongAgents(bench) {
  const { plan, directory, report } = bench
  const product = await startProduct(join(directory, 'flatness-agents'))
  try {
    const sizes = stepsUpTo(1, plan.flatAgents)
    const costs = []
    for (const size of sizes) {
      report(`a write among ${size} agents`)
      // Each agent gets its genesis record before the measurement.
      await fill(product.url, { agents: size, from: 0, lines: size, signing: 'record' })
      costs.push(await costOfWrite(bench, product, size))
    }
    return measured('agents', sizes, costs)
  } finally {
    await product.stop()
  }
}

/**
 * A full disk would lose everything measured so far.
 * @throws {Error} if the disk of the directory has less free space
 */
export function checkSpace(directory, bytes) {
  const { bavail, bsize } = statfsSync(directory)
  if (bavail * bsize >= bytes) return
  const gigabytes = (bytes / 1e9).toFixed(1)
  throw new Error(`The temporary directory needs ${gigabytes} GB of free space: use a smaller --records`)
}

/** Sizes that grow tenfold; the last one is `end`. */
export function stepsUpTo(first, end) {
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
 * Single writes that cycle through `agents` agents.
 * @returns {Promise<{signatures: number, speed: number, perSecond: number, p99Ms: number}>} `signatures`: CPU
 *   time of a write divided by that of a signature; `speed`: writes divided by signatures of one core in the
 *   same time
 */
async function costOfWrite({ plan, directory, report }, { url, pid }, agents) {
  // Shuffled, so that consecutive writes are not neighbors in the store.
  const names = shuffled(agentNames('agent', agents))
  const count = Math.min(REQUESTS_MAX, Math.max(agents, AGENTS))
  const requests = writeRequests(names, { count, headers: credential })
  const load = prepareLoad(requests, { generator: plan.generator, directory })
  // Long enough for a server that has just started to run compiled code.
  await runCleanly(load, url, { connections: CONNECTIONS, seconds: plan.warmUpSeconds + plan.seconds })
  const rounds = []
  for (let round = 1; round <= plan.rounds; round++) {
    const before = await signing(plan)
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
    const after = await signing(plan)
    const signatures = writeUs / ((before.cpuUs + after.cpuUs) / 2)
    const speed = perSecond / ((before.rate + after.rate) / 2)
    rounds.push({ signatures, speed, perSecond, p99Ms })
    report(
      `  round ${round}: ${writeUs.toFixed(1)} us, ${signatures.toFixed(2)} signatures; ${Math.round(perSecond)}/s`,
    )
  }
  const of = (name) => median(rounds.map((round) => round[name]))
  return {
    signatures: of('signatures'),
    speed: of('speed'),
    perSecond: of('perSecond'),
    p99Ms: of('p99Ms'),
  }
}

/**
 * Signatures a second, and the CPU time of one signature, without the time that it waited on a busy machine.
 */
async function signing(plan) {
  const before = process.cpuUsage()
  const startMs = performance.now()
  const rate = await signRate({ threads: 1, durationMs: plan.signMs })
  const { user, system } = process.cpuUsage(before)
  const share = Math.min(1, (user + system) / 1_000 / (performance.now() - startMs))
  return { rate, cpuUs: (1_000_000 / rate) * share }
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
  const figures = costs.map(({ signatures, perSecond, p99Ms }, index) => ({
    name: `a write among ${sizes[index]} ${of}`,
    value: signatures,
    unit: 'signatures',
    also: { writes_per_second: Math.round(perSecond), p99_ms: p99Ms },
  }))
  const last = `up to ${sizes.at(-1)} ${of}`
  const [first] = costs
  const dearer = Math.max(...costs.map(({ signatures }) => signatures / first.signatures))
  const slower = Math.max(...costs.map(({ speed }) => first.speed / speed))
  const most = { unit: 'times', target: { below: FLAT } }
  return [
    ...figures,
    { ...most, name: `CPU time of a write ${last}, by that at first`, value: dearer },
    { ...most, name: `time of a write ${last}, by that at first`, value: slower },
  ]
}
