import { Histogram, type MetricValueWithName } from 'prom-client'

/** The values of a histogram under one set of labels. */
export interface HistogramValue {
  labels: Record<string, string>
  /** Number of values in each bucket; the last bucket counts values above all bounds. */
  counts: readonly number[]
  sum: number
}

interface Configuration {
  name: string
  help: string
  labelNames: string[]
  /** Upper bounds of the buckets, ascending. */
  bounds: readonly number[]
}

/**
 * A histogram that is counted elsewhere and read at each scrape: the library's own class must observe each
 * value.
 */
export class CountedHistogram extends Histogram {
  readonly #configuration: Configuration
  readonly #read: () => readonly HistogramValue[]

  constructor(configuration: Configuration, read: () => readonly HistogramValue[]) {
    const { name, help, labelNames, bounds } = configuration
    super({ name, help, labelNames, buckets: [...bounds], registers: [] })
    this.#configuration = configuration
    this.#read = read
  }

  /** Called by the library when it writes the text. */
  async getForPromString() {
    const { name, help } = this.#configuration
    return {
      name,
      help,
      type: 'histogram',
      values: this.#read().flatMap((histogram) => this.#valuesOf(histogram)),
    }
  }

  #valuesOf({ labels, counts, sum }: HistogramValue): MetricValueWithName<string>[] {
    const { name, bounds } = this.#configuration
    let total = 0
    const buckets = counts.map((count, bucket) => {
      total += count
      const le = bounds[bucket] ?? '+Inf'
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: total },
    ]
  }
}
