import { join } from 'node:path'
import { runScript } from '../child.mjs'
import { runCommand } from '../command.mjs'
import { call, createAgents, credential, memoryOf, rootKey, startProduct } from '../server.mjs'

const generator = new URL('../generators/lines-process.mjs', import.meta.url)
const LINES_A_REQUEST = 100_000
const AGENT = 'long-0000'
/** The share of the strand whose verification is compared in memory with that of the whole strand. */
const FEW = 0.1
const FULL_TARGET = 10_000
const FAST_TARGET = 200_000
/** The most that memory may grow, as a factor, for at least four times the records. */
const BOUNDED = 1.5
/** Milliseconds between readings of the server's memory. */
const POLL_MS = 100

/**
 * One strand of very many records: exported to a file, then verified offline with every signature and with
 * `--fast`; also the memory of each.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function strandMillion({ plan, directory, report }) {
  const records = plan.manyRecords
  report(`a strand of ${records} records`)
  const whole = join(directory, 'strand-million.ndjson')
  const part = join(directory, 'strand-million-part.ndjson')
  const product = await startProduct(join(directory, 'strand-million'))
  let exported
  let publicKey
  try {
    await createAgents(product.url, [AGENT])
    await fill(product.url, records)
    publicKey = (await call(`${product.url}/v1/agents/${AGENT}/status`)).public_key
    const few = ['--to-seq', String(Math.round(records * FEW))]
    await saveExport(product, part, few)
    exported = await saveExport(product, whole, [])
    report(
      `  saved in ${exported.elapsedMs} ms, the server ${Math.round(exported.grownBytes / 1e6)} MB larger`,
    )
  } finally {
    await product.stop()
  }
  const measured = [
    {
      name: 'export of a long strand',
      value: (records / exported.elapsedMs) * 1_000,
      unit: 'records/s',
      also: { records, server_grew_bytes: exported.grownBytes },
    },
  ]
  for (const [mode, more, target] of [
    ['every signature', [], FULL_TARGET],
    ['--fast', ['--fast'], FAST_TARGET],
  ]) {
    const small = await verify(part, publicKey, more)
    const { elapsedMs, cpuMs, peakBytes } = await verify(whole, publicKey, more)
    const value = (records / elapsedMs) * 1_000
    report(`  verified, ${mode}: ${Math.round(value)} records/s, ${Math.round(peakBytes / 1e6)} MB`)
    const also = { records, cpu_us: Number(((cpuMs * 1_000) / records).toFixed(2)), peak_bytes: peakBytes }
    measured.push(
      { name: `verification, ${mode}`, value, unit: 'records/s', target: { value: target }, also },
      {
        name: `memory of it, ${mode}, by that of a tenth`,
        value: peakBytes / small.peakBytes,
        unit: 'times',
        target: { below: BOUNDED },
      },
    )
  }
  return measured
}

async function fill(url, records) {
  const { accepted } = await runScript(generator, {
    url,
    prefix: AGENT.slice(0, AGENT.lastIndexOf('-')),
    agents: 1,
    from: 0,
    lines: records,
    linesARequest: LINES_A_REQUEST,
    connections: 1,
    headers: credential,
    signing: 'record',
  })
  if (accepted !== records) throw new Error(`${records} lines were sent and ${accepted} accepted`)
}

/** Saves an export and measures how much the server's memory grows during it. */
async function saveExport({ url, pid }, file, more) {
  const before = memoryOf(pid).anonymous
  let most = before
  const timer = setInterval(() => (most = Math.max(most, memoryOf(pid).anonymous)), POLL_MS)
  const args = ['export', '--url', url, '--api-key', rootKey, '--agent', AGENT, '--out', file, ...more]
  const { elapsedMs } = await runCommand(args)
  clearInterval(timer)
  return { elapsedMs, grownBytes: most - before }
}

async function verify(file, publicKey, more) {
  const run = await runCommand(['verify', file, '--public-key', publicKey, ...more])
  if (!run.out.startsWith('VERIFIED ')) throw new Error(run.out)
  return run
}
