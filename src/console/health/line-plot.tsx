import { useEffect, useRef, useState } from 'preact/hooks'
import { clockText } from '../parts/format.js'
import { appearance } from '../shell/appearance.js'
import { LineChart, LINE_STYLES, type Point } from './line-chart.js'

/** The last five minutes of a figure as a line chart, with the values at the pointer as text below it. */
export function LinePlot(props: {
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
