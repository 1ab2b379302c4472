import { CardTable } from '../parts/card-table.js'
import { Empty, Failure, Loading } from '../parts/texts.js'
import { canReadServer, type SignedIn } from '../parts/session.js'
import { type Figure, figures } from './figures.js'
import { LinePlot, type Point } from './line-plot.js'
import { type MetricsReading, useMetrics } from '../parts/metrics.js'

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
