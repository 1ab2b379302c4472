/**
 * The comparison: the same work for the built server and for the installed alternatives, one after another in
 * one run. Adds one JSON line to peers.jsonl. Exits with 1 when an answer was wrong, an acknowledged record
 * was not stored, or a target was missed.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { environment } from './environment.mjs'
import { removeAtExit } from './load.mjs'
import { readPeersPlan, usage } from './peers/options.mjs'
import { measureCheckout } from './product.mjs'
import { peers } from './peers/peer.mjs'
import { compareWithTargets, measureInRounds } from './peers/rounds.mjs'
import { workloads } from './peers/workloads.mjs'
import { appendResult, peersTable, resultsFileOf } from './report.mjs'

const resultsFile = fileURLToPath(new URL('peers.jsonl', import.meta.url))
const KINDS = ['writes', 'bulk', 'sign-in']

process.exitCode = await run(process.argv.slice(2))

async function run(args) {
  const plan = planOf(args)
  if (plan === undefined) return 78
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-bench-peers-'))
  removeAtExit(directory)
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
  const report = (text) => process.stderr.write(`${text}\n`)
  const at = new Date().toISOString()
  const bench = { plan, directory, report }
  const skipped = peers.flatMap(({ name, missing }) => (missing() ? [{ name, detail: missing() }] : []))
  for (const { name, detail } of skipped) report(`${name} is skipped: ${detail}`)
  const present = peers.filter(({ name }) => !skipped.some((left) => left.name === name))
  const found = { versions: {}, workloads: [], faults: [] }
  for (const kind of KINDS) {
    const chosen = workloads.filter((one) => one.kind === kind && isChosen(plan, one))
    const able = present.filter(({ kinds }) => kinds.includes(kind))
    if (chosen.length > 0) await measureKind(bench, { kind, chosen, able }, found)
  }
  const { rounds, seconds } = plan
  const file = resultsFileOf(plan, resultsFile)
  if (file !== undefined) appendResult(file, { at, ...environment(plan), rounds, seconds, skipped, ...found })
  process.stdout.write(`\n${found.workloads.map(peersTable).join('\n')}`)
  const missed = found.workloads.some(({ targets }) => targets.some(({ met }) => !met))
  return found.faults.length > 0 || missed ? 1 : 0
}

/** Starts all contenders for one kind of workload, measures them and stops them. */
async function measureKind(bench, { kind, chosen, able }, found) {
  const started = []
  try {
    for (const peer of able) {
      try {
        const running = await peer.start(bench, kind)
        started.push(running)
        if (running.version !== '') found.versions[peer.name] = running.version
      } catch (error) {
        const detail = error instanceof Error ? error.message : String(error)
        found.faults.push({ name: peer.name, detail })
        bench.report(`${peer.name} FAILED: ${detail}`)
      }
    }
    for (const workload of chosen) {
      const { id, title, unit, secondsMin, targets = [] } = workload
      bench.report(title)
      const contenders = started.flatMap((running) => running.contenders(workload))
      const { results, faults } = await measureInRounds(bench, { contenders, secondsMin })
      found.workloads.push({
        id,
        title,
        unit,
        contenders: results,
        targets: compareWithTargets(targets, results),
      })
      found.faults.push(...faults)
    }
  } finally {
    await Promise.all(started.map(({ stop }) => stop()))
  }
}

function isChosen({ only }, { id }) {
  return only.length === 0 || only.includes(id)
}

/** The plan of a run. Prints what is wrong with invalid arguments and returns undefined. */
function planOf(args) {
  try {
    const plan = readPeersPlan(args)
    if (plan.product !== undefined) measureCheckout(plan.product)
    return plan
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${usage}`)
    return undefined
  }
}
