import { countInBucket, emptyBuckets } from '../../protocol/shard-figures.js'
import type { RecordCacheFigures } from '../../dispatch/links/record-cache.js'
import type { Route } from '../routes/routes.js'

export interface RouteWatch {
  begin(): void
  done(status: number, tookMs: number): void
}

/** Bucket bounds of request times, from an answer out of memory to a large upload. */
export const requestBoundsSecs: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10,
]

/** Counts of the requests to one route: by status and by time. */
export interface RouteCounts {
  method: string
  route: string
  /** The route serves event streams, whose times are not meaningful. */
  isStream: boolean
  statuses: Map<number, number>
  /** Counts per bucket of `requestBoundsSecs`; the last bucket counts slower requests. */
  times: number[]
  secs: number
}

/** The figures of one front, for metrics. Only plain values, so that they can be sent to another thread. */
export interface FrontFigures {
  front: number
  routes: RouteCounts[]
  refusedLines: Map<string, number>
  inFlight: number
  streams: number
  cache: RecordCacheFigures
  /** Milliseconds since the last heartbeat of the front. */
  silentMs: number
}

/** Counts the requests of one front in plain numbers, which are read at a scrape. */
export class RequestCounts {
  readonly #routes: RouteCounts[] = []
  readonly #refusedLines = new Map<string, number>()
  #inFlight = 0

  /** Requests in progress; a stream counts as long as it is open. */
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

  /** Counts refused lines of ingest uploads by error code. */
  linesRefused(code: string, count: number): void {
    this.#refusedLines.set(code, (this.#refusedLines.get(code) ?? 0) + count)
  }

  get figures(): Pick<FrontFigures, 'routes' | 'refusedLines' | 'inFlight'> {
    return { routes: this.#routes, refusedLines: this.#refusedLines, inFlight: this.#inFlight }
  }
}

/** The counts of all fronts, merged by route; each front counts GET and HEAD of a route separately. */
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
