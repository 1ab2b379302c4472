/**
 * Runs tests repeatedly with new seeds, to reach the numbers that docs/GUARANTEES.md promises. A pass is what
 * CI runs once with a fixed seed, for clusters with more rounds. Continues after a failure, prints each pass, and adds one line per part to
 * docs/campaigns.jsonl. Exits with 1 if a pass failed, and with 78 for unknown arguments.
 */
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { runPass } from './campaign/pass.mjs'
import { parts } from './campaign/parts.mjs'

const names = Object.keys(parts)
const usage = `Usage: npm run campaign -- PART [--minutes N] [--seed S]
  PART         ${names.join(', ')} or all
  --minutes N  ends after N minutes, with at least one pass of each part (by default: when the promised numbers are reached)
  --seed S     repeats a campaign with its first seed (default: random)
`

/**
 * The distance between the seeds of passes. It is coprime to the step of
 * test/faults/failing-calls.slow.test.ts, so that passes reach each call.
 */
const SEED_STEP = 1_000
/** The limit of passes, because the number of a failing test may never be reached. */
const PASSES_MAX = 500

const request = readArguments()
if (request === undefined) {
  process.stderr.write(usage)
  process.exitCode = 78
} else process.exitCode = (await campaign(request)) ? 0 : 1

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      options: { minutes: { type: 'string' }, seed: { type: 'string' } },
      allowPositionals: true,
    })
    const [name] = positionals
    const minutes = values.minutes === undefined ? undefined : Number(values.minutes)
    const seed = Number(values.seed ?? randomInt(2 ** 31))
    const isGood =
      positionals.length === 1 &&
      (name === 'all' || names.includes(name)) &&
      (minutes === undefined || minutes > 0) &&
      Number.isSafeInteger(seed)
    return isGood ? { chosen: name === 'all' ? names : [name], minutes, seed } : undefined
  } catch {
    return undefined
  }
}

/**
 * Runs the parts one after another. Unused time of a part is available to later ones.
 * @returns whether all passed
 */
async function campaign({ chosen, minutes, seed }) {
  const commit = commitOfTree()
  console.log(`seed ${seed}, commit ${commit}`)
  const endMs = minutes === undefined ? undefined : Date.now() + minutes * 60_000
  let failures = 0
  for (const [index, name] of chosen.entries()) {
    const leftMinutes = (endMs - Date.now()) / 60_000
    const share = endMs === undefined ? undefined : Math.max(1, leftMinutes / (chosen.length - index))
    const result = await runPart(name, { minutes: share, seed })
    appendFileSync('docs/campaigns.jsonl', `${JSON.stringify({ commit, part: name, ...result })}\n`)
    failures += result.failures.length
  }
  console.log(failures === 0 ? 'No pass failed' : `${failures} failures`)
  return failures === 0
}

/** Runs passes of a part until it reaches its promised number, or for `minutes`. */
async function runPart(name, { minutes, seed }) {
  const part = parts[name]
  const startedMs = Date.now()
  const minutesSoFar = () => (Date.now() - startedMs) / 60_000
  const numbers = {}
  const failures = []
  let passes = 0
  const isDone = () =>
    minutes !== undefined && part.until.passes !== 1
      ? minutesSoFar() >= minutes
      : Object.entries(part.until).every(([key, most]) => ({ ...numbers, passes })[key] >= most)
  while (passes === 0 || (passes < PASSES_MAX && !isDone())) {
    const passSeed = seed + passes * SEED_STEP
    const files = passes === 0 ? [...part.files, ...(part.once ?? [])] : part.files
    const pass = await runPass(files, { seed: passSeed, minutes, rounds: part.rounds })
    passes += 1
    for (const [key, value] of Object.entries(pass.numbers)) numbers[key] = (numbers[key] ?? 0) + value
    failures.push(...pass.failures.map((failure) => ({ seed: passSeed, ...failure })))
    const done = Object.entries(numbers).map(([key, value]) => `${value} ${key}`)
    console.log([`${name}, pass ${passes}, ${minutesSoFar().toFixed(1)} min`, ...done].join(', '))
    const settings = `STRANDFAST_SEED=${passSeed}${part.rounds === undefined ? '' : ` STRANDFAST_ROUNDS=${part.rounds}`}`
    for (const { file, test } of pass.failures)
      console.log(
        `  FAILED ${file}: ${test}\n  log: ${pass.log}\n  repeat: ${settings} npx vitest run ${file}`,
      )
  }
  const at = new Date(startedMs).toISOString()
  return {
    at,
    node: process.version,
    seed,
    minutes: Number(minutesSoFar().toFixed(1)),
    passes,
    numbers,
    failures,
  }
}

/** The commit of the work tree, with `+` if files differ from it. */
function commitOfTree() {
  const git = (...words) => spawnSync('git', words, { encoding: 'utf8' }).stdout?.trim() ?? ''
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', ':!docs/campaigns.jsonl')
  return `${git('rev-parse', '--short', 'HEAD')}${changed === '' ? '' : '+'}`
}
