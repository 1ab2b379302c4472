/**
 * Prints `N passed, N failed` (and `, N skipped` when there are any) from the JSON report of vitest that is named on
 * the command line. Ends 1 when anything failed or nothing ran.
 */
import { readFileSync } from 'node:fs'

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    console.error('The tests left no report')
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] }
  }
}

const report = readReport(process.argv[2])
// A file that fails to load has no test to count; it counts as one itself.
const unloaded = report.testResults.filter(
  (file) => file.status === 'failed' && file.assertionResults.length === 0,
)
const failed = report.numFailedTests + unloaded.length
const skipped = report.numPendingTests + report.numTodoTests
console.log(`${report.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed === 0 && report.numPassedTests > 0 ? 0 : 1
