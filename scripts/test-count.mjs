/**
 * Prints a summary of JSON reports of vitest: failures, unsteady tests, the slowest files, and
 * `N passed, N failed`. A test is unsteady if its second attempt passed (`--retry`), which suffices in
 * folders whose tests use real processes, disks and networks. Exits with 1 if a test failed, a report is
 * missing, or a report has no tests.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const SLOWEST = 10
const mayRepeat = /^test\/(cluster|faults|attacks|e2e)\//

process.exitCode = summary(process.argv.slice(2).flatMap(readReport)) ? 0 : 1

/** The files of a report: path, seconds, counts, names of unsteady tests, and failures with messages. */
function readReport(path) {
  const failed = { name: path, status: 'failed', startTime: 0, endTime: 0, assertionResults: [] }
  try {
    const { numPassedTests, testResults } = JSON.parse(readFileSync(path, 'utf8'))
    if (numPassedTests === 0) testResults.push({ ...failed, message: 'The report has no passed test' })
    return testResults.map(fileOf)
  } catch (error) {
    return [fileOf({ ...failed, message: `No report: ${error.message}` })]
  }
}

function fileOf({ name, status, message, startTime, endTime, assertionResults }) {
  const path = relative(process.cwd(), name)
  const hasPassed = ({ status: ended, failureMessages }) =>
    ended === 'passed' && (failureMessages.length === 0 || mayRepeat.test(path))
  const passed = assertionResults.filter(hasPassed)
  const failures = assertionResults
    .filter((test) => /^(passed|failed)$/.test(test.status) && !hasPassed(test))
    .map(({ fullName, failureMessages }) => ({ test: fullName, message: failureMessages.join('\n') }))
  // A file that did not load, or whose hooks failed, has no failed test.
  if (failures.length === 0 && status === 'failed')
    failures.push({ test: 'did not load', message: message ?? '' })
  return {
    path,
    secs: (endTime - startTime) / 1_000,
    passed: passed.length,
    skipped: assertionResults.filter((test) => !/^(passed|failed)$/.test(test.status)).length,
    unsteady: passed.filter((test) => test.failureMessages.length > 0),
    failures,
  }
}

/** Prints the summary. @returns whether every test passed, at the latest in its second attempt */
function summary(files) {
  for (const { path, failures } of files)
    for (const { test, message } of failures)
      console.log(`FAILED ${path}: ${test}\n${message.split(/\n\s+at /)[0]}\n`)
  for (const { path, secs } of files.toSorted((one, other) => other.secs - one.secs).slice(0, SLOWEST))
    console.log(`${secs.toFixed(0).padStart(5)} s  ${path}`)
  for (const { path, unsteady } of files)
    for (const { fullName } of unsteady) console.log(`unsteady: ${path}: ${fullName}`)
  const sum = (of) => files.reduce((total, file) => total + of(file), 0)
  const [passed, skipped] = [sum((file) => file.passed), sum((file) => file.skipped)]
  const failures = sum((file) => file.failures.length)
  console.log(`${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  return failures === 0 && passed > 0
}
