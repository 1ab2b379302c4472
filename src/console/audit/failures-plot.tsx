import { durationText } from '../../base/duration.js'
import { counted, timeText } from '../parts/format.js'
import type { FailureEntry, Span } from '../parts/audit-events.js'

const BARS = 48
const WIDTH = 960
const HEIGHT = 96
const GAP = 4

/** A bar chart of failures over time. The list below it has the same numbers for screen readers. */
export function FailuresPlot({ failures, span, isCut }: Plotted) {
  const bars = barsOf(failures, span)
  const total = bars.reduce((sum, { count }) => sum + count, 0)
  const most = Math.max(1, ...bars.map(({ count }) => count))
  const [first, last] = [bars[0], bars.at(-1)]
  if (first === undefined || last === undefined || total === 0) {
    return <p class="muted">No failures in this period.</p>
  }
  const step = WIDTH / BARS
  const width = durationText(first.toMs - first.fromMs)
  const summary = `${isCut ? 'The newest ' : ''}${counted(total, 'failure')}; each bar is ${width}, maximum ${most}`
  return (
    <figure class="plot">
      <figcaption>
        Failures over time <span class="muted">{summary}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary}>
        {bars.map(({ fromMs, count }, at) => {
          const height = (count / most) * (HEIGHT - 1)
          return (
            <rect key={fromMs} x={at * step + GAP / 2} y={HEIGHT - height} width={step - GAP} height={height}>
              <title>{`${timeText(fromMs)}: ${count}`}</title>
            </rect>
          )
        })}
      </svg>
      <p class="plot-ends muted">
        <span>{timeText(first.fromMs)}</span>
        <span>{timeText(last.toMs)}</span>
      </p>
      <details>
        <summary>Show as a list</summary>
        <ul class="plain">
          {bars
            .filter(({ count }) => count > 0)
            .map(({ fromMs, toMs, count }) => (
              <li key={fromMs}>
                {timeText(fromMs)} to {timeText(toMs)}: {counted(count, 'failure')}
              </li>
            ))}
        </ul>
      </details>
    </figure>
  )
}

/** The data of the chart. */
interface Plotted {
  failures: readonly FailureEntry[]
  span: Span
  isCut: boolean
}

interface Bar {
  fromMs: number
  toMs: number
  count: number
}

function barsOf(failures: readonly FailureEntry[], span: Span): Bar[] {
  const oldest = failures.at(-1)?.ms
  if (oldest === undefined) return []
  const fromMs = span.fromMs ?? oldest
  const toMs = Math.max(span.toMs ?? Date.now(), failures[0]?.ms ?? 0, fromMs + BARS)
  const width = (toMs - fromMs) / BARS
  const bars = Array.from({ length: BARS }, (_, at) => ({
    fromMs: fromMs + at * width,
    toMs: fromMs + (at + 1) * width,
    count: 0,
  }))
  for (const { ms, count } of failures) {
    const bar = bars[Math.min(BARS - 1, Math.max(0, Math.floor((ms - fromMs) / width)))]
    if (bar !== undefined) bar.count += count
  }
  return bars
}
