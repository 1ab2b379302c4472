import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { ServerLogFigures } from '../dispatch/server-log.js'
import type { Shards } from '../dispatch/shards.js'
import type { PoolFigures } from '../dispatch/thread-pool.js'
import type { SinkFigures } from '../protocol/sink-messages.js'
import type { Route } from '../routes/routes.js'

/** The sources of metrics other than those of requests. */
export interface MetricsSources {
  shards: Shards
  streams(): number
  /** The pools of threads. */
  pools(): PoolFigures[]
  freeBytes(): number
  /** Absent if the server log is off. */
  serverLog?(): ServerLogFigures
  /** Absent without a PostgreSQL sink. */
  sink?(): SinkFigures
}

/** Counts one request of one route. */
export interface RouteWatch {
  begin(): void
  done(status: number): void
}

/** Prometheus metrics (docs/OPERATIONS.md, Health and metrics). Hot counts are plain numbers, read at a scrape. */
export class HttpMetrics {
  readonly #registry = new Registry()
  readonly #requests: { route: Route; statuses: Map<number, number> }[] = []
  readonly #refusedLines = new Map<string, number>()
  #inFlight = 0

  constructor(sources: MetricsSources) {
    collectDefaultMetrics({ register: this.#registry })
    this.#countRequests()
    this.#countRefusedLines()
    this.#showShards(sources)
    this.#showPools(sources)
    this.#gauge('strandfast_streams_open', 'Open event streams', () => sources.streams())
    this.#gauge('strandfast_disk_free_bytes', 'Free bytes of the data disk', () => sources.freeBytes())
    if (sources.sink !== undefined) this.#showSink(sources.sink)
    if (sources.serverLog !== undefined) this.#showServerLog(sources.serverLog)
    this.#gauge(
      'strandfast_http_requests_in_flight',
      'Requests that are being answered',
      () => this.#inFlight,
    )
  }

  /** Requests that are being answered; streams count while they are open. */
  get inFlight(): number {
    return this.#inFlight
  }

  watch(route: Route): RouteWatch {
    const statuses = new Map<number, number>()
    this.#requests.push({ route, statuses })
    return {
      begin: () => {
        this.#inFlight++
      },
      done: (status) => {
        this.#inFlight--
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      },
    }
  }

  /** Counts lines of ingest uploads that were refused with a code. */
  linesRefused(code: string, count: number): void {
    this.#refusedLines.set(code, (this.#refusedLines.get(code) ?? 0) + count)
  }

  async text(): Promise<{ text: string; contentType: string }> {
    return { text: await this.#registry.metrics(), contentType: this.#registry.contentType }
  }

  #countRequests(): void {
    const requests = this.#requests
    const counter: Counter<'method' | 'route' | 'status'> = new Counter({
      name: 'strandfast_http_requests_total',
      help: 'Requests answered; status 0 where the client went before its answer',
      labelNames: ['method', 'route', 'status'],
      registers: [this.#registry],
      collect() {
        counter.reset()
        for (const { route, statuses } of requests) {
          for (const [status, count] of statuses) {
            counter.inc(
              { method: route.method === 'del' ? 'delete' : route.method, route: route.path, status },
              count,
            )
          }
        }
      },
    })
  }

  #countRefusedLines(): void {
    const lines = this.#refusedLines
    const counter: Counter<'code'> = new Counter({
      name: 'strandfast_ingest_refused_lines_total',
      help: 'Lines and records of ingest that were refused, those kept as ingest/rejected among them',
      labelNames: ['code'],
      registers: [this.#registry],
      collect() {
        counter.reset()
        for (const [code, count] of lines) counter.inc({ code }, count)
      },
    })
  }

  #showShards({ shards }: MetricsSources): void {
    const perShard = (
      name: string,
      help: string,
      value: (figures: ReturnType<Shards['figures']>[number]) => number,
    ) => {
      const gauge: Gauge<'shard'> = new Gauge({
        name,
        help,
        labelNames: ['shard'],
        registers: [this.#registry],
        collect() {
          shards.figures().forEach((figures, shard) => gauge.set({ shard: String(shard) }, value(figures)))
        },
      })
    }
    perShard('strandfast_records_total', 'Records committed since the start', ({ records }) => records)
    perShard('strandfast_commits_total', 'Commit groups since the start', ({ commits }) => commits)
    perShard('strandfast_commit_seconds_total', 'Seconds spent in commits', ({ commitSecs }) => commitSecs)
    perShard('strandfast_agents', 'Agents', ({ agents }) => agents)
    perShard('strandfast_shard_queue_depth', 'Commands that wait for the shard', ({ depth }) => depth)
    perShard(
      'strandfast_shard_silent_seconds',
      'How long the shard thread has come no step further though commands wait for it',
      ({ silentMs }) => silentMs / 1_000,
    )
    perShard(
      'strandfast_shard_ends_total',
      'Shard threads that ended by themselves or hung',
      (one) => one.deaths,
    )
    perShard('strandfast_shard_hangs_total', 'Shard threads that hung', ({ hangs }) => hangs)
    this.#gauge(
      'strandfast_record_cache_hits_total',
      'Records read by hash from memory',
      () => shards.cacheFigures().hits,
    )
    this.#gauge(
      'strandfast_record_cache_misses_total',
      'Records read by hash from their shard',
      () => shards.cacheFigures().misses,
    )
    this.#gauge(
      'strandfast_record_cache_bytes',
      'Bytes of records kept for reading again',
      () => shards.cacheFigures().bytes,
    )
    this.#gauge('strandfast_shards_serving', '1 while every shard serves', () => (shards.serving ? 1 : 0))
  }

  #showPools({ pools }: MetricsSources): void {
    const perPool = (name: string, help: string, value: (figures: PoolFigures) => number) => {
      const gauge: Gauge<'pool'> = new Gauge({
        name: `strandfast_pool_${name}`,
        help,
        labelNames: ['pool'],
        registers: [this.#registry],
        collect() {
          for (const figures of pools()) gauge.set({ pool: figures.name }, value(figures))
        },
      })
    }
    perPool('serving', '1 unless no thread of the pool works or can be started', (one) =>
      one.serving ? 1 : 0,
    )
    perPool('waiting', 'Tasks that wait for a thread of the pool', ({ waiting }) => waiting)
    perPool('failed_starts_total', 'Threads of the pool that did not start', (one) => one.failedStarts)
    perPool('ends_total', 'Threads of the pool that died in their task', ({ deaths }) => deaths)
    perPool('hangs_total', 'Threads of the pool that took too long for a task', ({ hangs }) => hangs)
  }

  #showSink(sink: () => SinkFigures): void {
    const show = (name: string, help: string, value: (figures: SinkFigures) => number) =>
      this.#gauge(`strandfast_sink_${name}`, help, () => value(sink()))
    show('connected', '1 while PostgreSQL is connected', ({ connected }) => (connected ? 1 : 0))
    show('lag_records', 'Ingested records not in PostgreSQL yet', ({ lagRecords }) => lagRecords)
    show('lag_seconds', 'Age of the oldest records not in PostgreSQL yet', ({ lagSecs }) => lagSecs)
    show('rows_total', 'Rows stored in PostgreSQL since the start', ({ rows }) => rows)
    show('dead_letters_total', 'Rows that PostgreSQL refused since the start', (one) => one.deadLetters)
    show('failures_total', 'Failed tries to deliver since the start', ({ failures }) => failures)
  }

  #showServerLog(figures: () => ServerLogFigures): void {
    this.#gauge('strandfast_log_size', 'Records of the log of strand heads', () => figures().size)
    this.#gauge(
      'strandfast_log_complete_timestamp_seconds',
      'Until when every strand head is in the log; 0 before the first look',
      () => figures().completeAtMs / 1_000,
    )
  }

  #gauge(name: string, help: string, value: () => number): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        gauge.set(value())
      },
    })
  }
}
