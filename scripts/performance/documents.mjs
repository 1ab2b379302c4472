import { existsSync, readFileSync } from 'node:fs'
import { workloads as allWorkloads } from '../../bench/peers/workloads.mjs'
import { median, rounded } from '../../bench/statistics.mjs'
import { table } from '../markdown-table.mjs'
import { barChart } from './charts.mjs'
import { newestParts } from './runs.mjs'

const PAGE = 'docs/PERFORMANCE.md'
const README = 'README.md'
const PLOTS = 'docs/performance'
const NO_RUN = 'No run is recorded yet.'

/**
 * The parts of the performance pages that are generated from recorded runs: the text between their markers,
 * and the charts.
 * @param {{page: string, readme: string, peers: string, results: string}} texts the two pages, and
 * bench/peers.jsonl and bench/results.jsonl
 * @returns {[path: string, text: string][]}
 * @throws {Error} if a page lacks a marker
 */
export function performanceDocuments({ page, readme, peers, results }) {
  const workloads = newestParts(peers, {
    partsOf: (run) => run.workloads,
    groupOf: ({ id }) => id,
    nameOf: ({ id }) => id,
  })
  const order = allWorkloads.map(({ id }) => id)
  workloads.sort((one, other) => order.indexOf(one.part.id) - order.indexOf(other.part.id))
  const figures = newestParts(results, {
    partsOf: ({ scenarios }) => scenarios,
    groupOf: ({ scenario, name }) => scenario ?? name,
    nameOf: ({ name }) => name,
  })
  const comparison = comparisonOf(workloads)
  const isCurve = ({ part }) => part.curve !== undefined
  const growth = growthOf(figures.filter(isCurve))
  const ceilings = ceilingsOf(figures.filter((figure) => !isCurve(figure)))
  return [
    [PAGE, filled(PAGE, page, { peers: comparison.text, growth: growth.text, ceilings: ceilings.text })],
    [README, filled(README, readme, { peers: shortComparison(workloads) })],
    ...comparison.plots,
    ...growth.plots,
    ...ceilings.plots,
  ]
}

/** The same for the files of the repository; empty without a page. */
export function recordedPerformanceDocuments() {
  if (!existsSync(PAGE)) return []
  const read = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  return performanceDocuments({
    page: read(PAGE),
    readme: read(README),
    peers: read('bench/peers.jsonl'),
    results: read('bench/results.jsonl'),
  })
}

function filled(path, page, parts) {
  return Object.entries(parts).reduce((text, [name, part]) => between(path, text, [name, part]), page)
}

function between(path, page, [name, part]) {
  const markers = [`<!-- made from runs: ${name} -->`, `<!-- end: ${name} -->`]
  const [from, to] = markers.map((marker) => page.indexOf(marker))
  if (from < 0 || to < from) throw new Error(`${path} lacks the markers of ${name}`)
  return `${page.slice(0, from)}${markers[0]}\n\n${part}\n\n${page.slice(to)}`
}

/** Where and when figures were measured: a sentence, or a list with one line per run. */
function recordedText(recorded, { textOf, nameOf }) {
  const byRun = new Map()
  for (const { run, part } of recorded) byRun.set(run, [...(byRun.get(run) ?? []), nameOf(part)])
  if (byRun.size === 1) return textOf(recorded[0].run)
  return [...byRun].map(([run, names]) => `- ${textOf(run)} Its figures: ${names.join('; ')}.`).join('\n')
}

function comparisonOf(recorded) {
  if (recorded.length === 0) return { text: NO_RUN, plots: [] }
  const workloads = recorded.map(({ part }) => part)
  const parts = workloads.map((workload) => {
    const { id, title, unit, contenders } = workload
    const plot = `![${title}, ${unit}](performance/${id}.svg)`
    const held = heldText(workload)
    return [`### ${title}`, plot, comparisonTable(workload), ...held, notes(contenders)].join('\n\n')
  })
  const plots = workloads.map(({ id, title, unit, contenders }) => [
    `${PLOTS}/${id}.svg`,
    barChart({ title, subtitle: unit, bars: contenders.map(barOf) }),
  ])
  const head = recordedText(recorded, { textOf: comparisonRunText, nameOf: ({ title }) => title })
  return { text: [head, ...parts].join('\n\n'), plots }
}

function comparisonRunText(run) {
  const versions = Object.entries(run.versions).map(([name, version]) => `${name} ${version}`)
  const absent = run.skipped.map(({ name, detail }) => `${name} was left out (${detail}).`)
  const faulty = new Set(run.faults.map(({ name }) => name))
  const failed = [...faulty].map((name) => `${name} failed in this run and is incomplete.`)
  const how = `${machineOf(run)}, medians of ${run.rounds} rounds of ${run.seconds} s.`
  return [how, ...(versions.length > 0 ? [`${versions.join(', ')}.`] : []), ...absent, ...failed].join(' ')
}

/** The results of the targets of a workload, if it has any. */
function heldText({ targets = [] }) {
  const line = ({ ours, peer, ratio, target, met }) =>
    `**${ours}** divided by ${peer}: ${ratio}, target ${target}: ${met ? 'met' : '**missed**'}.`
  return targets.length === 0 ? [] : [targets.map(line).join(' ')]
}

/**
 * The workloads with targets in one table: how many times as fast Strandfast is as each product that a target
 * names. Those that make the same promise come first.
 */
function shortComparison(recorded) {
  const held = recorded.filter(({ part: { targets = [] } }) => targets.length > 0)
  if (held.length === 0) return NO_RUN
  const workloads = held.map(({ part }) => part)
  const named = new Set(workloads.flatMap(({ targets }) => targets.map(({ peer }) => peer)))
  const compared = new Map(
    workloads.flatMap(({ contenders }) =>
      contenders.filter(({ name }) => named.has(name)).map(({ name, role }) => [name, role]),
    ),
  )
  const names = [...compared.keys()].sort((a, b) => rank(compared.get(a)) - rank(compared.get(b)))
  const rows = names.map((name) => [name, ...workloads.map((workload) => timesAsFast(workload, name))])
  const days = [...new Set(held.map(({ run }) => run.at.slice(0, 10)))].sort()
  const places = [...new Set(held.map(({ run }) => placeOf(run)))]
  const head = `Recorded on ${days.join(' and ')}; ${places.join('; ')}.`
  const columns = workloads.map(({ title }) => title.replace('Single durable writes, ', ''))
  return `${head}\n\n${table(['', ...columns], rows)}`
}

const rank = (role) => (role === 'same' ? 0 : 1)

/** The median of the rounds' ratios; empty where the workload does not have the contender. */
function timesAsFast({ contenders, targets }, name) {
  const roundsOf = (one) => contenders.find((contender) => contender.name === one)?.rounds
  const [own, other] = [targets[0].ours, name].map(roundsOf)
  if (own === undefined || other === undefined) return ''
  return String(rounded(median(own.map((value, round) => value / other[round]))))
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

/** The notes of the contenders, one line per distinct note. */
function notes(contenders) {
  const byNote = new Map()
  for (const { name, note } of contenders) byNote.set(note, [...(byNote.get(note) ?? []), name])
  return [...byNote].map(([note, names]) => `- ${names.join('; ')}: ${note}.`).join('\n')
}

/** The curves of a growing store: each at all sizes, and how many times the first value the last one is. */
function growthOf(recorded) {
  if (recorded.length === 0) return { text: NO_RUN, plots: [] }
  const curves = recorded.map(({ part }) => part)
  const { sizes } = curves[0]
  const rows = curves.map(({ name, curve, target, met }) => [
    name,
    ...curve.map(number),
    `${number(target.below)}${met ? '' : ', **missed**'}`,
  ])
  const columns = ['ms', ...sizes.map((size) => `${number(size)} records`), 'bound']
  const bars = curves.map(({ name, curve, target }) => {
    const times = rounded(curve.at(-1) / curve[0])
    return { name, role: 'ours', value: times, label: String(times), target: target.below / curve[0] }
  })
  const title = `${number(sizes.at(-1))} records against ${number(sizes[0])}`
  const subtitle = 'times as long; the line is the bound'
  const head = recordedText(recorded, { textOf: (run) => `${machineOf(run)}.`, nameOf: ({ name }) => name })
  return {
    text: [head, `![${title}](performance/growth.svg)`, table(columns, rows)].join('\n\n'),
    plots: [[`${PLOTS}/growth.svg`, barChart({ title, subtitle, bars })]],
  }
}

function ceilingsOf(recorded) {
  if (recorded.length === 0) return { text: NO_RUN, plots: [] }
  const figures = recorded.map(({ part }) => part)
  const when = recordedWhen(recorded)
  const items = recorded.map(({ run, part }) => `- ${figureText(part)}${when.noteOf(run)}.`)
  const aimed = figures.filter(({ ratio, target }) => ratio !== null && target?.ratio !== undefined)
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
  const plotLink = `![${title}](performance/ceilings.svg)`
  const text = [when.sentence, plotLink, items.join('\n')].join('\n\n')
  return { text, plots: [plot] }
}

/** The result of a scenario. A list item, because names are long. */
function figureText({ name, value, unit, ceiling, ratio, target, met }) {
  const verdict = met === null ? '' : `, ${met ? 'met' : '**missed**'}`
  const parts = [
    `${number(value)} ${unit}`,
    ...(ceiling === null ? [] : [`${ratio} of the ceiling, ${number(ceiling)}`]),
    ...(target === null ? [] : [`target: ${targetText(target)}${verdict}`]),
  ]
  return `**${name}**: ${parts.join('; ')}`
}

/** When and where figures were measured: a sentence, and a note for each figure if there are several runs. */
function recordedWhen(recorded) {
  const runs = new Set(recorded.map(({ run }) => run))
  if (runs.size === 1) {
    const [run] = runs
    return { sentence: `${machineOf(run)}.`, noteOf: () => '' }
  }
  const machines = new Set([...runs].map(placeOf))
  return {
    sentence: `Recorded on ${[...machines].join('; and on ')}.`,
    noteOf: ({ at, commit }) => ` (${at.slice(0, 10)}${commit === null ? '' : `, ${commit}`})`,
  }
}

function targetText(target) {
  if (target.below !== undefined) return `below ${number(target.below)}`
  return target.ratio === undefined ? `at least ${number(target.value)}` : `ratio ${target.ratio}`
}

function machineOf(run) {
  const version = run.commit === null ? '' : `, commit ${run.commit}`
  return `Recorded ${run.at.slice(0, 10)} on ${placeOf(run)}${version}`
}

function placeOf({ node, cpu, cores, generator }) {
  return `${cores} cores (${cpu}), Node ${node.slice(1)}, load by ${generator}`
}

const number = (value) => value.toLocaleString('en', { maximumFractionDigits: 3 })
