import { CardTable } from '../parts/card-table.js'
import { Empty, Failure, Loading } from '../parts/texts.js'
import { canReadServer, type SignedIn } from '../parts/session.js'
import { type Figure, figures } from './figures.js'
import { type MetricsReading, READ_INTERVAL_MS, RETENTION_MS, useMetrics } from '../parts/metrics.js'
import { useEffect, useRef, useState } from 'preact/hooks'
import { clockText } from '../parts/format.js'
import { appearance } from '../shell/appearance.js'
import uPlot from 'uplot'

/** The metrics of the server over the last five minutes. */
export function HealthPage({ session }: { session: SignedIn }) {
  return (
    <div class="page">
      <h1>Health</h1>
      <p class="lead">
        The server’s metrics of the last five minutes, read every two seconds while this page is visible.
        Prometheus reads the same metrics at <code>/metrics</code>.
      </p>
      {canReadServer(session.who) ? (
        <Health session={session} />
      ) : (
        <Empty title="This key cannot read the metrics">
          Sign in with the root key, or with a key that has <code>admin:*</code> and is not limited to agents.
        </Empty>
      )}
    </div>
  )
}

function Health({ session: { service } }: { session: SignedIn }) {
  const watch = useMetrics(service)
  const readings = watch.readings.value
  const problem = watch.problem.value
  if (readings.length < 2 && problem === undefined) return <Loading what="the metrics" />
  const rows = figures.map((figure) => rowOf(figure, readings)).filter(({ labels }) => labels.length > 0)
  return (
    <>
      {problem !== undefined && <Failure message={`${problem}. The page retries every two seconds.`} />}
      <div class="plots">
        {rows.map(({ figure, points, labels }) => (
          <LinePlot key={figure.name} name={figure.name} points={points} labels={labels} text={figure.text} />
        ))}
      </div>
      <h2>Table</h2>
      <FigureTable rows={rows} />
    </>
  )
}

interface FigureRow {
  figure: Figure
  points: readonly Point[]
  labels: readonly string[]
}

function rowOf(figure: Figure, readings: readonly MetricsReading[]): FigureRow {
  const points = readings.flatMap((now, at) => {
    const before = readings[at - 1]
    return before === undefined ? [] : [{ atMs: now.atMs, values: figure.of(now, before) }]
  })
  const labels = [...new Set(points.flatMap(({ values }) => [...values.keys()]))]
  return { figure, points, labels }
}

function FigureTable({ rows }: { rows: readonly FigureRow[] }) {
  const lines = rows.flatMap(({ figure: { name, text }, points, labels }) =>
    labels.map((label) => {
      const values = points.flatMap((point) => point.values.get(label) ?? [])
      const now = points.at(-1)?.values.get(label)
      return { name: label === '' ? name : `${name}: ${label}`, text, values, now }
    }),
  )
  return (
    <CardTable
      name="Metrics of the last five minutes"
      rows={lines}
      keyOf={({ name }) => name}
      head={['Metric', ({ name }) => name]}
      numbers={['Now', 'Min', 'Mean', 'Max']}
      cells={{
        Now: ({ now, text }) => (now === undefined ? '–' : text(now)),
        Min: ({ values, text }) => text(Math.min(...values)),
        Mean: ({ values, text }) => text(values.reduce((sum, value) => sum + value, 0) / values.length),
        Max: ({ values, text }) => text(Math.max(...values)),
      }}
    />
  )
}

/** The last five minutes of a figure as a line chart, with the values at the pointer as text below it. */
function LinePlot(props: {
  name: string
  points: readonly Point[]
  labels: readonly string[]
  text: (value: number) => string
}) {
  const { name, points, labels, text } = props
  const container = useRef<HTMLDivElement>(null)
  const chart = useRef<LineChart>(undefined)
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const isDark = useSystemIsDark()
  // The canvas does not follow changes of the page's colours, so the chart is created again.
  const look = `${appearance.value} ${isDark} ${labels.join('\n')}`
  useEffect(() => {
    if (container.current === null) return undefined
    const created = new LineChart(container.current, { labels, text, onPoint: setPointed })
    created.show(points)
    chart.current = created
    return () => created.end()
  }, [look])
  useEffect(() => chart.current?.show(points), [points])
  const most = Math.max(0, ...points.flatMap(({ values }) => [...values.values()]))
  const selected = points.find(({ atMs }) => atMs === pointed)
  const shown = selected ?? points.at(-1)
  return (
    <figure class="plot line-plot">
      <figcaption>
        {name}{' '}
        <span class="muted">
          {selected === undefined ? `max ${text(most)}` : `at ${clockText(selected.atMs)}`}
        </span>
      </figcaption>
      <div ref={container} class="line-chart" role="img" aria-label={`${name} in the last five minutes`} />
      <ul class="plain plot-now">
        {labels.map((label, at) => {
          const value = shown?.values.get(label)
          return (
            <li key={label} class={labels.length > 1 ? `key-${at % LINE_STYLES}` : ''}>
              {label === '' ? '' : `${label}: `}
              {value === undefined ? '–' : text(value)}
            </li>
          )
        })}
      </ul>
    </figure>
  )
}

/** Whether the system prefers dark colours; updated on changes. */
function useSystemIsDark(): boolean {
  const query = matchMedia('(prefers-color-scheme: dark)')
  const [isDark, setDark] = useState(query.matches)
  useEffect(() => {
    const follow = (event: MediaQueryListEvent): void => setDark(event.matches)
    query.addEventListener('change', follow)
    return () => query.removeEventListener('change', follow)
  }, [])
  return isDark
}

/** The number of line styles. They differ in dashes as well as colours, for colour-blind users. */
const LINE_STYLES = 5

const HEIGHT = 130
const DASHES = [[], [6, 4], [2, 3], [10, 4], [10, 3, 2, 3]]
/** A larger distance between points means that the page was hidden; the line has a gap there. */
const GAP_MS = READ_INTERVAL_MS * 4

/** The values of a figure at one time, by label. */
interface Point {
  atMs: number
  values: ReadonlyMap<string, number>
}

/** The labels of the lines, and the handler of the pointer. */
interface LineLabels {
  labels: readonly string[]
  text: (value: number) => string
  /** Receives the time at the pointer; undefined if the pointer is outside. */
  onPoint: (atMs: number | undefined) => void
}

/**
 * A line chart of the last five minutes, drawn by uPlot, which never parses HTML and so complies with the
 * page's policy.
 */
class LineChart {
  readonly #plot: uPlot
  readonly #labels: readonly string[]
  readonly #resizing: ResizeObserver

  constructor(container: HTMLElement, shown: LineLabels) {
    this.#labels = shown.labels
    this.#plot = new uPlot(optionsOf(container, shown), [[], ...shown.labels.map(() => [])], container)
    this.#resizing = new ResizeObserver(() =>
      this.#plot.setSize({ width: container.clientWidth, height: HEIGHT }),
    )
    this.#resizing.observe(container)
  }

  show(points: readonly Point[]): void {
    const spaced = points.flatMap((point, at) => {
      const before = points[at - 1]
      const isGap = before !== undefined && point.atMs - before.atMs > GAP_MS
      return isGap ? [{ atMs: before.atMs + 1, values: new Map<string, number>() }, point] : [point]
    })
    const lines = this.#labels.map((label) => spaced.map(({ values }) => values.get(label) ?? null))
    this.#plot.setData([spaced.map(({ atMs }) => atMs), ...lines])
  }

  end(): void {
    this.#resizing.disconnect()
    this.#plot.destroy()
  }
}

function optionsOf(container: HTMLElement, { labels, text, onPoint }: LineLabels): uPlot.Options {
  const [soft, grid] = [colourOf(container, 'ink-axis'), colourOf(container, 'ink-grid')]
  const { fontFamily } = getComputedStyle(container)
  const axis: uPlot.Axis = { stroke: soft, font: `11px ${fontFamily}`, ticks: { show: false } }
  return {
    width: container.clientWidth,
    height: HEIGHT,
    ms: 1,
    padding: [8, 6, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: (_plot, _least, most) => [(most ?? 0) - RETENTION_MS, most ?? 0] },
      y: { range: (_plot, _least, most) => [0, most === null || most <= 0 ? 1 : most * 1.05] },
    },
    axes: [
      {
        ...axis,
        size: 22,
        space: 80,
        grid: { show: false },
        values: (_plot, moments) => moments.map(clockText),
      },
      {
        ...axis,
        size: 64,
        space: 36,
        grid: { stroke: grid, width: 1 },
        values: (_plot, values) => values.map(text),
      },
    ],
    series: [
      {},
      ...labels.map((label, at): uPlot.Series => ({
        label,
        stroke: colourOf(container, `ink-${at % LINE_STYLES}`),
        width: 1.5,
        dash: DASHES[at % LINE_STYLES] ?? [],
        // A single point would be invisible as a line.
        points: { show: (...range) => range[3] - range[2] < 3 },
      })),
    ],
    hooks: {
      setCursor: [
        ({ cursor, data }) => onPoint(typeof cursor.idx === 'number' ? data[0][cursor.idx] : undefined),
      ],
    },
  }
}

/** The current value of a colour, because a canvas supports neither CSS variables nor colour schemes. */
function colourOf(container: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.className = name
  container.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
