import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

const LOGS = 'node_modules/.cache/campaign'
/** How often a pass prints the last line of its log. */
const PROGRESS_MS = 60_000
/** The projects of vitest.config.ts that do not repeat tests with other settings. */
const projects = ['quick', 'slow', 'campaign'].map((name) => `--project=${name}`)

/**
 * Runs tests once with a seed.
 * @param {string[]} files prefixes of paths in `test`
 * @param {{seed: number, minutes: number | undefined, rounds: number | undefined}} options `minutes`: for tests
 * with a configurable duration
 * @returns {Promise<{numbers: Record<string, number>, failures: {file: string, test: string}[], log:
 * string}>} the counts of the tests (test/support/faults/rounds.ts), the failures, and the file with their
 * output
 */
export async function runPass(files, { seed, minutes, rounds }) {
  mkdirSync(LOGS, { recursive: true })
  const log = join(LOGS, `${seed}-${Date.now()}.log`)
  const folder = mkdtempSync(join(tmpdir(), 'strandfast-campaign-'))
  const [report, counts] = [join(folder, 'report.json'), join(folder, 'counts')]
  const output = openSync(log, 'w')
  const words = ['run', ...files.map((path) => `test/${path}`), ...projects]
  try {
    const child = spawn(
      process.execPath,
      [
        'node_modules/vitest/vitest.mjs',
        ...words,
        '--reporter=default',
        '--reporter=json',
        `--outputFile=${report}`,
      ],
      {
        stdio: ['ignore', output, output],
        env: {
          ...process.env,
          STRANDFAST_SEED: String(seed),
          STRANDFAST_COUNTS: counts,
          ...(minutes !== undefined && { STRANDFAST_MINUTES: String(minutes) }),
          ...(rounds !== undefined && { STRANDFAST_ROUNDS: String(rounds) }),
        },
      },
    )
    const progress = setInterval(() => console.log(`  ${lastLine(log)}`), PROGRESS_MS)
    const [code] = await once(child, 'exit')
    clearInterval(progress)
    const failures = existsSync(report)
      ? failuresOf(JSON.parse(readFileSync(report, 'utf8')), { files, code })
      : [{ file: files.join(' '), test: 'left no report' }]
    const lines = existsSync(counts) ? readFileSync(counts, 'utf8').trimEnd().split('\n') : []
    return { numbers: sumOf(lines.map((line) => JSON.parse(line))), failures, log }
  } finally {
    closeSync(output)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The last line of the tests' output, without colours. */
function lastLine(path) {
  const text = stripVTControlCharacters(readFileSync(path, 'utf8'))
  return text.trimEnd().split('\n').at(-1)?.slice(0, 160)
}

/**
 * The failed tests of a report. A file that did not load, or whose hooks failed, is one failure. So is an error
 * outside of the tests, which the report omits but the exit code shows.
 */
export function failuresOf({ testResults }, { files, code }) {
  const failures = testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(process.cwd(), name)
    const failed = assertionResults.filter((test) => test.status === 'failed')
    if (failed.length > 0) return failed.map(({ fullName }) => ({ file, test: fullName }))
    return status === 'failed' ? [{ file, test: message || 'did not load' }] : []
  })
  if (failures.length > 0 || code === 0) return failures
  return [{ file: files.join(' '), test: 'an error outside of the tests' }]
}

function sumOf(counts) {
  const sum = {}
  for (const count of counts)
    for (const [name, value] of Object.entries(count)) sum[name] = (sum[name] ?? 0) + value
  return sum
}
