import { init } from 'echarts'

const WIDTH = 820
const BAR_HEIGHT = 30
const FRAME_HEIGHT = 96

/** Each colour with its replacement in dark mode. Each chart has its own background. */
const colours = {
  background: ['#ffffff', '#0d1117'],
  text: ['#1f2328', '#e6edf3'],
  quiet: ['#57606a', '#9198a1'],
  line: ['#d0d7de', '#30363d'],
  ours: ['#0969da', '#4493f8'],
  same: ['#1a7f37', '#3fb950'],
  peer: ['#8c959f', '#7d8590'],
  ceiling: ['#bf8700', '#d29922'],
  target: ['#cf222e', '#f85149'],
}
const light = Object.fromEntries(Object.entries(colours).map(([name, [colour]]) => [name, colour]))

/**
 * One bar of a chart.
 * @typedef {object} Bar
 * @property {string} name
 * @property {number} value
 * @property {string} label is written after the bar
 * @property {'ours' | 'same' | 'peer' | 'ceiling'} role
 * @property {number} [target] is marked across the bar
 */

/**
 * Draws horizontal bars from top to bottom.
 * @param {{title: string, subtitle: string, bars: Bar[]}} chart
 * @returns {string} a standalone SVG document, readable on light and dark pages
 */
export function barChart({ title, subtitle, bars }) {
  const height = FRAME_HEIGHT + bars.length * BAR_HEIGHT
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  chart.setOption({
    animation: false,
    backgroundColor: light.background,
    title: {
      text: title,
      subtext: subtitle,
      left: 8,
      top: 4,
      textStyle: { color: light.text, fontSize: 15 },
      subtextStyle: { color: light.quiet, fontSize: 12 },
    },
    grid: { left: 12, right: 84, top: 60, bottom: 8, containLabel: true },
    xAxis: {
      type: 'value',
      axisLabel: { color: light.quiet },
      splitLine: { lineStyle: { color: light.line } },
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: bars.map(({ name }) => name),
      axisLabel: { color: light.text },
      axisTick: { show: false },
      axisLine: { lineStyle: { color: light.line } },
    },
    series: [barSeries(bars), targetSeries(bars)],
  })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return finished(svg, title)
}

function barSeries(bars) {
  return {
    type: 'bar',
    barWidth: '64%',
    data: bars.map((bar) => ({
      value: bar.value,
      itemStyle: { color: light[bar.role] },
      label: { ...labelOf(bar), show: !isMissed(bar) },
    })),
  }
}

function targetSeries(bars) {
  return {
    type: 'scatter',
    symbol: 'rect',
    symbolSize: [3, BAR_HEIGHT - 4],
    itemStyle: { color: light.target },
    data: bars
      .filter(({ target }) => target !== undefined)
      .map((bar) => ({ value: [bar.target, bar.name], label: { ...labelOf(bar), show: isMissed(bar) } })),
  }
}

/** A label is after the bar, or after the target if that is farther right. */
function labelOf({ label }) {
  return { position: 'right', color: light.text, formatter: label }
}

function isMissed({ value, target }) {
  return target !== undefined && target > value
}

/** Removes attributes for scripts, and adds a title and colours for dark mode. */
function finished(svg, title) {
  const cleaned = svg
    .replace(/<style\b[\s\S]*?<\/style>\s*/g, '')
    .replace(/ (ecmeta_\w+|class|pointer-events)="[^"]*"/g, '')
  const dark = Object.values(colours).map(
    ([from, to]) => `[fill="${from}"]{fill:${to}}[stroke="${from}"]{stroke:${to}}`,
  )
  const style = `<style>@media (prefers-color-scheme:dark){${dark.join('')}}</style>`
  const name = title.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `${cleaned.replace(/^<svg([^>]*)>/, `<svg$1 role="img">\n<title>${name}</title>\n${style}`).trimEnd()}\n`
}
