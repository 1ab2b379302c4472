import { appendFileSync } from 'node:fs'
import { rounded } from './statistics.mjs'

/**
 * One measured figure.
 * @typedef {object} Measured
 * @property {string} name
 * @property {number} value
 * @property {string} unit
 * @property {number} [ceiling] in the same unit
 * @property {number} [ratio] value divided by ceiling, median of rounds
 * @property {{ratio: number} | {below: number} | {value: number}} [target] at least this ratio or value, or a
 * value below
 * @property {boolean} [judged] false if this run cannot show whether the target is met, because the machine
 * was too noisy
 * @property {Record<string, unknown>} [also] other figures, such as latencies
 */

/**
 * A figure that could not be measured.
 * @typedef {object} NotMeasured
 * @property {string} name
 * @property {string} notMeasured why
 */

/**
 * Whether a figure meets its target; null if it has none, or the run cannot show it.
 * @param {Measured} measured
 * @returns {boolean | null}
 */
export function isMet({ value, ratio, target, judged }) {
  if (target === undefined || judged === false) return null
  if ('below' in target) return value < target.below
  return 'ratio' in target ? ratio !== undefined && ratio >= target.ratio : value >= target.value
}

/**
 * A rounded figure for the line of results, with whether it meets its target.
 * @param {Measured} measured
 */
export function resultOf(measured) {
  const { name, value, unit, ceiling, ratio, target, also } = measured
  return {
    name,
    value: rounded(value),
    unit,
    ceiling: ceiling === undefined ? null : rounded(ceiling),
    ratio: ratio === undefined ? null : rounded(ratio),
    target: target ?? null,
    met: isMet(measured),
    ...also,
  }
}

/**
 * The file that a run is appended to. A run of another checkout's build is stored only if the arguments name
 * a file, because the performance page is generated from the usual file and shows this checkout.
 * @param {{product?: string, results?: string}} plan
 * @param {string} usual
 * @returns {string | undefined} undefined when it is not stored
 */
export function resultsFileOf({ product, results }, usual) {
  return results ?? (product === undefined ? usual : undefined)
}

/**
 * Appends one run as one JSON line.
 * @param {string} file
 * @param {object} line
 */
export function appendResult(file, line) {
  appendFileSync(file, `${JSON.stringify(line)}\n`)
}

/**
 * The run as a table for a terminal.
 * @param {ReturnType<typeof resultOf>[]} results
 * @returns {string}
 */
export function table(results) {
  const rows = results.map(({ name, value, unit, ceiling, ratio, target, met }) => [
    name,
    `${value.toLocaleString('en')} ${unit}`,
    ceiling === null ? '' : ceiling.toLocaleString('en'),
    ratio === null ? '' : ratio.toFixed(3),
    describeTarget(target),
    met === null ? '' : met ? 'met' : 'MISSED',
  ])
  return aligned([['scenario', 'measured', 'ceiling', 'ratio', 'target', ''], ...rows])
}

/**
 * The figures that were not measured, for a terminal.
 * @param {NotMeasured[]} figures
 * @returns {string}
 */
export function notMeasuredLines(figures) {
  return figures.map(({ name, notMeasured }) => `${name}: not measured: ${notMeasured}\n`).join('')
}

/**
 * One workload of a comparison as a table for a terminal.
 * @param {{title: string, unit: string, contenders: object[], targets: object[]}} workload
 * @returns {string}
 */
export function peersTable({ title, unit, contenders, targets }) {
  const ms = (value) => (value === null ? '' : `${value} ms`)
  const rows = contenders.map(({ name, value, ratio, p50_ms, p99_ms }) => [
    name,
    value.toLocaleString('en'),
    ratio === null ? '' : ratio.toFixed(2),
    ms(p50_ms),
    ms(p99_ms),
  ])
  const held = targets.map(
    ({ ours, peer, ratio, target, met }) =>
      `${ours} by ${peer}: ${ratio.toFixed(2)}, target ${target}, ${met ? 'met' : 'MISSED'}\n`,
  )
  return aligned([[title, unit, 'of ours', 'p50', 'p99'], ...rows]) + held.join('')
}

/** Lines of cells in columns. Figures are aligned to the right, words to the left. */
function aligned(all) {
  const widths = all[0].map((_, column) => Math.max(...all.map((row) => row[column].length)))
  const line = (row) => row.map((cell, column) => pad(cell, widths[column], column)).join('  ')
  return all.map((row) => `${line(row).trimEnd()}\n`).join('')
}

function pad(cell, width, column) {
  return column >= 1 && column <= 3 ? cell.padStart(width) : cell.padEnd(width)
}

function describeTarget(target) {
  if (target === null) return ''
  if ('below' in target) return `< ${target.below.toLocaleString('en')}`
  return 'ratio' in target ? `ratio >= ${target.ratio}` : `>= ${target.value.toLocaleString('en')}`
}
