import { countInBucket, emptyBuckets } from '../../protocol/shard-figures.js'
import type { RecordCacheFigures } from '../../dispatch/links/record-cache.js'
import type { Route } from '../routes/routes.js'

/** Counts one request of one route. */
export interface RouteWatch {
  begin(): void
  done(status: number, tookMs: number): void
}

/** Bounds of the times that requests take, from an answer from memory to a large upload. */
export const requestBoundsSecs: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10,
]

/** What was counted of the requests of one route: how many by status, and how long they took. */
export interface RouteCounts {
  method: string
  route: string
  /** It is one of event streams, whose time says nothing. */
  isStream: boolean
  statuses: Map<number, number>
  /** By `requestBoundsSecs`; the last one is the rest. */
  times: number[]
  secs: number
}

/** What one front has counted, for metrics. Only plain values, so that it can be told to another thread. */
export interface FrontFigures {
  front: number
  routes: RouteCounts[]
  refusedLines: Map<string, number>
  inFlight: number
  streams: number
  cache: RecordCacheFigures
  /** How long the front has shown no sign of life, milliseconds. */
  silentMs: number
}

/** Counts the requests of one front. Hot counts are plain numbers, read at a scrape. */
export class RequestCounts {
  readonly #routes: RouteCounts[] = []
  readonly #refusedLines = new Map<string, number>()
  #inFlight = 0

  /** Requests that are being answered; streams count while they are open. */
  get inFlight(): number {
    return this.#inFlight
  }

  watch({ method, path, kind }: Route): RouteWatch {
    const times = emptyBuckets(requestBoundsSecs)
    const counts: RouteCounts = {
      method: method === 'del' ? 'delete' : method,
      route: path,
      isStream: kind === 'stream',
      statuses: new Map(),
      times,
      secs: 0,
    }
    this.#routes.push(counts)
    return {
      begin: () => {
        this.#inFlight++
      },
      done: (status, tookMs) => {
        this.#inFlight--
        counts.statuses.set(status, (counts.statuses.get(status) ?? 0) + 1)
        const secs = tookMs / 1_000
        counts.secs += secs
        countInBucket(times, requestBoundsSecs, secs)
      },
    }
  }

  /** Counts lines of ingest uploads that were refused with a code. */
  linesRefused(code: string, count: number): void {
    this.#refusedLines.set(code, (this.#refusedLines.get(code) ?? 0) + count)
  }

  get figures(): Pick<FrontFigures, 'routes' | 'refusedLines' | 'inFlight'> {
    return { routes: this.#routes, refusedLines: this.#refusedLines, inFlight: this.#inFlight }
  }
}

/** The requests of all fronts by route: each front counts those of a route once for GET and once for HEAD. */
export function routesOf(fronts: readonly FrontFigures[]): RouteCounts[] {
  const byRoute = new Map<string, RouteCounts>()
  for (const { routes } of fronts) {
    for (const counts of routes) {
      const key = `${counts.method} ${counts.route}`
      const known = byRoute.get(key)
      if (known === undefined)
        byRoute.set(key, { ...counts, statuses: new Map(counts.statuses), times: [...counts.times] })
      else addTo(known, counts)
    }
  }
  return [...byRoute.values()]
}

function addTo(sum: RouteCounts, { statuses, times, secs }: RouteCounts): void {
  for (const [status, count] of statuses) sum.statuses.set(status, (sum.statuses.get(status) ?? 0) + count)
  for (const [at, count] of times.entries()) sum.times[at] = (sum.times[at] ?? 0) + count
  sum.secs += secs
}
