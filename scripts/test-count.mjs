/**
 * Prints what failed, each with beginning and end of its message where that is long, and then `N passed, N failed` (and
 * `, N skipped` when there are any), summed over the JSON reports of vitest that are named on the command line. Ends 1 when
 * anything failed, or when nothing ran of one of them.
 */
import { readFileSync } from 'node:fs'

/** Characters of all failures together: of a run of CI about the last 5,000 bytes are kept. */
const TOLD_MAX = 4_200

/** Characters of one failure at least. Those of which not even that much fits are only counted. */
const FAILURE_MIN = 300

/** Characters of a line: what keeps the output folds those of more than a thousand. */
const LINE_MAX = 900

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    console.error(`The tests left no report: ${path}`)
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] }
  }
}

function countOf(report) {
  // A file that fails to load, or whose hooks fail, has no failed test to count; it counts as one itself.
  const broken = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
  )
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}

/** What failed in a report: a text for each. A long output is read from its end, so they stand there once more. */
function failuresOf(report) {
  return report.testResults.flatMap((file) => {
    const failed = file.assertionResults.filter(({ status }) => status === 'failed')
    const texts = failed.map((test) => `${test.fullName}\n${messageOf(test)}`)
    if (texts.length === 0 && file.status === 'failed') texts.push(file.message ?? 'could not be loaded')
    return texts.map((text) => `FAILED ${file.name}: ${withoutStack(text)}`)
  })
}

/** Of a test that ran out of time a report has a stack without the message. */
function messageOf({ failureMessages, duration }) {
  const told = failureMessages.join('\n')
  return told.replace('STACK_TRACE_ERROR', `ran out of time after ${Math.round(duration / 1_000)} s`)
}

function withoutStack(text) {
  return text.split(/\n\s+at /)[0]
}

/** Without the middle: what was expected stands at the end. */
function shortened(text, charactersMax) {
  if (text.length <= charactersMax) return text
  const half = Math.floor(charactersMax / 2)
  return `${text.slice(0, half)}\n…\n${text.slice(-half)}`
}

/** In lines that are not folded. */
function wrapped(text) {
  return text.replaceAll(new RegExp(`.{${LINE_MAX}}(?=.)`, 'g'), '$&\n')
}

const reports = process.argv.slice(2).map(readReport)
const failures = reports.flatMap(failuresOf)
const told = failures.slice(0, Math.floor(TOLD_MAX / FAILURE_MIN))
for (const failure of told) console.log(`${wrapped(shortened(failure, TOLD_MAX / told.length))}\n`)
if (failures.length > told.length) console.log(`FAILED ${failures.length - told.length} more\n`)
const counts = reports.map(countOf)
const sum = (name) => counts.reduce((total, count) => total + count[name], 0)
const [passed, failed, skipped] = [sum('passed'), sum('failed'), sum('skipped')]
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
const allRan = counts.length > 0 && counts.every((count) => count.passed > 0)
process.exitCode = failed === 0 && allRan ? 0 : 1
