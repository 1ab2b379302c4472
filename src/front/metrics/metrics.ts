import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { assert } from '../../base/assert.js'
import { systemClock } from '../../base/clock.js'
import type { ServerLogFigures } from '../../dispatch/duties/server-log.js'
import type { ShardThreadFigures } from '../../dispatch/threads/shard-threads.js'
import type { PoolFigures } from '../../dispatch/pools/thread-pool.js'
import { appendBoundsSecs } from '../../protocol/shard-figures.js'
import type { ClusterFigures } from '../../protocol/cluster-log-messages.js'
import type { SinkFigures } from '../../protocol/sink-messages.js'
import type { MetricFamily } from '../../wire/metrics.js'
import { CountedHistogram } from './counted-histogram.js'
import { requestBoundsSecs, routesOf, type FrontFigures } from './request-counts.js'

/** Figures of a node, and the number of problems that GET /v1/server lists. */
type ClusterMetrics = ClusterFigures & { problems: number }

/** The sources of the metrics. */
export interface MetricsSources {
  fronts(): Promise<FrontFigures[]>
  shards(): ShardThreadFigures[]
  serving(): boolean
  pools(): PoolFigures[]
  freeBytes(): number
  /** When the stores were last copied for a backup, Unix milliseconds; undefined if not since the start. */
  backupCopiedAtMs(): number | undefined
  /** Absent if the server log is disabled. */
  serverLog?(): ServerLogFigures
  /** Absent for a server that is not in a cluster. */
  cluster?(): ClusterMetrics
  /** Absent without a PostgreSQL sink. */
  sink?(): SinkFigures
}

/** Prometheus metrics (docs/MONITORING.md). Hot counters are plain numbers that are read at a scrape. */
export class HttpMetrics {
  readonly #registry = new Registry()
  readonly #sources: MetricsSources
  /** The figures of the fronts at the current scrape. */
  #fronts: FrontFigures[] = []

  constructor(sources: MetricsSources) {
    this.#sources = sources
    collectDefaultMetrics({ register: this.#registry })
    // Gauges that are named like counters: they repeat the sums of nodejs_active_handles, …_requests and
    // …_resources.
    for (const resource of ['handles', 'requests', 'resources'])
      this.#registry.removeSingleMetric(`nodejs_active_${resource}_total`)
    this.#countRequests()
    this.#showRequestTimes()
    this.#countRefusedLines()
    this.#showFronts()
    this.#showShards(sources)
    this.#showCache()
    this.#showPools(sources)
    this.#figure('strandfast_streams_open', 'Open event streams', () => this.#sum(({ streams }) => streams))
    this.#figure(
      'strandfast_disk_free_bytes',
      'Free bytes of the data disk, or of the disk of SERVICE_LOG_DIR if that has fewer',
      () => sources.freeBytes(),
    )
    this.#figure(
      'strandfast_backup_completed_timestamp_seconds',
      'Unix time when the stores were last copied for a backup; 0 if not since the start',
      () => (sources.backupCopiedAtMs() ?? 0) / 1_000,
    )
    if (sources.sink !== undefined) this.#showSink(sources.sink)
    if (sources.cluster !== undefined) this.#showCluster(sources.cluster)
    if (sources.serverLog !== undefined) this.#showServerLog(sources.serverLog)
    this.#figure('strandfast_http_requests_in_flight', 'Requests in progress', () =>
      this.#sum(({ inFlight }) => inFlight),
    )
  }

  /** The metrics as text. Takes some milliseconds, so callers share the result (shared-answer.ts). */
  async text(): Promise<{ text: Uint8Array; contentType: string }> {
    this.#fronts = await this.#sources.fronts()
    const text = Buffer.from(await this.#registry.metrics())
    return { text, contentType: this.#registry.contentType }
  }

  async families(): Promise<MetricFamily[]> {
    this.#fronts = await this.#sources.fronts()
    const families = this.#registry.getMetricsAsArray().map(async ({ name }) => {
      const metric = this.#registry.getSingleMetric(name)
      assert(metric !== undefined, `The metric ${name} is registered`)
      return familyOf(
        metric instanceof CountedHistogram ? await metric.getForPromString() : await metric.get(),
      )
    })
    return Promise.all(families)
  }

  #countRequests(): void {
    const configuration = {
      name: 'strandfast_http_requests_total',
      help: 'Requests answered; status 0 if the client disconnected before the answer',
      labelNames: ['method', 'route', 'status'],
    }
    this.#show(configuration, (set) => {
      for (const { method, route, statuses } of routesOf(this.#fronts)) {
        for (const [status, count] of statuses) set({ method, route, status: String(status) }, count)
      }
    })
  }

  #showRequestTimes(): void {
    const configuration = {
      name: 'strandfast_http_request_seconds',
      help: 'Time from the head of a request to the end of its answer, without event streams',
      labelNames: ['method', 'route'],
      bounds: requestBoundsSecs,
    }
    const read = () =>
      routesOf(this.#fronts)
        .filter(({ isStream, statuses }) => !isStream && statuses.size > 0)
        .map(({ method, route, times, secs }) => ({ labels: { method, route }, counts: times, sum: secs }))
    this.#registry.registerMetric(new CountedHistogram(configuration, read))
  }

  #countRefusedLines(): void {
    const configuration = {
      name: 'strandfast_ingest_refused_lines_total',
      help: 'Refused lines and records of ingest, including those stored as ingest/rejected',
      labelNames: ['code'],
    }
    this.#show(configuration, (set) => {
      const sums = new Map<string, number>()
      for (const { refusedLines } of this.#fronts) {
        for (const [code, count] of refusedLines) sums.set(code, (sums.get(code) ?? 0) + count)
      }
      for (const [code, count] of sums) set({ code }, count)
    })
  }

  #showFronts(): void {
    const perFront = (name: string, help: string, value: (figures: FrontFigures) => number) => {
      this.#show({ name: `strandfast_front_${name}`, help, labelNames: ['front'] }, (set) => {
        for (const figures of this.#fronts) set({ front: String(figures.front) }, value(figures))
      })
    }
    perFront('requests_total', 'Requests answered by the front', ({ routes }) =>
      routes.reduce((sum, { times }) => sum + times.reduce((all, count) => all + count, 0), 0),
    )
    perFront('requests_in_flight', 'Requests in progress at the front', ({ inFlight }) => inFlight)
    perFront('streams_open', 'Open event streams of the front', ({ streams }) => streams)
    perFront(
      'silent_seconds',
      'Time since the last heartbeat of the thread of the front',
      ({ silentMs }) => silentMs / 1_000,
    )
  }

  #showCache(): void {
    this.#figure('strandfast_record_cache_hits_total', 'Records read by hash from the cache', () =>
      this.#sum(({ cache }) => cache.hits),
    )
    this.#figure('strandfast_record_cache_misses_total', 'Records read by hash from their shard', () =>
      this.#sum(({ cache }) => cache.misses),
    )
    this.#figure('strandfast_record_cache_bytes', 'Bytes of records in the cache', () =>
      this.#sum(({ cache }) => cache.bytes),
    )
  }

  #sum(value: (figures: FrontFigures) => number): number {
    return this.#fronts.reduce((sum, figures) => sum + value(figures), 0)
  }

  #showShards({ shards, serving }: MetricsSources): void {
    const perShard = (name: string, help: string, value: (figures: ShardThreadFigures) => number) => {
      this.#show({ name, help, labelNames: ['shard'] }, (set) =>
        shards().forEach((figures, shard) => set({ shard: String(shard) }, value(figures))),
      )
    }
    perShard('strandfast_records_total', 'Records committed since the start', ({ records }) => records)
    perShard('strandfast_commits_total', 'Commit groups since the start', ({ commits }) => commits)
    perShard(
      'strandfast_commit_seconds_total',
      'Total time in which commits were being written to disk',
      ({ commitSecs }) => commitSecs,
    )
    this.#showAppends(shards)
    perShard(
      'strandfast_memtable_bytes',
      'Bytes of rows that are in the log but not yet in LMDB',
      ({ memtableBytes }) => memtableBytes,
    )
    perShard(
      'strandfast_memtable_age_seconds',
      'Age of the oldest row that is not yet in LMDB; 0 if there is none',
      (figures) =>
        figures.memtableSinceMs === 0 ? 0 : Math.max(0, systemClock() - figures.memtableSinceMs) / 1_000,
    )
    perShard('strandfast_flushes_total', 'Flushes of rows from the log to LMDB', ({ flushes }) => flushes)
    perShard('strandfast_flush_seconds_total', 'Total time spent in flushes', ({ flushSecs }) => flushSecs)
    perShard(
      'strandfast_replayed_commits',
      'Commits that were replayed from the log to LMDB when the shard was opened',
      ({ replayed }) => replayed,
    )
    perShard(
      'strandfast_rows_set_aside',
      'Rows (proposals, mails, expiries, invalid rows) that could not be handled since the shard was opened; the log says why',
      ({ setAside }) => setAside,
    )
    perShard('strandfast_agents', 'Agents', ({ agents }) => agents)
    perShard('strandfast_shard_queue_depth', 'Commands waiting for the shard', ({ depth }) => depth)
    perShard(
      'strandfast_shard_silent_seconds',
      'Time for which the shard thread has made no progress while commands wait for it',
      ({ silentMs }) => silentMs / 1_000,
    )
    perShard(
      'strandfast_shard_ends_total',
      'Shard threads that ended unexpectedly or hung',
      ({ deaths }) => deaths,
    )
    perShard('strandfast_shard_hangs_total', 'Shard threads that hung', ({ hangs }) => hangs)
    this.#figure('strandfast_shards_serving', '1 while every shard is serving', () => (serving() ? 1 : 0))
  }

  #showAppends(shards: MetricsSources['shards']): void {
    const appends = {
      name: 'strandfast_append_seconds',
      help: 'Time from the decision on a commit group until it was on disk',
      labelNames: ['shard'],
      bounds: appendBoundsSecs,
    }
    const histogram = new CountedHistogram(appends, () =>
      shards().map(({ appendCounts: counts, appendSecs: sum }, shard) => ({
        labels: { shard: String(shard) },
        counts,
        sum,
      })),
    )
    this.#registry.registerMetric(histogram)
  }

  #showPools({ pools }: MetricsSources): void {
    const perPool = (name: string, help: string, value: (figures: PoolFigures) => number) => {
      this.#show({ name: `strandfast_pool_${name}`, help, labelNames: ['pool'] }, (set) => {
        for (const figures of pools()) set({ pool: figures.name }, value(figures))
      })
    }
    perPool('serving', '1 while a thread of the pool is running or can be started', (one) =>
      one.serving ? 1 : 0,
    )
    perPool('waiting', 'Tasks waiting for a thread of the pool', ({ waiting }) => waiting)
    perPool('failed_starts_total', 'Threads of the pool that failed to start', (one) => one.failedStarts)
    perPool('ends_total', 'Threads of the pool that died during a task', ({ deaths }) => deaths)
    perPool('hangs_total', 'Threads of the pool that hung in a task', ({ hangs }) => hangs)
  }

  #showSink(sink: () => SinkFigures): void {
    const show = (name: string, help: string, value: (figures: SinkFigures) => number) =>
      this.#figure(`strandfast_sink_${name}`, help, () => value(sink()))
    show('connected', '1 while PostgreSQL is connected', ({ connected }) => (connected ? 1 : 0))
    show('lag_records', 'Ingested records that are not in PostgreSQL yet', ({ lagRecords }) => lagRecords)
    show('lag_seconds', 'Age of the oldest record that is not in PostgreSQL yet', ({ lagSecs }) => lagSecs)
    show('rows_total', 'Rows stored in PostgreSQL since the start', ({ rows }) => rows)
    show('dead_letters_total', 'Rows that PostgreSQL rejected since the start', (one) => one.deadLetters)
    show('failures_total', 'Failed delivery attempts since the start', ({ failures }) => failures)
  }

  #showCluster(cluster: () => ClusterMetrics): void {
    const show = (name: string, help: string, value: (figures: ClusterMetrics) => number) =>
      this.#figure(`strandfast_cluster_${name}`, help, () => value(cluster()))
    show(
      'lease',
      '1 while this node holds a lease, without which it does not answer for its shards',
      ({ mayAnswer }) => (mayAnswer ? 1 : 0),
    )
    show('serving', '1 while this node owns a shard', ({ owned }) => (owned > 0 ? 1 : 0))
    show('owned_shards', 'Shards that this node owns', ({ owned }) => owned)
    show('members', 'Nodes of the cluster that are alive', ({ members }) => members)
    show(
      'problems',
      'Problems, differences and faults of the cluster that GET /v1/server lists',
      ({ problems }) => problems,
    )
    show(
      'lag_seconds',
      'Time since the copies of this node last had every entry of the logs',
      ({ lagSecs }) => lagSecs,
    )
    show('appends_total', 'Log segments that the database confirmed since the start', (one) => one.appends)
    show(
      'append_seconds_total',
      'Total time of confirmed appends of segments',
      ({ appendSecs }) => appendSecs,
    )
    show(
      'unknown_total',
      'Log segments for which the database did not confirm or refuse the append in time',
      (one) => one.unknown,
    )
    show(
      'fenced_total',
      'Log segments refused because another node had written that position',
      ({ fenced }) => fenced,
    )
    show('connections_total', 'Connections to the database that were opened', (one) => one.connections)
  }

  #showServerLog(figures: () => ServerLogFigures): void {
    this.#figure('strandfast_log_size', 'Records in the log of strand heads', () => figures().size)
    this.#figure(
      'strandfast_log_complete_timestamp_seconds',
      'Unix time up to which every strand head is in the log; 0 before the first scan',
      () => figures().completeAtMs / 1_000,
    )
  }

  #figure(name: string, help: string, value: () => number): void {
    this.#show({ name, help, labelNames: [] }, (set) => set({}, value()))
  }

  /**
   * Registers a metric whose values are read at each scrape: a counter if its name ends in `_total`, else a
   * gauge.
   */
  #show(metric: { name: string; help: string; labelNames: string[] }, read: (set: SetValue) => void): void {
    const configuration = { ...metric, registers: [this.#registry] }
    if (!metric.name.endsWith('_total')) {
      const gauge = new Gauge({
        ...configuration,
        collect: () => read((labels, value) => gauge.set(labels, value)),
      })
      return
    }
    const counter = new Counter({
      ...configuration,
      collect() {
        counter.reset()
        read((labels, value) => counter.inc(labels, value))
      },
    })
  }
}

function familyOf({ name, help, type, values }: LibraryFamily): MetricFamily {
  const samples = values.map(({ labels, value, metricName = name }) => ({
    name: metricName,
    labels: Object.fromEntries(Object.entries(labels).map(([label, text]) => [label, String(text)])),
    value: Number.isFinite(value) ? value : null,
  }))
  return { name, help, type: String(type), samples }
}

/**
 * A metric as the library returns it. Its type is a string, although the library's types declare a number.
 */
interface LibraryFamily {
  name: string
  help: string
  type: string | number
  values: readonly {
    labels: Partial<Record<string, string | number>>
    value: number
    metricName?: string
  }[]
}

type SetValue = (labels: Record<string, string>, value: number) => void
