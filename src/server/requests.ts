import { randomBytes } from 'node:crypto'
import { unreachable } from '../base/assert.js'
import { steadyClock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import { version } from '../base/version.js'
import type { DataDirectory } from '../data/directory.js'
import { endAuthors, endUploads } from '../dispatch/ended-authors.js'
import { parseAddressRanges } from '../front/limits/client-address.js'
import { AnswerCoder } from '../front/http/content-coding.js'
import { standingsBy } from '../front/http/auth/standings.js'
import { Credentials } from '../front/http/credentials.js'
import { ExportSender } from '../front/http/export.js'
import type { ServedPages } from '../front/http/file.js'
import { FrontTurn } from '../front/http/front-turn.js'
import type { Handling } from '../front/http/handling.js'
import { ImportReceiver } from '../front/http/import/receiver.js'
import { JsonSource } from '../front/http/ingest/json-source.js'
import { IngestReceiver } from '../front/http/ingest/receiver.js'
import { eventSource, lineSource, type LineSource } from '../front/http/ingest/source.js'
import { splitSource } from '../front/http/ingest/split-source.js'
import { openApiSteps } from '../front/http/openapi/document.js'
import { RateLimits } from '../front/limits/rate-limits.js'
import { sharedAnswer } from '../front/http/shared-answer.js'
import type { IngestSource } from '../front/routes/route.js'
import type { Route } from '../front/routes/routes.js'
import { otlpSource } from '../otlp/source.js'
import type { OtlpDecoder } from '../otlp/tasks.js'
import type { Config } from '../settings/config.js'
import { appendAudit } from './audit.js'
import { authOff, type AuthParts } from './auth.js'
import { boundSettings, type FrontParts } from './parts.js'
import type { Services } from './services.js'
import type { ServerStatus } from './state.js'

/** Dependencies of the handling of requests. */
interface RequestParts {
  directory: Pick<DataDirectory, 'rootKeyDigest'>
  routes: readonly Route[]
  parts: FrontParts
  status: ServerStatus
  services: Services
  auth: AuthParts | undefined
  pages: ServedPages
  log: Logger
}

/** Creates the handling of the requests of one front. */
export function handlingOf(config: Config, around: RequestParts): Handling {
  const { parts, status, services, auth, pages, log } = around
  const { shards, readers, streams, tickets, transfers, buffers, counts, bounds } = parts
  const { logHead } = services
  const onError = (error: unknown, requestId: string) =>
    log.error({ err: error, request_id: requestId }, 'a request failed')
  const idPrefix = randomBytes(6).toString('base64url')
  let lastId = 0
  return {
    shards,
    readers,
    coder: new AnswerCoder(),
    pages,
    streams,
    tickets,
    transfers,
    buffers,
    counts,
    onError,
    rates: ratesOf(config, parts),
    credentials: credentialsOf(config, around),
    context: contextOf(config, around),
    ingest: ingestBy(config, parts, onError),
    exports: new ExportSender({ shards, readers, transfers, onError }),
    imports: new ImportReceiver({
      shards,
      readers,
      transfers,
      stageFolder: parts.stageFolder,
      onError,
      refusal: () => status.stoppingRefusal() ?? shards.writeRefusal(),
      appendAudit: (entry) => appendAudit(shards, entry),
      ...(logHead !== undefined && { logHead }),
    }),
    auth: auth?.handling ?? authOff(config),
    corsOrigins: new Set(config.corsOrigins),
    webhooks: webhooksOf(config),
    stopping: status.stoppingRefusal,
    writeRefusal: () => shards.writeRefusal(),
    unsent: bounds.answers,
    turn: new FrontTurn(),
    nextRequestId: () => `${idPrefix}-${(++lastId).toString(36)}`,
  }
}

function webhooksOf({ webhookOrigins, rateLimitRps, rateLimitBurst }: Config): Handling['webhooks'] {
  const origins = new Set(webhookOrigins.map((origin) => origin.toLowerCase()))
  const unlimited = rateLimitRps === 0 || rateLimitBurst === 0
  return { origins, allowedRate: unlimited ? '*' : String(rateLimitRps * 60) }
}

function contextOf(config: Config, { parts, routes, services }: RequestParts): Handling['context'] {
  const { clock, shards, apiKeys, tickets } = parts
  const { readiness, server, metrics, metricFamilies, lastUses } = services
  return {
    request: (agent, command) => shards.request(agent, command),
    requestAll: (command) => shards.requestAll(command),
    requestShard: (shard, command) => shards.requestShard(shard, command),
    shardCount: shards.count,
    shardOf: (agent) => shards.shardOf(agent),
    requestFirst: (command) => shards.requestShard(0, command),
    apiKeys: {
      add: (row) => apiKeys.add(row),
      remove: (keyId) => apiKeys.remove(keyId),
      lastUses,
      hasAdmin: () => apiKeys.hasAdmin(clock()),
    },
    standings: standingsBy(config.agentId, parts),
    endAuthors: (principals) => endAuthors(shards, principals),
    endUploads: (principal) => endUploads(shards, principal),
    tickets,
    readiness,
    server,
    metrics,
    metricFamilies,
    openApi: sharedAnswer(() => openApiOf(routes, parts), { keptMs: Infinity, clock: steadyClock }),
    nowMs: clock,
    random: randomBytes,
  }
}

function ratesOf(config: Config, { clock, bounds: { global, auth } }: FrontParts): RateLimits {
  const named = boundSettings(config, Infinity)
  const settings = {
    global: { name: 'global', limit: named.global, limiter: global },
    auth: { name: 'auth', limit: named.auth, limiter: auth },
    exempt: parseAddressRanges(config.rateLimitExempt.join(',')).ranges,
    trusted: parseAddressRanges(config.trustedProxies.join(',')).ranges,
  } as const
  return new RateLimits(settings, clock)
}

function credentialsOf(config: Config, { directory, parts, auth }: RequestParts): Credentials {
  const { apiKeys: keys, tickets, clock } = parts
  return new Credentials(
    {
      rootKeyDigest: directory.rootKeyDigest,
      tokenBytesMax: Math.floor(limits.verifiedTokenBytesMax / config.fronts),
    },
    { keys, tickets, clock, ...(auth !== undefined && { tokens: auth.tokens }) },
  )
}

function ingestBy(
  { recordBytesMax, ingestBadLinesMax: badLinesMax }: Config,
  { shards, transfers, slices, counts, decoder }: FrontParts,
  onError: Handling['onError'],
): IngestReceiver {
  const onRefused = (code: string, count: number) => counts.linesRefused(code, count)
  const sourceOf = (source: IngestSource) => lineSourceOf(source, decoder)
  const parts = { shards, transfers, slices, sourceOf, recordBytesMax, badLinesMax }
  return new IngestReceiver({ ...parts, onRefused, onError })
}

/** The source of the lines of a format: the only place that names them all. */
function lineSourceOf(source: IngestSource, decoder: OtlpDecoder): LineSource {
  switch (source.kind) {
    case 'lines':
      return lineSource
    case 'json':
      return new JsonSource(source.shape)
    case 'split':
      return splitSource(source)
    case 'event':
      return eventSource(source.event)
    case 'otlp':
      return otlpSource(source, decoder)
    default:
      return unreachable(source)
  }
}

/**
 * The bytes of the OpenAPI document, created in slices at the first request, so that other requests do not
 * wait.
 */
async function openApiOf(routes: readonly Route[], { slices }: FrontParts): Promise<Uint8Array> {
  const document = await slices.runSteps(openApiSteps(routes, version))
  return slices.run(() => Buffer.from(JSON.stringify(document)))
}
