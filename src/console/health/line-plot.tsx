import { KEPT_MS, READ_EVERY_MS } from './watch.js'

const WIDTH = 600
const HEIGHT = 90
/** Between points that are further apart the page was hidden, and nothing is known. */
const GAP_MS = READ_EVERY_MS * 4

/** The values of a figure at one moment, by label. */
export interface Point {
  atMs: number
  values: ReadonlyMap<string, number>
}

/** The last five minutes of a figure as lines. The numbers are beside it and in the table. */
export function LinePlot(props: {
  name: string
  points: readonly Point[]
  labels: readonly string[]
  text: (value: number) => string
}) {
  const { name, points, labels, text } = props
  const all = points.flatMap(({ values }) => [...values.values()])
  const last = points.at(-1)
  const most = Math.max(0, ...all)
  const untilMs = last?.atMs ?? 0
  const now = labels.map((label) => {
    const value = last?.values.get(label)
    return `${label === '' ? '' : `${label}: `}${value === undefined ? '–' : text(value)}`
  })
  const x = (atMs: number): number => WIDTH - ((untilMs - atMs) / KEPT_MS) * WIDTH
  const y = (value: number): number => HEIGHT - 2 - (value / (most === 0 ? 1 : most)) * (HEIGHT - 6)
  return (
    <figure class="plot line-plot">
      <figcaption>
        {name} <span class="muted">{all.length === 0 ? 'nothing yet' : `at most ${text(most)}`}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name} in the last five minutes`}
      >
        {labels.map((label, at) =>
          segmentsOf(points, label).map((segment) => (
            <polyline
              key={`${label} ${segment[0]?.atMs}`}
              class={`line line-${at % LOOKS}`}
              // A point alone is a line of no length, which its round ends show.
              points={[...segment, ...segment.slice(-1)]
                .map(({ atMs, value }) => `${x(atMs).toFixed(1)},${y(value).toFixed(1)}`)
                .join(' ')}
            />
          )),
        )}
      </svg>
      <ul class="plain plot-now">
        {now.map((said, at) => (
          <li key={labels[at]} class={labels.length > 1 ? `key-${at % LOOKS}` : ''}>
            {said}
          </li>
        ))}
      </ul>
    </figure>
  )
}

/** Looks that lines have: they differ by dashes too, for who tells colours badly. */
const LOOKS = 5

interface Place {
  atMs: number
  value: number
}

/** Points of a label that are joined: not over a gap, and not where there is no value. */
function segmentsOf(points: readonly Point[], label: string): Place[][] {
  const segments: Place[][] = []
  let before: Place | undefined
  for (const { atMs, values } of points) {
    const value = values.get(label)
    const place = value === undefined ? undefined : { atMs, value }
    if (place !== undefined) {
      if (before === undefined || atMs - before.atMs > GAP_MS) segments.push([])
      segments.at(-1)?.push(place)
    }
    before = place
  }
  return segments
}
