/**
 * The comparison: the same work for the built server and for programs that people would use instead, in turn in one
 * run, as far as they are installed. Adds one JSON line to peers.jsonl. Ends with 1 when an answer was wrong, an
 * answered record was not stored, or a target was missed.
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
import { heldAgainst, measureInRounds } from './peers/rounds.mjs'
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
  const tell = (text) => process.stderr.write(`${text}\n`)
  const at = new Date().toISOString()
  const bench = { plan, directory, tell }
  const skipped = peers.flatMap(({ name, missing }) => (missing() ? [{ name, detail: missing() }] : []))
  for (const { name, detail } of skipped) tell(`${name} is left out: ${detail}`)
  const present = peers.filter(({ name }) => !skipped.some((left) => left.name === name))
  const found = { versions: {}, workloads: [], faults: [] }
  for (const kind of KINDS) {
    const asked = workloads.filter((one) => one.kind === kind && isAsked(plan, one))
    const able = present.filter(({ kinds }) => kinds.includes(kind))
    if (asked.length > 0) await measureKind(bench, { kind, asked, able }, found)
  }
  const { rounds, seconds } = plan
  const file = resultsFileOf(plan, resultsFile)
  if (file !== undefined) appendResult(file, { at, ...environment(plan), rounds, seconds, skipped, ...found })
  process.stdout.write(`\n${found.workloads.map(peersTable).join('\n')}`)
  const missed = found.workloads.some(({ targets }) => targets.some(({ met }) => !met))
  return found.faults.length > 0 || missed ? 1 : 0
}

/** Starts all contenders for such workloads, measures them and stops them. */
async function measureKind(bench, { kind, asked, able }, found) {
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
        bench.tell(`${peer.name} FAILED: ${detail}`)
      }
    }
    for (const workload of asked) {
      const { id, title, unit, secondsMin, targets = [] } = workload
      bench.tell(title)
      const contenders = started.flatMap((running) => running.contenders(workload))
      const { results, faults } = await measureInRounds(bench, { contenders, secondsMin })
      found.workloads.push({ id, title, unit, contenders: results, targets: heldAgainst(targets, results) })
      found.faults.push(...faults)
    }
  } finally {
    await Promise.all(started.map(({ stop }) => stop()))
  }
}

function isAsked({ only }, { id }) {
  return only.length === 0 || only.includes(id)
}

/** The plan of a run; says what is wrong with the arguments, if anything is. */
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
