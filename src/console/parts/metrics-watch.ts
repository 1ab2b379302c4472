import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ServiceClient } from '../../client/index.js'
import { explain } from './explain.js'
import { metricNames, MetricsReading } from './metrics.js'

/** How often the metrics are read. */
export const READ_EVERY_MS = 2_000
/** For how long readings are kept. */
export const KEPT_MS = 300_000

/** Readings of a server's metrics, the oldest first: every two seconds, for as long as a screen shows them. */
export class MetricsWatch {
  readonly readings = signal<readonly MetricsReading[]>([])
  readonly problem = signal<string | undefined>(undefined)
  readonly #service: ServiceClient
  #reading: AbortController | undefined
  #users = 0

  constructor(service: ServiceClient) {
    this.#service = service
  }

  /** Reads from now on, while the page is seen. @returns ends that */
  use(): () => void {
    this.#users += 1
    if (this.#users === 1) this.#begin()
    return () => {
      this.#users -= 1
      if (this.#users === 0) this.#end()
    }
  }

  #begin(): void {
    document.addEventListener('visibilitychange', this.#seen)
    this.#seen()
  }

  #end(): void {
    document.removeEventListener('visibilitychange', this.#seen)
    this.#reading?.abort()
    this.#reading = undefined
  }

  readonly #seen = (): void => {
    this.#reading?.abort()
    this.#reading = undefined
    if (document.visibilityState === 'hidden') return
    const { signal } = (this.#reading = new AbortController())
    void this.#read(signal)
  }

  async #read(signal: AbortSignal): Promise<void> {
    try {
      const answer = await this.#service.metrics({ names: metricNames, signal })
      if (signal.aborted) return
      const nowMs = Date.now()
      const kept = this.readings.value.filter(({ atMs }) => atMs > nowMs - KEPT_MS && atMs < nowMs)
      this.readings.value = [...kept, new MetricsReading(answer, nowMs)]
      this.problem.value = undefined
    } catch (error) {
      if (signal.aborted) return
      this.problem.value = explain(error)
    }
    const timer = setTimeout(() => void this.#read(signal), READ_EVERY_MS)
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }
}

const watches = new WeakMap<ServiceClient, MetricsWatch>()

/** The readings of a server, begun where they are first shown and kept from screen to screen. */
export function useMetrics(service: ServiceClient): MetricsWatch {
  const watch = watches.get(service) ?? new MetricsWatch(service)
  watches.set(service, watch)
  useEffect(() => watch.use(), [watch])
  return watch
}
