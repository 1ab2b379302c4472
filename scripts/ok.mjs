/**
 * The gate: runs all checks, two in parallel, continues after a failure, and exits with 1 and the names of
 * failed checks. `--no-tests` skips the tests, including house rules, for a caller that runs them itself.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

const LANES = 2

/** [name, npm script], the longest first. */
const checks = [
  ['types', ['types']],
  ['dead code', ['dead']],
  ['package', ['package']],
  ['format', ['format']],
  ['lint', ['lint']],
  ['generated documents', ['generate', '--', '--check']],
]

/** Runs one npm script; its output is shown only when it fails. @returns whether it passed */
async function passes([name, script]) {
  const startedMs = performance.now()
  const child = spawn('npm', ['run', '--silent', ...script], {
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  })
  const ended = once(child, 'close').catch((error) => [error.message])
  const [[code], stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  const secs = ((performance.now() - startedMs) / 1000).toFixed(1)
  console.log(`${name.padEnd(20)} ${secs.padStart(6)} s  ${code === 0 ? 'ok' : 'FAILED'}`)
  if (code !== 0) console.log(`${typeof code === 'string' ? code : ''}${stdout}${stderr}`)
  return code === 0
}

const failed = []
async function run(step) {
  if (!(await passes(step))) failed.push(step[0])
}

// The build comes first, because tests of threads, the check of packages and the documents read dist.
await run(['build', ['build']])
const next = checks.values()
await Promise.all(
  Array.from({ length: LANES }, async () => {
    for (const step of next) await run(step)
  }),
)
if (!process.argv.includes('--no-tests')) await run(['tests', ['test']])
console.log(failed.length === 0 ? 'All is well' : `Failed: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
