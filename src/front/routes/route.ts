import type { TSchema } from 'typebox'
import type { TokenClaims } from '../../auth/jwt.js'
import type { Namespace } from '../../auth/namespace.js'
import type { ErrorCode, Refusal } from '../../base/errors.js'
import type { RandomBytes } from '../../base/random.js'
import type { EventHead } from '../../protocol/record-messages.js'
import type { ApiKeyRow } from '../../protocol/api-key-messages.js'
import type { Standing } from '../../protocol/proposal-messages.js'
import type { Read } from '../../protocol/reader-tasks.js'
import type { Command, Outcome } from '../../protocol/messages.js'
import type { UserAccess, WriteOnce, WriteOptions } from '../../protocol/command-options.js'
import type { Scope } from '../../wire/api-keys.js'
import type { Author } from '../../protocol/proposal-messages.js'
import type { MetricFamily } from '../../wire/metrics.js'
import type { OtlpFormat } from '../../wire/otlp.js'
import type { ServerInfo } from '../../wire/server.js'
import type { RefusalForm } from './refusal-form.js'

/** The caller of a request. `agents` limits a scoped key to names and `prefix*`; empty means no limit. */
export interface Principal {
  /**
   * `root`, `anonymous`, the id of the key, or `user:<namespace>:<user_id>`. Idempotency keys are scoped to it.
   */
  id: string
  scopes: ReadonlySet<string>
  agents: readonly string[]
  key?: ApiKeyUse
  /**
   * The user of the token. A user has no scopes, only the row policies of agents
   * (docs/adr/0012-row-policies.md).
   */
  user?: TokenUser
}

/** A scoped key in memory. */
export interface ApiKeyUse {
  row: ApiKeyRow
  /** Last use in Unix milliseconds; 0 for never. */
  lastUsedAtMs: number
}

export interface TokenUser {
  namespace: Namespace
  claims: TokenClaims
  /** Sent to the shards with each command; the same object as long as the token is cached. */
  access: UserAccess
}

/** The headers that routes use; empty if absent. Named as in HTTP, in camelCase. */
export interface RequestHeaders {
  authorization: string
  host: string
  /** Whether a page of a browser may have sent the request: it has `Origin` or a `Sec-Fetch-` header. */
  isFromPage: boolean
  /** Whether a proxy passed the request on, as far as its headers say. */
  isForwarded: boolean
  /** `Sec-Fetch-Site`: whether a browser's request comes from another site. */
  fetchSite: string
  contentType: string
  contentEncoding: string
  accept: string
  acceptEncoding: string
  ifMatch: string
  ifNoneMatch: string
  idempotencyKey: string
  requestId: string
  lastEventId: string
  origin: string
  forwardedFor: string
  userAgent: string
  cookie: string
  /** `Strandfast-Agent-Seed` of an import; never logged. */
  agentSeed: string
  /** `Strandfast-Agent`: the agent of an OTLP request. */
  agent: string
  /** `WebHook-Request-Origin`: a sender of events asks whether it may deliver. */
  webhookOrigin: string
  /** The attributes of a CloudEvent in binary mode: `ce-` headers without the prefix. */
  event: readonly (readonly [name: string, value: string])[]
}

/** A request as passed to a route, copied from the HTTP library's buffers. */
export interface RouteRequest {
  /** Percent-decoded path parameters, in order. */
  params: readonly string[]
  query: URLSearchParams
  headers: RequestHeaders
  /** The whole body; empty for routes without one. */
  body: Uint8Array
  principal: Principal
}

/**
 * A complete answer. `body` is JSON or UTF-8 text, in parts if it is an array, unless `contentType` says
 * otherwise.
 */
export interface Answer {
  status: number
  body: string | readonly Uint8Array[]
  contentType?: string
  headers?: readonly (readonly [name: string, value: string])[]
  /** The body is the same for every request, so it is compressed only once. */
  lasting?: true
}

/** The functions that handlers with more than one command use. */
export interface RouteContext {
  /** Sends a command to the shard that owns `agent`. */
  request(agent: string, command: Command): Promise<Outcome>
  requestAll(command: Command): Promise<Outcome[]>
  /** Sends a command to a shard by its number, from 0 to `shardCount` - 1. */
  requestShard(shard: number, command: Command): Promise<Outcome>
  shardCount: number
  shardOf(agent: string): number
  /** Sends a command to the shard that stores data of the whole server: the scoped keys. */
  requestFirst(command: Command): Promise<Outcome>
  /** Runs a task on a read-only view, in the reader pool. */
  read: Read
  apiKeys: ApiKeyRegistry
  /** The current permissions of keys and users that proposed or approved something. */
  standings(principals: readonly string[]): Promise<Standing[] | Refusal>
  /** Cancels the open proposals of deleted principals, and withdraws their approvals. */
  endAuthors(principals: readonly string[]): Promise<void>
  /** Resolves when nothing more of the uploads of an ended principal is written. */
  endUploads(principal: string): Promise<void>
  tickets: TicketIssuer
  readiness(): Refusal | undefined | Promise<Refusal | undefined>
  /** Version and settings of the server, without secrets. */
  server(): ServerInfo | Promise<ServerInfo>
  metrics(): Promise<{ text: Uint8Array; contentType: string }>
  /** The metrics as values: those in `names` that exist, or all. */
  metricFamilies(names: readonly string[] | undefined): Promise<MetricFamily[]>
  /** The OpenAPI document, JSON in UTF-8. */
  openApi(): Promise<Uint8Array>
  nowMs(): number
  random: RandomBytes
}

/** The part of a strand that a reader of the pool reads. */
export interface StrandView {
  shard: number
  agentNo: number
  /** Number of records to read: the seq of the last one plus 1. */
  size: number
}

/** The scoped keys against which the front checks credentials. */
export interface ApiKeyRegistry {
  add(row: ApiKeyRow): void
  remove(keyId: string): void
  /** The last use of each key on any front, in Unix milliseconds; 0 for never. */
  lastUses(keyIds: readonly string[]): Promise<number[]>
  /** Whether an unlimited key with `admin:*` exists. */
  hasAdmin(): boolean
}

/** Issues tickets with which a native EventSource opens and reopens a stream. */
export interface TicketIssuer {
  issue(principal: Principal): string | Refusal | Promise<string | Refusal>
}

/** A body that is not a JSON value with one schema. */
export interface MediaText {
  mediaType: string
  description: string
  example?: string
}

/** Such a request body, and the other accepted media types, each with a schema and examples. */
export interface RequestText extends MediaText {
  others?: Readonly<Record<string, { schema: TSchema; examples: Readonly<Record<string, unknown>> }>>
}

/** The documentation of a route in the OpenAPI document. */
export interface RouteDocs {
  summary: string
  tag: string
  /** Path parameters that not many operations share, and query parameters: schemas with descriptions, by name. */
  path?: Record<string, TSchema>
  query?: Record<string, TSchema>
  required?: readonly string[]
  /**
   * Names of query parameters that are lists: items are separated by commas, or each in its own parameter.
   */
  lists?: readonly string[]
  request?: TSchema | RequestText
  /** The body is optional; an empty one means `{}`. */
  requestOptional?: true
  /** Schema of the JSON answer, or a media type, by status. */
  answers: Record<number, TSchema | MediaText>
  /** Its `invalid_token` is 400, because the token is in the body and not a credential. */
  tokenInBody?: true
  idempotent?: boolean
  ifMatch?: boolean
  /** It takes the header `Strandfast-Agent`. */
  agentHeader?: boolean
}

export interface RouteBase {
  method: 'get' | 'post' | 'put' | 'patch' | 'del'
  /** Pattern with `:name` segments. */
  path: string
  /** The scope that a key needs; `any` accepts every key, `none` needs no credential. */
  scope: Scope | 'any' | 'none'
  orScopes?: readonly Scope[]
  /** The form of refusals, by the media type of the request; problem documents by default. */
  refusals?(contentType: string): RefusalForm
  /** A write that is accepted even while the disk is full, because it revokes access. */
  whileFull?: true
  /**
   * Tokens of users are accepted as well, and the row policies of the agent apply
   * (docs/adr/0012-row-policies.md).
   */
  users?: true
  /**
   * Unknown query parameters are ignored, because probes, mail readers and identity providers add their own.
   * Other routes refuse them.
   */
  anyQuery?: true
  /**
   * Error codes of the route, in addition to those of every route of its kind
   * (src/front/http/openapi/problems.ts).
   */
  errors?: readonly ErrorCode[]
  docs: RouteDocs
}

/** A route that sends one command to one shard, whose outcome is the answer. */
export interface CommandRoute extends RouteBase {
  kind: 'command'
  /** The most bytes of the body; by default `requestBytesMax` if the route documents a body, else 0. */
  bodyBytesMax?: number
  toCommand(request: RouteRequest): AddressedCommand | Refusal
  /** Converts an outcome that is not a reply to an answer. */
  toBody?(outcome: Outcome): Answer | Refusal
}

/** A command, and the agent to whose shard it is sent. */
export interface AddressedCommand {
  agent: string
  command: Command
}

/** A route that needs more than one command. */
export interface HandlerRoute extends RouteBase {
  kind: 'handler'
  bodyBytesMax?: number
  /**
   * Answers are compressed for clients that accept it. Must not be set if an answer contains a secret beside
   * text that another party chooses: the length would reveal the secret (docs/SECURITY.md, Compressed
   * answers).
   */
  compressed?: true
  handle(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal>
}

/** A route that processes an ingest body as it arrives (src/front/http/ingest/receiver.ts). */
export interface IngestRoute extends RouteBase {
  kind: 'ingest'
  /** Senders of web hooks may deliver CloudEvents to it. */
  takesEvents?: true
  toIngest(request: RouteRequest): IngestRequest | Refusal
}

export interface IngestRequest {
  target: IngestTarget
  options: IngestOptions
  source: IngestSource
}

/** The agents to whose strands an ingest writes. */
export interface IngestTarget {
  /** The agent of every line; absent if each line names its own. */
  agent?: string
  /** The lines are `{agent, data, type?}`, even if all are of one agent. */
  addressed?: true
  /** With `keep`: the agent that stores refused lines which name no agent that the caller can write to. */
  rejectedAgent?: string
}

export interface IngestOptions extends WriteOptions {
  gzip: boolean
  onError: 'skip' | 'keep' | 'reject_all'
  /** `text`: integers beyond ±(2^53-1) are stored as strings. */
  integers?: 'text'
  /** Each record is written only once. */
  once?: WriteOnce
}

/** The format of a body, for which there is a `LineSource` (src/front/http/ingest/source.ts). */
export type IngestSource =
  /** One JSON value per line. */
  | { kind: 'lines' }
  /** A record, an array of records, or lines. CloudEvents have the `shape` that their media type says. */
  | { kind: 'json'; shape?: 'one' | 'array' }
  /**
   * A JSON object. The members of the array at a path, as text and as steps, become records, each alone or
   * with the rest of the object around it.
   */
  | { kind: 'split'; path: string; steps: readonly string[]; keepsRest: boolean }
  /** The data of a CloudEvent in binary mode. */
  | { kind: 'event'; event: EventHead }
  | ({ kind: 'otlp' } & OtlpFormat)

/** A route that imports an export as it arrives (src/front/http/import/receiver.ts). */
export interface ImportRoute extends RouteBase {
  kind: 'import'
  toImport(request: RouteRequest): ImportRequest | Refusal
}

/** The parameters of an import; the agent is in the body. */
export interface ImportRequest {
  gzip: boolean
  /** More of the strand will be imported: the agent takes no writes at the end. */
  hold: boolean
  author: Author
  /** The seed of the agent's key at the end of the export, 32 bytes. */
  seed?: Uint8Array
  /** The agents that its key is limited to; empty means no limit. */
  agents: readonly string[]
  /** Why the caller may not import the agent of the manifest; undefined if it may. */
  agentRefusal(agent: string): Refusal | undefined
}

/** A route whose answer is produced while it is sent (src/front/http/export.ts). */
export interface ExportRoute extends RouteBase {
  kind: 'export'
  toExport(request: RouteRequest): ExportRequest | Refusal
}

/** A web page with its own files. */
export type PageName = 'console' | 'docs'

/** A route of a file that does not change while the server runs (src/front/http/file.ts). */
export interface FileRoute extends RouteBase {
  kind: 'file'
  page: PageName
  /** The name of the file in the page, which the server has in memory; 404 if there is none. */
  toName(request: RouteRequest): string
  cacheControl: string
  /** Sent with the file, with 304 and with 404. */
  headers: readonly (readonly [name: string, value: string])[]
}

/** The part of a strand to export; both ends are inclusive. */
export interface ExportRequest {
  agent: string
  fromSeq: number
  toSeq?: number
  /** Accept-Encoding of the request; empty if absent. */
  acceptEncoding: string
  /** The user of the export; records that row policies hide are withheld. */
  access?: UserAccess
}

/** A route of server-sent events (src/front/http/streams/hub.ts). */
export interface StreamRoute extends RouteBase {
  kind: 'stream'
  toStream(request: RouteRequest): StreamRequest | Refusal
}

export interface StreamRequest {
  /** The agents of the stream; absent for all. */
  agents?: string[]
  /** One agent, ordered by seq, or many, ordered by clock. */
  scope: 'agent' | 'global'
  /** Where the replay starts: a time, or the cursor of an earlier event. Absent: only live events. */
  since?: string
  cursor?: string
  filter?: string
  /** Record types, or prefixes with `*`; absent for all except sys/* and edge/*. */
  types?: string[]
  /** The user of the stream, for whom row policies apply; then `agents` is set. */
  access?: UserAccess
}
