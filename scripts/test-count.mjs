/**
 * Prints what failed, with beginning and end of each message, and then `N passed, N failed` (and `, N skipped` when there
 * are any), summed over the JSON reports of vitest that are named on the command line. Ends 1 when anything failed, or
 * when nothing ran of one of them.
 */
import { readFileSync } from 'node:fs'

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
    return texts.map((text) => `${file.name}: ${shortened(text)}`)
  })
}

/** Of a test that ran out of time a report has a stack without the message. */
function messageOf({ failureMessages, duration }) {
  const told = failureMessages.join('\n')
  return told.replace('STACK_TRACE_ERROR', `ran out of time after ${Math.round(duration / 1_000)} s`)
}

/** Without the stack, and without the middle: what was expected stands at the end. */
function shortened(text) {
  const message = text.split(/\n\s+at /)[0]
  return message.length <= 1_200 ? message : `${message.slice(0, 600)}\n…\n${message.slice(-600)}`
}

const reports = process.argv.slice(2).map(readReport)
for (const failure of reports.flatMap(failuresOf).slice(0, 20)) console.log(`FAILED ${failure}\n`)
const counts = reports.map(countOf)
const sum = (name) => counts.reduce((total, count) => total + count[name], 0)
const [passed, failed, skipped] = [sum('passed'), sum('failed'), sum('skipped')]
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
const allRan = counts.length > 0 && counts.every((count) => count.passed > 0)
process.exitCode = failed === 0 && allRan ? 0 : 1
