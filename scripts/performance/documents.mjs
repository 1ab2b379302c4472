import { existsSync, readFileSync } from 'node:fs'
import { barChart } from './charts.mjs'
import { newestWholeRun } from './runs.mjs'

const PAGE = 'docs/PERFORMANCE.md'
const PLOTS = 'docs/performance'
const NO_RUN = 'No run is recorded yet.'

/**
 * What of the page on performance is made from recorded runs: the parts between its marks, and the plots.
 * @param {{page: string, peers: string, results: string}} texts the page, and bench/peers.jsonl and bench/results.jsonl
 * @returns {[path: string, text: string][]}
 * @throws {Error} when the page lacks a mark
 */
export function performanceDocuments({ page, peers, results }) {
  const comparison = comparisonOf(newestWholeRun(peers, ({ workloads }) => workloads))
  const ceilings = ceilingsOf(newestWholeRun(results, ({ scenarios }) => scenarios))
  const parts = { peers: comparison.text, ceilings: ceilings.text }
  const whole = Object.entries(parts).reduce((text, [name, part]) => between(text, name, part), page)
  return [[PAGE, whole], ...comparison.plots, ...ceilings.plots]
}

/** The same, of the files of the repository; nothing where there is no page. */
export function recordedPerformanceDocuments() {
  if (!existsSync(PAGE)) return []
  const read = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  return performanceDocuments({
    page: read(PAGE),
    peers: read('bench/peers.jsonl'),
    results: read('bench/results.jsonl'),
  })
}

function between(page, name, part) {
  const marks = [`<!-- made from runs: ${name} -->`, `<!-- end: ${name} -->`]
  const [from, to] = marks.map((mark) => page.indexOf(mark))
  if (from < 0 || to < from) throw new Error(`${PAGE} lacks the marks of ${name}`)
  return `${page.slice(0, from)}${marks[0]}\n\n${part}\n\n${page.slice(to)}`
}

function comparisonOf(run) {
  if (run === undefined) return { text: NO_RUN, plots: [] }
  const versions = Object.entries(run.versions).map(([name, version]) => `${name} ${version}`)
  const absent = run.skipped.map(({ name, detail }) => `${name} was left out (${detail}).`)
  const faulty = new Set(run.faults.map(({ name }) => name))
  const failed = [...faulty].map((name) => `${name} failed in this run and is incomplete.`)
  const head = [
    `${machineOf(run)}, medians of ${run.rounds} rounds of ${run.seconds} s. ${versions.join(', ')}.`,
    ...absent,
    ...failed,
  ]
  const parts = run.workloads.map((workload) => {
    const { id, title, unit, contenders } = workload
    return `### ${title}\n\n![${title}, ${unit}](performance/${id}.svg)\n\n${comparisonTable(workload)}\n\n${notes(contenders)}`
  })
  const plots = run.workloads.map(({ id, title, unit, contenders }) => [
    `${PLOTS}/${id}.svg`,
    barChart({ title, subtitle: unit, bars: contenders.map(barOf) }),
  ])
  return { text: [head.join(' '), ...parts].join('\n\n'), plots }
}

function barOf({ name, role, value }) {
  return { name, role, value, label: number(value) }
}

function comparisonTable({ unit, contenders }) {
  const ms = (value) => (value === null ? '' : `${value} ms`)
  const rows = contenders.map(({ name, role, value, ratio, p50_ms, p99_ms }) => [
    role === 'ours' ? `**${name}**` : name,
    number(value),
    ratio === null ? '' : ratio.toFixed(2),
    ms(p50_ms),
    ms(p99_ms),
  ])
  return table(['', unit, 'of Strandfast', 'p50', 'p99'], rows)
}

/** What each is asked and does not do; one line where several say the same. */
function notes(contenders) {
  const byNote = new Map()
  for (const { name, note } of contenders) byNote.set(note, [...(byNote.get(note) ?? []), name])
  return [...byNote].map(([note, names]) => `- ${names.join('; ')}: ${note}.`).join('\n')
}

function ceilingsOf(run) {
  if (run === undefined) return { text: NO_RUN, plots: [] }
  const rows = run.scenarios.map(({ name, value, unit, ceiling, ratio, target, met }) => [
    name,
    `${number(value)} ${unit}`,
    ceiling === null ? '' : number(ceiling),
    ratio === null ? '' : String(ratio),
    targetText(target),
    met === null ? '' : met ? 'met' : '**missed**',
  ])
  const aimed = run.scenarios.filter(({ ratio, target }) => ratio !== null && target?.ratio !== undefined)
  const bars = aimed.map(({ name, ratio, target }) => ({
    name,
    role: 'ours',
    value: ratio,
    label: String(ratio),
    target: target.ratio,
  }))
  const title = 'Share of the ceiling that was reached'
  const plot = [
    `${PLOTS}/ceilings.svg`,
    barChart({ title, subtitle: 'ratio to the ceiling; the line is the target', bars }),
  ]
  const heads = ['', 'measured', 'ceiling', 'ratio', 'target', '']
  const text = `${machineOf(run)}.\n\n![${title}](performance/ceilings.svg)\n\n${table(heads, rows)}`
  return { text, plots: [plot] }
}

function targetText(target) {
  if (target === null) return ''
  if (target.below !== undefined) return `below ${number(target.below)}`
  return target.ratio === undefined ? `at least ${number(target.value)}` : `ratio ${target.ratio}`
}

function machineOf({ at, commit, node, cpu, cores, generator }) {
  const version = commit === null ? '' : `, commit ${commit}`
  return `Recorded ${at.slice(0, 10)} on ${cores} cores (${cpu}), Node ${node.slice(1)}, load by ${generator}${version}`
}

const number = (value) => value.toLocaleString('en', { maximumFractionDigits: 3 })

/** A table whose columns are as wide as their widest cell, as the formatter of the documents would have it. */
function table(heads, rows) {
  const all = [heads, ...rows]
  const widths = heads.map((_, column) => Math.max(3, ...all.map((row) => row[column].length)))
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [line(heads), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rows.map(line)].join(
    '\n',
  )
}
