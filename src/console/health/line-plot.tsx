import { useEffect, useRef, useState } from 'preact/hooks'
import { timeText } from '../parts/format.js'
import { appearance } from '../shell/appearance.js'
import { LineChart, LOOKS, type Point } from './line-chart.js'

/** The last five minutes of a figure as lines; what the pointer is at is said below. All numbers are in the table. */
export function LinePlot(props: {
  name: string
  points: readonly Point[]
  labels: readonly string[]
  text: (value: number) => string
}) {
  const { name, points, labels, text } = props
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<LineChart>(undefined)
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const isDark = useSystemIsDark()
  // What is drawn does not follow the page's colours by itself.
  const look = `${appearance.value} ${isDark} ${labels.join('\n')}`
  useEffect(() => {
    if (place.current === null) return undefined
    const made = new LineChart(place.current, { labels, text, onPoint: setPointed })
    made.show(points)
    chart.current = made
    return () => made.end()
  }, [look])
  useEffect(() => chart.current?.show(points), [points])
  const most = Math.max(0, ...points.flatMap(({ values }) => [...values.values()]))
  const said = points.find(({ atMs }) => atMs === pointed)
  const shown = said ?? points.at(-1)
  return (
    <figure class="plot line-plot">
      <figcaption>
        {name}{' '}
        <span class="muted">
          {said === undefined ? `at most ${text(most)}` : `at ${timeText(said.atMs).slice(-8)}`}
        </span>
      </figcaption>
      <div ref={place} class="line-chart" role="img" aria-label={`${name} in the last five minutes`} />
      <ul class="plain plot-now">
        {labels.map((label, at) => {
          const value = shown?.values.get(label)
          return (
            <li key={label} class={labels.length > 1 ? `key-${at % LOOKS}` : ''}>
              {label === '' ? '' : `${label}: `}
              {value === undefined ? '–' : text(value)}
            </li>
          )
        })}
      </ul>
    </figure>
  )
}

/** Whether the system prefers dark, now and whenever that changes. */
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
