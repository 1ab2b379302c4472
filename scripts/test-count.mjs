/**
 * Prints a summary of JSON reports of vitest: failures, unsteady tests, the slowest files, and
 * `N passed, N failed`. A test is unsteady if it failed in one report and passed in `--again REPORT`, a
 * second run of its file. Exits with 1 if a test failed, a report is missing, or a report has no tests.
 * `--to-repeat` only prints the files to run again: the failed ones, if all of them are in folders whose
 * tests use real processes, disks and networks.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { parseArgs } from 'node:util'

const SLOWEST = 10
const mayRepeat = /^test\/(cluster|faults|attacks|e2e)\//

const { values, positionals } = parseArgs({
  options: { again: { type: 'string', multiple: true, default: [] }, 'to-repeat': { type: 'boolean' } },
  allowPositionals: true,
})
const reports = positionals.map(readReport)
const files = reports.flat()
const failed = files.filter(({ failures }) => failures.length > 0)

if (values['to-repeat']) {
  const paths = [...new Set(failed.map(({ path }) => path))]
  if (paths.every((path) => mayRepeat.test(path))) for (const path of paths) console.log(path)
} else process.exitCode = summary(values.again.flatMap(readReport)) ? 0 : 1

/** The files of a report: path, seconds, counts of passed and skipped tests, and failures with messages. */
function readReport(path) {
  let report
  try {
    report = JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return [{ path, secs: 0, passed: 0, skipped: 0, failures: [{ test: 'left no report', message: '' }] }]
  }
  if (report.numPassedTests === 0)
    report.testResults.push({ name: path, status: 'failed', message: 'ran no test', assertionResults: [] })
  return report.testResults.map(fileOf)
}

function fileOf({ name, status, message, startTime, endTime, assertionResults }) {
  const count = (...wanted) => assertionResults.filter((test) => wanted.includes(test.status)).length
  const failures = assertionResults
    .filter((test) => test.status === 'failed')
    .map(({ fullName, failureMessages }) => ({ test: fullName, message: failureMessages.join('\n') }))
  // A file that did not load, or whose hooks failed, has no failed test.
  if (failures.length === 0 && status === 'failed')
    failures.push({ test: 'did not load', message: message ?? '' })
  return {
    path: relative(process.cwd(), name),
    secs: (endTime - startTime) / 1_000,
    passed: count('passed'),
    skipped: count('skipped', 'pending', 'todo', 'disabled'),
    failures,
  }
}

/** Prints the summary. @returns whether every test passed, at the latest in its second run */
function summary(again) {
  // A report can contain a file several times, once per setting.
  const second = (path) => {
    const runs = again.filter((file) => file.path === path)
    return runs.every((file) => file.failures.length === 0) ? runs[0] : undefined
  }
  const final = files.map((file) => (file.failures.length === 0 ? file : (second(file.path) ?? file)))
  for (const { path, failures } of final)
    for (const { test, message } of failures)
      console.log(`FAILED ${path}: ${test}\n${message.split(/\n\s+at /)[0]}\n`)
  for (const { path, secs } of files.toSorted((one, other) => other.secs - one.secs).slice(0, SLOWEST))
    console.log(`${secs.toFixed(0).padStart(5)} s  ${path}`)
  for (const { path, failures } of failed.filter(({ path }) => second(path) !== undefined))
    for (const { test } of failures) console.log(`unsteady: ${path}: ${test}`)
  const sum = (of) => final.reduce((total, file) => total + of(file), 0)
  const [passed, skipped] = [sum((file) => file.passed), sum((file) => file.skipped)]
  const failures = sum((file) => file.failures.length)
  console.log(`${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  return failures === 0 && passed > 0
}
