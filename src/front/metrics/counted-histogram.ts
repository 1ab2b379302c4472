import { Histogram, type MetricValueWithName } from 'prom-client'

/** What a histogram shows under some labels. */
export interface HistogramValue {
  labels: Record<string, string>
  /** Values up to each bound and above the one before; the last one counts the rest. */
  counts: readonly number[]
  /** Of all values. */
  sum: number
}

interface Configuration {
  name: string
  help: string
  labelNames: string[]
  /** Bounds, rising. */
  bounds: readonly number[]
}

/** A histogram whose values are counted elsewhere and read at each scrape: the library's own has to see each value. */
export class CountedHistogram extends Histogram {
  readonly #about: Configuration
  readonly #read: () => readonly HistogramValue[]

  constructor(about: Configuration, read: () => readonly HistogramValue[]) {
    const { name, help, labelNames, bounds } = about
    super({ name, help, labelNames, buckets: [...bounds], registers: [] })
    this.#about = about
    this.#read = read
  }

  /** What the library asks a histogram for where it writes the text. */
  async getForPromString() {
    const { name, help } = this.#about
    return {
      name,
      help,
      type: 'histogram',
      values: this.#read().flatMap((counted) => this.#valuesOf(counted)),
    }
  }

  #valuesOf({ labels, counts, sum }: HistogramValue): MetricValueWithName<string>[] {
    const { name, bounds } = this.#about
    let total = 0
    const buckets = counts.map((count, place) => {
      total += count
      const le = bounds[place] ?? '+Inf'
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: total },
    ]
  }
}
