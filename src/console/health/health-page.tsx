import { CardTable } from '../parts/card-table.js'
import { Empty, Failure, Loading } from '../parts/texts.js'
import { seesServer, type SignedIn } from '../parts/session.js'
import { type Figure, figures } from './figures.js'
import type { Point } from './line-chart.js'
import { LinePlot } from './line-plot.js'
import type { MetricsReading } from '../parts/metrics.js'
import { useMetrics } from '../parts/metrics-watch.js'

/** How the server is doing: its metrics of the last five minutes. */
export function HealthPage({ session }: { session: SignedIn }) {
  return (
    <div class="page">
      <h1>Health</h1>
      <p class="lead">
        What the server measures, read every two seconds while this page is seen; the last five minutes are
        kept. Prometheus reads the same at <code>/metrics</code>.
      </p>
      {seesServer(session.who) ? (
        <Health session={session} />
      ) : (
        <Empty title="This key may not see how the server is doing">
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
  if (readings.length < 2 && problem === undefined) return <Loading what="the metrics twice" />
  const rows = figures.map((figure) => rowOf(figure, readings)).filter(({ labels }) => labels.length > 0)
  return (
    <>
      {problem !== undefined && <Failure message={`${problem}. It is tried again every two seconds.`} />}
      <div class="plots">
        {rows.map(({ figure, points, labels }) => (
          <LinePlot key={figure.name} name={figure.name} points={points} labels={labels} text={figure.text} />
        ))}
      </div>
      <h2>The same as a table</h2>
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
      name="Figures of the last five minutes"
      rows={lines}
      keyOf={({ name }) => name}
      head={['Figure', ({ name }) => name]}
      numbers={['Now', 'Least', 'Mean', 'Most']}
      cells={{
        Now: ({ now, text }) => (now === undefined ? '–' : text(now)),
        Least: ({ values, text }) => text(Math.min(...values)),
        Mean: ({ values, text }) => text(values.reduce((sum, value) => sum + value, 0) / values.length),
        Most: ({ values, text }) => text(Math.max(...values)),
      }}
    />
  )
}
