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
import type { Signing, UserAccess } from '../../protocol/command-options.js'
import type { Scope } from '../../wire/api-keys.js'
import type { MetricFamily } from '../../wire/metrics.js'
import type { ServerInfo } from '../../wire/server.js'

/** Who asks. `agents` limits a scoped key to names and `prefix*`; empty means no limit. */
export interface Principal {
  /** `root`, `open`, the key's id, or `user:<namespace>:<user_id>`; idempotency keys belong to it. */
  id: string
  scopes: ReadonlySet<string>
  agents: readonly string[]
  /** The scoped key that it is. */
  key?: ApiKeyUse
  /** Whose token it is. A user has no scopes, only the agents' row policies (docs/adr/0012-row-policies.md). */
  user?: TokenUser
}

/** A scoped key in memory. */
export interface ApiKeyUse {
  row: ApiKeyRow
  /** When it was last used, Unix milliseconds; 0 for never. */
  lastUsedAtMs: number
}

/** A user as a token that was found good names it. */
export interface TokenUser {
  namespace: Namespace
  claims: TokenClaims
  /** What goes to the shards with each command; the same object as long as the token is remembered. */
  access: UserAccess
}

/** The headers that routes look at; empty when not sent. Names as in HTTP, in camelCase. */
export interface RequestHeaders {
  authorization: string
  host: string
  /** `Sec-Fetch-Site`, by which browsers say where a request comes from. */
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
  /** Of an import; never logged. */
  agentSeed: string
  /** `WebHook-Request-Origin`: a sender of events asks whether it may deliver. */
  webhookOrigin: string
  /** The attributes of a CloudEvent of binary mode: `ce-` headers, without that prefix. */
  event: readonly (readonly [name: string, value: string])[]
}

/** A request as a route sees it: everything copied out of the HTTP library's buffers. */
export interface RouteRequest {
  /** Path parameters by their place, percent-decoded. */
  params: readonly string[]
  query: URLSearchParams
  headers: RequestHeaders
  /** The whole body; empty for routes without one. */
  body: Uint8Array
  principal: Principal
}

/** A finished answer. `body` is JSON, a text or UTF-8 in parts, unless `contentType` says otherwise. */
export interface Answer {
  status: number
  body: string | readonly Uint8Array[]
  contentType?: string
  headers?: readonly (readonly [name: string, value: string])[]
  /** The body is the same bytes for every request: compressed once, for all. */
  lasting?: true
}

/** What handlers that need more than one command work with. */
export interface RouteContext {
  /** Asks the shard that owns `agent`. */
  ask(agent: string, command: Command): Promise<Outcome>
  askAll(command: Command): Promise<Outcome[]>
  /** Asks one shard by its number, from 0 to `shardCount` - 1. */
  askShard(shard: number, command: Command): Promise<Outcome>
  shardCount: number
  /** The shard that owns `agent`. */
  shardOf(agent: string): number
  /** Asks the shard that keeps what belongs to the whole server: the scoped keys. */
  askFirst(command: Command): Promise<Outcome>
  /** Work on a read-only view, in the pool. */
  read: Read
  apiKeys: ApiKeyRegistry
  /** What keys and users may still do that have proposed or approved something. */
  standings(principals: readonly string[]): Promise<Standing[] | Refusal>
  /** Cancels the open proposals of principals that have ended, and withdraws their approvals. */
  endAuthors(principals: readonly string[]): Promise<void>
  tickets: TicketIssuer
  readiness(): Refusal | undefined | Promise<Refusal | undefined>
  /** What the server is and how it is set, without secrets. */
  server(): ServerInfo | Promise<ServerInfo>
  metrics(): Promise<{ text: Uint8Array; contentType: string }>
  /** The same figures as values; those of `names` that there are, or all. */
  metricFamilies(names: readonly string[] | undefined): Promise<MetricFamily[]>
  /** The OpenAPI document, JSON in UTF-8. */
  openApi(): Promise<Uint8Array>
  nowMs(): number
  random: RandomBytes
}

/** Which strand a reader of the pool walks, and how far. */
export interface StrandView {
  shard: number
  agentNo: number
  /** Records that count: the seq of the last one plus 1. */
  size: number
}

/** The scoped keys that the front thread checks credentials against. */
export interface ApiKeyRegistry {
  add(row: ApiKeyRow): void
  remove(keyId: string): void
  /** When keys were last used, whichever front was asked, Unix milliseconds; 0 for never. */
  lastUses(keyIds: readonly string[]): Promise<number[]>
  /** Whether there is a key that may do everything everywhere. */
  hasAdmin(): boolean
}

/** Tickets by which a native EventSource opens a stream, and opens it again. */
export interface TicketIssuer {
  issue(principal: Principal): string | Refusal | Promise<string | Refusal>
}

/** A body that is no JSON value of one schema. */
export interface MediaText {
  mediaType: string
  description: string
  example?: string
}

/** Such a body of a request, and the other media types that do as well: each with a schema and examples. */
export interface RequestText extends MediaText {
  others?: Readonly<Record<string, { schema: TSchema; examples: Readonly<Record<string, unknown>> }>>
}

/** What the OpenAPI document tells of a route. */
export interface RouteDocs {
  summary: string
  tag: string
  /** Query parameters: name → schema with its description. */
  query?: Record<string, TSchema>
  /** Names of query parameters without which it answers 400. */
  required?: readonly string[]
  /** Names of query parameters that are lists: their items stand between commas, or each in a parameter of its own. */
  lists?: readonly string[]
  request?: TSchema | RequestText
  /** No body does as well as `{}`. */
  requestOptional?: true
  /** Status → schema of the JSON answer, or a media type. */
  answers: Record<number, TSchema | MediaText>
  /** Its `invalid_token` is 400: the token stands in the body and is no credential. */
  tokenInBody?: true
  idempotent?: boolean
  ifMatch?: boolean
}

/** What every route has. */
export interface RouteBase {
  method: 'get' | 'post' | 'put' | 'patch' | 'del'
  /** Pattern with `:name` segments. */
  path: string
  /** The scope that a key needs; `any` is for every key, `none` is open to everyone. */
  scope: Scope | 'any' | 'none'
  /** Other scopes that do as well. */
  orScopes?: readonly Scope[]
  /** A write that is taken even while the disk is full: one that takes something away from an attacker. */
  whileFull?: true
  /** Users' tokens are taken too, and the agent's row policies decide (docs/adr/0012-row-policies.md). */
  users?: true
  /**
   * Query parameters that it does not know are ignored: probes, readers of mail and providers of sign-in add their own.
   * Elsewhere they are refused.
   */
  anyQuery?: true
  /** The codes that it answers with beside those of every route of its kind (src/front/http/openapi/problems.ts). */
  errors?: readonly ErrorCode[]
  docs: RouteDocs
}

/** One command to one shard, whose outcome is the answer. */
export interface CommandRoute extends RouteBase {
  kind: 'command'
  /** Bytes of the body at most; absent: `requestBytesMax` where its documents name a body, else 0. */
  bodyBytesMax?: number
  toCommand(request: RouteRequest): AddressedCommand | Refusal
  /** The answer of an outcome that is not a reply by itself. */
  toBody?(outcome: Outcome): Answer | Refusal
}

/** A command and the agent whose shard it goes to. */
export interface AddressedCommand {
  agent: string
  command: Command
}

/** Anything that takes more than one command. */
export interface HandlerRoute extends RouteBase {
  kind: 'handler'
  bodyBytesMax?: number
  /**
   * Its answers are compressed for clients that ask for it. Not where an answer has a secret beside something that
   * another chose: the length would tell of it (docs/SECURITY.md, Compressed answers).
   */
  compressed?: true
  handle(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal>
}

/** An ingest stream: the body is taken as it comes (src/front/http/ingest/receiver.ts). */
export interface IngestRoute extends RouteBase {
  kind: 'ingest'
  toIngest(request: RouteRequest): IngestRequest | Refusal
}

/** What an ingest request asks for. */
export interface IngestRequest {
  /** The agent of every line; absent when each line names its own. */
  agent?: string
  /** JSON, which is one record or an array of them, or lines. */
  format: 'json' | 'ndjson'
  gzip: boolean
  onError: 'skip' | 'keep' | 'reject_all'
  /** The agent that keeps refused lines which name none that the caller may write to; only with `keep`, of many. */
  rejectedAgent?: string
  /** `text`: integers beyond ±(2^53-1) are kept as strings. */
  integers?: 'text'
  /** Each record is written once, as known by this. */
  once?: 'body' | 'event'
  /** A CloudEvent of binary mode: the body is its data. */
  event?: EventHead
  /**
   * The array of one JSON object whose members become records, each with the rest of the object around it or alone: its
   * path and the steps of it.
   */
  split?: { path: string; steps: readonly string[]; keepsRest: boolean }
  /** What JSON has to be; either where it is absent. */
  shape?: 'one' | 'array'
  ifMatch?: string
  idempotencyKey?: string
  signing?: Signing
}

/** An export that is taken in: the body is taken as it comes (src/front/http/import/receiver.ts). */
export interface ImportRoute extends RouteBase {
  kind: 'import'
  toImport(request: RouteRequest): ImportRequest | Refusal
}

/** What an import asks for; the agent stands in the body. */
export interface ImportRequest {
  gzip: boolean
  /** More of the strand is to come: the agent takes no writes at the end. */
  hold: boolean
  /** Id of the principal who asks. */
  principal: string
  /** The seed of the key in force at the end, 32 bytes. */
  seed?: Uint8Array
  /** Whether the caller may go on with a strand that takes writes. */
  admin: boolean
  /** The agents that its key is limited to; empty means no limit. */
  agents: readonly string[]
  /** Why the caller may not import the agent that the manifest names; undefined when it may. */
  agentRefusal(agent: string): Refusal | undefined
}

/** An answer that is made while it is sent (src/front/http/export.ts). */
export interface ExportRoute extends RouteBase {
  kind: 'export'
  toExport(request: RouteRequest): ExportRequest | Refusal
}

/** A page for people, each with files of its own. */
export type PageName = 'console' | 'docs'

/** A file that is the same for everyone as long as the server runs (src/front/http/file.ts). */
export interface FileRoute extends RouteBase {
  kind: 'file'
  /** The page that it belongs to. */
  page: PageName
  /** The name of the file among those of the page, which the server keeps in memory; 404 where there is none. */
  toName(request: RouteRequest): string
  cacheControl: string
  /** Sent with the file, with 304, and with a refusal by the file's absence. */
  headers: readonly (readonly [name: string, value: string])[]
}

/** Which part of which strand is exported; both ends included. */
export interface ExportRequest {
  agent: string
  fromSeq: number
  toSeq?: number
  /** Accept-Encoding of the request; empty where it is not sent. */
  acceptEncoding: string
  /** The user for whom it is made; what its row policies hide is withheld. */
  access?: UserAccess
}

/** A stream of server-sent events (src/front/http/streams/hub.ts). */
export interface StreamRoute extends RouteBase {
  kind: 'stream'
  toStream(request: RouteRequest): StreamRequest | Refusal
}

/** What a stream shows. */
export interface StreamRequest {
  /** The agents that it shows; absent for all. */
  agents?: string[]
  /** One agent, numbered by seq, or many, in the order of their clocks. */
  scope: 'agent' | 'global'
  /** Where to replay from: a moment, or the cursor of an earlier event. Absent: live only. */
  since?: string
  cursor?: string
  /** Only events whose payload has this field. */
  filter?: string
  /** The user who reads it; only what the row policies of the agents show. Then the agents are named. */
  access?: UserAccess
}
