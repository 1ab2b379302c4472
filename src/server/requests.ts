import { randomBytes } from 'node:crypto'
import { systemClock } from '../base/clock.js'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { Logger } from '../base/log.js'
import { version } from '../base/version.js'
import type { DataDirectory } from '../data-directory/data-directory.js'
import type { ReaderPool } from '../dispatch/reader-pool.js'
import { parseAddressRanges } from '../http/client-address.js'
import { AnswerCoder } from '../http/content-coding.js'
import { Credentials } from '../http/credentials.js'
import { ExportSender } from '../http/export.js'
import type { ServedPages } from '../http/file.js'
import type { Handling } from '../http/handling.js'
import { ImportReceiver } from '../http/import/receiver.js'
import { IngestReceiver } from '../http/ingest/receiver.js'
import { openApiSteps } from '../http/openapi/document.js'
import { RateLimiter } from '../http/rate-limit.js'
import { RateLimits } from '../http/rate-limits.js'
import { unsentAnswers } from '../http/unsent.js'
import type { RouteContext } from '../routes/route.js'
import type { Route } from '../routes/routes.js'
import type { Config } from '../settings/config.js'
import { tellAudit } from './audit.js'
import { authOff, type AuthParts } from './auth.js'
import { serverInfo } from './info.js'
import type { Parts } from './parts.js'
import type { ServerState } from './state.js'

/** What making the handling of requests needs. */
interface Surroundings {
  directory: DataDirectory
  routes: readonly Route[]
  parts: Parts
  state: ServerState
  auth: AuthParts | undefined
  pages: ServedPages
  /** When the stores were last copied for a backup. */
  control: { copiedAtMs: number | undefined }
  log: Logger
}

/** Makes the handling of requests. */
export function handlingOf(config: Config, around: Surroundings): Handling {
  const { parts, state, auth, pages, log } = around
  const { shards, readers, streams, tickets, uploads, metrics, serverLog } = parts
  const onError = (error: unknown, requestId: string) =>
    log.error({ err: error, request_id: requestId }, 'a request failed')
  const idPrefix = randomBytes(6).toString('base64url')
  let lastId = 0
  return {
    shards,
    coder: new AnswerCoder(),
    pages,
    streams,
    tickets,
    uploads,
    metrics,
    onError,
    rates: ratesOf(config),
    credentials: credentialsOf(config, around),
    context: contextOf(config, around),
    ingest: ingestBy(config, parts, onError),
    exports: new ExportSender({ shards, readers, uploads, onError }),
    imports: new ImportReceiver({
      shards,
      readers,
      uploads,
      stageFolder: parts.stageFolder,
      onError,
      refusal: () => state.stoppingRefusal() ?? state.writeRefusal(),
      tellAudit: (entry) => tellAudit(shards, entry),
      ...(serverLog !== undefined && { tellHead: (head) => serverLog.tell(head) }),
    }),
    auth: auth?.handling ?? authOff(config),
    corsOrigins: new Set(config.corsOrigins),
    stopping: state.stoppingRefusal,
    writeRefusal: state.writeRefusal,
    unsent: unsentAnswers(),
    nextRequestId: () => `${idPrefix}-${(++lastId).toString(36)}`,
  }
}

function contextOf(config: Config, around: Surroundings): RouteContext {
  const { parts, state, routes, auth, pages, control } = around
  const { shards, readers, apiKeys, tickets, metrics } = parts
  return {
    ask: (agent, command) => shards.ask(agent, command),
    askAll: (command) => shards.askAll(command),
    askShard: (shard, command) => shards.askOne(shard, command),
    shardCount: shards.count,
    shardOf: (agent) => shards.shardOf(agent),
    askFirst: (command) => shards.askOne(0, command),
    read: readsBy(readers),
    apiKeys,
    tickets,
    readiness: () => state.stoppingRefusal() ?? unready(parts, state),
    server: serverInfo(config, {
      parts,
      state,
      license: auth?.license,
      hasConsole: pages.console !== undefined,
      copiedAtMs: () => control.copiedAtMs,
    }),
    metrics: () => metrics.text(),
    metricFamilies: (names) => metrics.families(names),
    openApi: madeOnce(() => openApiOf(routes, parts)),
    nowMs: systemClock,
    random: randomBytes,
  }
}

function ratesOf(config: Config): RateLimits {
  const named = (name: 'global' | 'auth', limit: { ratePerSec: number; burst: number }) => ({
    name,
    limit,
    limiter: new RateLimiter({ ...limit, addressesMax: limits.rateLimitAddressesMax }),
  })
  const { rateLimitRps, rateLimitBurst } = config.auth
  const settings = {
    global: named('global', { ratePerSec: config.rateLimitRps, burst: config.rateLimitBurst }),
    auth: named('auth', { ratePerSec: rateLimitRps, burst: rateLimitBurst }),
    exempt: parseAddressRanges(config.rateLimitExempt.join(',')).ranges,
    trusted: parseAddressRanges(config.trustedProxies.join(',')).ranges,
  }
  return new RateLimits(settings, systemClock)
}

function credentialsOf(config: Config, { directory, parts, auth }: Surroundings): Credentials {
  const { apiKeys: keys, tickets } = parts
  return new Credentials(
    { rootKeyDigest: directory.rootKeyDigest, open: config.dataOpen },
    { keys, tickets, clock: systemClock, ...(auth !== undefined && { tokens: auth.tokens }) },
  )
}

/** Long reads of strands, by the pool. */
function readsBy(readers: ReaderPool): RouteContext['read'] {
  return {
    treeRoot: (view) => readers.treeRoot(view),
    inclusion: (view, seq) => readers.inclusion({ ...view, seq }),
    consistency: (view, from) => readers.consistency({ ...view, from }),
    recordLine: (view, record) => readers.recordLine({ ...view, ...record }),
  }
}

/** The handler of ingest streams. */
function ingestBy(
  { recordBytesMax, ingestBadLinesMax: badLinesMax }: Config,
  { shards, uploads, slices, metrics }: Parts,
  onError: Handling['onError'],
): IngestReceiver {
  const onRefused = (code: string, count: number) => metrics.linesRefused(code, count)
  return new IngestReceiver({ shards, uploads, slices, recordBytesMax, badLinesMax, onRefused, onError })
}

function unready({ shards, pools }: Parts, state: ServerState): Refusal | undefined {
  if (!shards.serving) return refuse('unavailable', 'A shard is starting or recovering')
  const idle = pools.find(({ figures }) => !figures.serving)
  if (idle !== undefined)
    return refuse('unavailable', `The pool of ${idle.figures.name} has no thread: none can be started`)
  return state.readOnly
    ? refuse('unavailable', 'The data disk is nearly full: the server is read-only')
    : undefined
}

/**
 * The bytes of the OpenAPI document. They are made in slices at the first request, so that other requests do not wait.
 */
async function openApiOf(routes: readonly Route[], { slices }: Parts): Promise<Uint8Array> {
  const document = await slices.runSteps(openApiSteps(routes, version))
  return slices.run(() => Buffer.from(JSON.stringify(document)))
}

function madeOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}
