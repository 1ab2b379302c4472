import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ServiceClient } from '../../client/index.js'
import { explain } from './explain.js'
import { metricNames, MetricsReading } from './metrics.js'

/** The interval between readings. */
export const READ_INTERVAL_MS = 2_000
/** How long readings are retained. */
export const RETENTION_MS = 300_000

/**
 * Reads a server's metrics every two seconds while a screen shows them. Readings are in order, oldest first.
 */
export class MetricsWatch {
  readonly readings = signal<readonly MetricsReading[]>([])
  readonly problem = signal<string | undefined>(undefined)
  readonly #service: ServiceClient
  #reading: AbortController | undefined
  #users = 0

  constructor(service: ServiceClient) {
    this.#service = service
  }

  /** Starts reading while the page is visible. @returns a function that stops it */
  use(): () => void {
    this.#users += 1
    if (this.#users === 1) this.#begin()
    return () => {
      this.#users -= 1
      if (this.#users === 0) this.#end()
    }
  }

  #begin(): void {
    document.addEventListener('visibilitychange', this.#onVisibility)
    this.#onVisibility()
  }

  #end(): void {
    document.removeEventListener('visibilitychange', this.#onVisibility)
    this.#reading?.abort()
    this.#reading = undefined
  }

  readonly #onVisibility = (): void => {
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
      const recent = this.readings.value.filter(({ atMs }) => atMs > nowMs - RETENTION_MS && atMs < nowMs)
      this.readings.value = [...recent, new MetricsReading(answer, nowMs)]
      this.problem.value = undefined
    } catch (error) {
      if (signal.aborted) return
      this.problem.value = explain(error)
    }
    const timer = setTimeout(() => void this.#read(signal), READ_INTERVAL_MS)
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }
}

const watches = new WeakMap<ServiceClient, MetricsWatch>()

/** The readings of a server, shared by all screens. */
export function useMetrics(service: ServiceClient): MetricsWatch {
  const watch = watches.get(service) ?? new MetricsWatch(service)
  watches.set(service, watch)
  useEffect(() => watch.use(), [watch])
  return watch
}
