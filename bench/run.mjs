/**
 * The bench: measures the built server against ceilings taken in the same run by the same generator, and adds
 * one JSON line to results.jsonl. Exits with 1 when an answer was wrong or a target was missed.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { signRate } from './ceilings/sign-rate.mjs'
import { removeAtExit } from './load.mjs'
import { environment } from './environment.mjs'
import { readPlan, usage } from './options.mjs'
import { measureCheckout } from './product.mjs'
import { appendResult, notMeasuredLines, resultOf, resultsFileOf, table } from './report.mjs'
import { agentsMillion } from './scenarios/agents-million.mjs'
import { auth } from './scenarios/auth.mjs'
import { clusterEngine } from './scenarios/cluster-engine.mjs'
import { clusterFailovers } from './scenarios/cluster-nodes.mjs'
import { clusterQuotas } from './scenarios/cluster-quotas.mjs'
import { clusterThree } from './scenarios/cluster-three.mjs'
import { cluster, clusterInserts } from './scenarios/cluster.mjs'
import { consoleTail } from './scenarios/console-tail.mjs'
import { crashStart } from './scenarios/crash-start.mjs'
import { diskWrites } from './scenarios/disk-writes.mjs'
import { engines } from './scenarios/engines.mjs'
import { flatness } from './scenarios/flatness.mjs'
import { fronts } from './scenarios/fronts.mjs'
import { get } from './scenarios/get.mjs'
import { growth } from './scenarios/growth.mjs'
import { ingest } from './scenarios/ingest.mjs'
import { latency } from './scenarios/latency.mjs'
import { latest } from './scenarios/latest.mjs'
import { loneWrites } from './scenarios/lone-writes.mjs'
import { memory } from './scenarios/memory.mjs'
import { otlp } from './scenarios/otlp.mjs'
import { namespaces } from './scenarios/namespaces.mjs'
import { strandMillion } from './scenarios/strand-million.mjs'
import { streams } from './scenarios/streams.mjs'
import { userTokens } from './scenarios/user-tokens.mjs'
import { writes } from './scenarios/writes.mjs'
import { rounded } from './statistics.mjs'

const usual = {
  writes,
  'lone-writes': loneWrites,
  latency,
  'disk-writes': diskWrites,
  'crash-start': crashStart,
  ingest,
  otlp,
  get,
  latest,
  streams,
  memory,
  auth,
  'user-tokens': userTokens,
  namespaces,
  engines,
  fronts,
}
/** These take minutes and gigabytes, a browser or PostgreSQL, so they run only when named. */
const long = {
  cluster,
  'cluster-engine': clusterEngine,
  'cluster-quotas': clusterQuotas,
  'cluster-failovers': clusterFailovers,
  'cluster-three': clusterThree,
  'cluster-inserts': clusterInserts,
  'console-tail': consoleTail,
  'agents-million': agentsMillion,
  'strand-million': strandMillion,
  flatness,
  growth,
}
/** Further scenarios that a name includes; each can also be named alone. */
const parts = { cluster: ['cluster-engine', 'cluster-failovers', 'cluster-quotas', 'cluster-three'] }
const resultsFile = fileURLToPath(new URL('results.jsonl', import.meta.url))

process.exitCode = await run(process.argv.slice(2))

async function run(args) {
  const plan = planOf(args)
  if (plan === undefined) return 78
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-bench-'))
  removeAtExit(directory)
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
  const report = (text) => process.stderr.write(`${text}\n`)
  const at = new Date().toISOString()
  const ceilings = { sign_one_core: rounded(await signRate({ threads: 1, durationMs: plan.signMs })) }
  const results = []
  const absent = []
  const faults = []
  const only = new Set(plan.only.flatMap((name) => [name, ...(parts[name] ?? [])]))
  const chosen = Object.entries({ ...usual, ...long }).filter(([name]) => only.has(name))
  for (const [name, scenario] of chosen.length > 0 ? chosen : Object.entries(usual)) {
    try {
      const measured = await scenario({ plan, directory, report })
      for (const one of measured) {
        if ('notMeasured' in one) absent.push({ scenario: name, ...one })
        else results.push({ scenario: name, ...resultOf(one) })
      }
    } catch (error) {
      faults.push({ name, detail: error instanceof Error ? error.message : String(error) })
      report(`${name} FAILED: ${faults.at(-1).detail}`)
    }
  }
  const line = { at, ...environment(plan), ceilings, scenarios: results, not_measured: absent, faults }
  const file = resultsFileOf(plan, resultsFile)
  if (file !== undefined) appendResult(file, line)
  if (results.length > 0) process.stdout.write(`\n${table(results)}`)
  process.stdout.write(notMeasuredLines(absent))
  return faults.length > 0 || results.some(({ met }) => met === false) ? 1 : 0
}

/** The plan of a run. Prints what is wrong with invalid arguments and returns undefined. */
function planOf(args) {
  try {
    const plan = readPlan(args)
    const unknown = plan.only.find((name) => !Object.hasOwn({ ...usual, ...long }, name))
    if (unknown !== undefined) throw new Error(`No such scenario: ${unknown}`)
    if (plan.product !== undefined) measureCheckout(plan.product)
    return plan
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${usage}`)
    return undefined
  }
}
