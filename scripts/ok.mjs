/**
 * The one gate: runs every check, continues after a failure, and ends non-zero with the names of those that failed.
 * `--no-tests` leaves out the test suite, for a caller that runs it itself.
 */
import { spawnSync } from 'node:child_process'

// `build` comes first: thread tests take their types from dist, and the package check and the documents read it.
const steps = [
  ['build', ['build']],
  ['format', ['format']],
  ['lint', ['lint']],
  ['types', ['types']],
  ['house rules', ['house']],
  ['dead code', ['dead']],
  ['package', ['package']],
  ['generated documents', ['generate', '--', '--check']],
]
if (!process.argv.includes('--no-tests')) steps.push(['tests', ['test']])

/** Runs one npm script; its output is shown only when it fails. */
function run([name, script]) {
  const startedMs = performance.now()
  const { status, error, stdout, stderr } = spawnSync('npm', ['run', '--silent', ...script], {
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    shell: process.platform === 'win32',
  })
  const secs = ((performance.now() - startedMs) / 1000).toFixed(1)
  const passed = status === 0
  console.log(`${name.padEnd(20)} ${secs.padStart(6)} s  ${passed ? 'ok' : 'FAILED'}`)
  if (!passed) console.log(`${error?.message ?? ''}${stdout}${stderr}`)
  return passed
}

const failed = steps.filter((step) => !run(step)).map(([name]) => name)
console.log(failed.length === 0 ? 'All is well' : `Failed: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
