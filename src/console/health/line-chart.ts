import uPlot from 'uplot'
import { timeText } from '../parts/format.js'
import { KEPT_MS, READ_EVERY_MS } from '../parts/metrics-watch.js'

/** Looks that lines have: they differ by dashes too, for who tells colours badly. */
export const LOOKS = 5

const HEIGHT = 130
const DASHES = [[], [6, 4], [2, 3], [10, 4], [10, 3, 2, 3]]
/** Between points that are further apart the page was hidden, and nothing is known. */
const GAP_MS = READ_EVERY_MS * 4

/** The values of a figure at one moment, by label. */
export interface Point {
  atMs: number
  values: ReadonlyMap<string, number>
}

/** How lines are shown. */
interface LineLabels {
  labels: readonly string[]
  text: (value: number) => string
  /** Told the moment that the pointer is at; undefined where it is at none. */
  onPoint: (atMs: number | undefined) => void
}

/** Lines over the last five minutes, drawn by uPlot. It makes elements and text, never HTML, so the page's policy holds. */
export class LineChart {
  readonly #plot: uPlot
  readonly #labels: readonly string[]
  readonly #resizing: ResizeObserver

  constructor(place: HTMLElement, shown: LineLabels) {
    this.#labels = shown.labels
    this.#plot = new uPlot(optionsOf(place, shown), [[], ...shown.labels.map(() => [])], place)
    this.#resizing = new ResizeObserver(() =>
      this.#plot.setSize({ width: place.clientWidth, height: HEIGHT }),
    )
    this.#resizing.observe(place)
  }

  /** Shows these points in place of those before. */
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

function optionsOf(place: HTMLElement, { labels, text, onPoint }: LineLabels): uPlot.Options {
  const [soft, grid] = [colourOf(place, 'ink-axis'), colourOf(place, 'ink-grid')]
  const { fontFamily } = getComputedStyle(place)
  const axis: uPlot.Axis = { stroke: soft, font: `11px ${fontFamily}`, ticks: { show: false } }
  return {
    width: place.clientWidth,
    height: HEIGHT,
    ms: 1,
    padding: [8, 6, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: (_plot, _least, most) => [(most ?? 0) - KEPT_MS, most ?? 0] },
      y: { range: (_plot, _least, most) => [0, most === null || most <= 0 ? 1 : most * 1.05] },
    },
    axes: [
      {
        ...axis,
        size: 22,
        space: 80,
        grid: { show: false },
        values: (_plot, moments) => moments.map((ms) => timeText(ms).slice(-8)),
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
        stroke: colourOf(place, `ink-${at % LOOKS}`),
        width: 1.5,
        dash: DASHES[at % LOOKS] ?? [],
        // A point alone is no line.
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

/** A colour of the page as it is now: what is drawn knows neither names of colours nor light and dark. */
function colourOf(place: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.className = name
  place.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
