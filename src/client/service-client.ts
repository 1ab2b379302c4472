import { Addresses } from './addresses.js'
import { ApiKeysClient } from './api-keys.js'
import { AuthClient, fixedSource, refreshCall } from './auth.js'
import { SessionKeeper } from './auth-session.js'
import { type Timing, systemTiming } from './timing.js'
import { type Bare, CollectionHandle, changeCall, dated, pagesOf, readCall } from './collection.js'
import { NetworkError } from './errors.js'
import { GraphClient } from './graph.js'
import { type SendJson, Transport, pathSegment } from './http.js'
import { type IngestManyOptions, type RecordSource, ingestMany, ingestOne } from './ingest.js'
import { type ConsistencyOptions, LogClient } from './server-log.js'
import { OrganismsClient, pathOf } from './organisms.js'
import {
  type OnEvent,
  type SubscribeAgentOptions,
  type SubscribeGlobalOptions,
  Subscription,
} from './subscription.js'
import { warnOnce } from './pacing.js'
import { ProposalsClient } from './proposals.js'
import type { LoggedIn } from './auth-types.js'
import type * as types from './types.js'
import type { ExportSource } from './text-lines.js'
import { type VerifyOptions, type VerifyResult, verifyExport } from './verify-export.js'
import { jsonText } from './json-text.js'

/**
 * Options of a client. While a user is signed in (`client.auth`), calls carry the token of the session;
 * otherwise `getToken` takes precedence over `token`, and `token` over `apiKey`. Administration always uses
 * `apiKey`, and so does the graph if `apiKey` is given. After the service has ended a session, calls carry no
 * credential until a sign-in, `auth.setSession` or `auth.logout`.
 */
export interface ServiceClientOptions {
  /**
   * The address of the service, such as `https://records.example`, or the addresses of the nodes of one
   * cluster. Calls go to the node that served last, and to the next one if that node cannot be reached or is
   * a standby.
   */
  url: string | readonly string[]
  /** Id of the organism whose users sign in; without it, users outside of organisms sign in. */
  organism?: string | undefined
  /** Name of the default agent, the same as the server's SERVICE_AGENT_ID; `default` if absent. */
  agent?: string | undefined
  /** The root key or a scoped key. */
  apiKey?: string | undefined
  /** A user's JWT. */
  token?: string | undefined
  /** Returns the user's current JWT; called before every request. */
  getToken?: (() => string | undefined | Promise<string | undefined>) | undefined
  /** Replaces the platform's fetch. */
  fetch?: typeof fetch | undefined
  /** Milliseconds for one call including retries and waits; 30,000 by default, Infinity for no limit. */
  timeoutMs?: number | undefined
  /**
   * Called once, when calls begin to be delayed because of the rate limit of the service. By default, the
   * warning is written to the console.
   */
  onWarning?: ((warning: string) => void) | undefined
  /** Clocks, timers and random numbers, for tests; those of the platform by default. */
  timing?: Timing | undefined
}

/** The zone of a new agent, and the options of every change. */
export interface CreateAgentOptions extends types.ChangeOptions {
  zone: types.Zone
}

/** Options of listAgents. */
export interface ListAgentsOptions extends types.CallOptions {
  /** Stop after this many names; all by default. */
  limit?: number | undefined
  /** Only names that begin with this text. */
  prefix?: string | undefined
  /** Only names that contain this text, ignoring case; `total` is then exact only if all names were read. */
  contains?: string | undefined
}

/** Options of agentStatuses. */
export interface AgentStatusesOptions extends Omit<ListAgentsOptions, 'limit'> {
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined
  /** Rows of the page, at most and by default 100. */
  limit?: number | undefined
}

/** Options of metrics. */
export interface MetricsOptions extends types.CallOptions {
  /** Only metrics of these names, at most 64; unknown names are ignored. */
  names?: readonly string[] | undefined
}

/** Options of an export. */
export interface ExportOptions extends types.CallOptions {
  /** The agent; the default agent if absent. */
  agent?: string | undefined
  /** First record; the genesis record, 0, by default. */
  fromSeq?: number | undefined
  /** Last record, inclusive; the head by default. */
  toSeq?: number | undefined
}

type BareStatusPage = Omit<types.AgentStatusPage, 'statuses'> & {
  statuses: Bare<types.AgentStatusResponse>[]
}

const TIMEOUT_MS = 30_000
const AUTH_PREFIX = '/v1/auth'
const LIST_PAGE_NAMES = 1_000

/**
 * A client of one service. Methods reject with ServiceError, NotFoundError or NetworkError, or with the
 * reason of an aborted signal. Reads and writes with an idempotency key are retried after temporary failures
 * of the network or the server.
 */
export class ServiceClient {
  /** Sign-in, and the session whose token is sent with calls. */
  readonly auth: AuthClient
  /** Edges between agents. */
  readonly graph: GraphClient
  /** Changes that wait for a delay or for approval. */
  readonly proposals: ProposalsClient
  /** The server log, which contains the heads of all strands. */
  readonly log: LogClient
  /** Administration of organisms. */
  readonly organisms: OrganismsClient
  /** Administration of scoped API keys. */
  readonly apiKeys: ApiKeysClient
  readonly #options: ServiceClientOptions
  readonly #byOrganism = new Map<string, ServiceClient>()
  readonly #addresses: Addresses
  readonly #transport: Transport
  readonly #defaultAgent: string

  /**
   * @throws TypeError for an invalid list of addresses: empty, with duplicates, or with both https and http
   */
  constructor(options: ServiceClientOptions) {
    const warn = warnOnce(options.onWarning)
    this.#options = { ...options, onWarning: warn }
    this.#addresses = new Addresses(options.url)
    this.#defaultAgent = options.agent ?? 'default'
    const prefix = options.organism === undefined ? AUTH_PREFIX : `${pathOf(options.organism)}/auth`
    const timing = options.timing ?? systemTiming
    const exchange = (refreshToken: string) => transport.json<LoggedIn>(refreshCall(prefix, refreshToken))
    const keeper = new SessionKeeper({ timing, exchange })
    const transport = new Transport({
      addresses: this.#addresses,
      // Browsers refuse fetch as a method of any other object than globalThis.
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
      credential: keeper.credentialSource(credentialOf(options)),
      timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
      timing,
      warn,
    })
    this.#transport = transport
    this.log = new LogClient(transport)
    this.proposals = new ProposalsClient(transport)
    const apiKey = fixedSource(async () => options.apiKey)
    const send: SendJson = (call) => transport.json(call)
    const administer: SendJson = (call) => transport.json({ ...call, credential: apiKey })
    this.apiKeys = new ApiKeysClient(administer)
    this.organisms = new OrganismsClient(administer)
    this.graph = new GraphClient(options.apiKey === undefined ? send : administer)
    this.auth = new AuthClient({
      transport,
      keeper,
      prefix,
      apiKey,
      // An API key does not identify a user: without a token, calls to users' routes carry no credential.
      user: keeper.credentialSource(credentialOf({ ...options, apiKey: undefined })),
    })
  }

  /** Whether the service responds; one attempt at each address, never throws. */
  async ping(options: types.CallOptions = {}): Promise<boolean> {
    try {
      await this.#transport.text({ ...readCall('/healthz', options), repeatable: 'elsewhere' })
      return true
    } catch {
      return false
    }
  }

  /**
   * The principal and the scopes of this client's credential. Errors: 401 `unauthorized` without a credential
   */
  whoAmI(options: types.CallOptions = {}): Promise<types.WhoAmI> {
    return this.#transport.json(readCall('/v1/whoami', options))
  }

  /**
   * Version, settings and state of the server, without secrets. The values are reported by the server and not
   * proven. Needs the scope `admin:*`.
   */
  server(options: types.CallOptions = {}): Promise<types.ServerInfo> {
    return this.#transport.json(readCall('/v1/server', options))
  }

  /** The metrics of the server, the same as in `/metrics` for Prometheus. Needs the scope `admin:*`. */
  metrics(options: MetricsOptions = {}): Promise<types.MetricValues> {
    return this.#transport.json(readCall('/v1/metrics', options, { names: options.names?.join(',') }))
  }

  /**
   * A client for the users of an organism, the same object for each call with one id. Its `auth` signs in to
   * the organism, and its calls carry the token of that session. It has the API key of this client, but not
   * its token. Agents are `agent('<organism_id>::<name>')`.
   * @throws TypeError for a text that cannot be an id
   */
  organism(organismId: string): ServiceClient {
    const known = this.#byOrganism.get(organismId)
    if (known) return known
    // The new client starts at the address that serves this one.
    const url = this.#addresses.hasSeveral ? this.#addresses.urls : this.#options.url
    const overrides = { organism: organismId, token: undefined, getToken: undefined }
    const client = new ServiceClient({ ...this.#options, url, ...overrides })
    this.#byOrganism.set(organismId, client)
    return client
  }

  /**
   * A collection, whose agent is created by the first write. `T` is the type of the bodies of its records.
   */
  collection<T = Record<string, unknown>>(name: string): CollectionHandle<T> {
    return new CollectionHandle<T>(this.#transport, { writesTo: 'collections', name })
  }

  /** An existing agent; the default agent if no name is given. */
  agent<T = Record<string, unknown>>(name: string = this.#defaultAgent): CollectionHandle<T> {
    return new CollectionHandle<T>(this.#transport, { writesTo: 'agents', name })
  }

  /**
   * Creates an agent.
   * @param seedHex 64 hex characters, the seed of its key pair; undefined lets the server choose
   * @param zone a zone, or `{zone, signal, idempotencyKey}`
   * Errors: 409 `agent_exists`, 409 `key_in_use`
   */
  async createAgent(
    name: string,
    seedHex: string | undefined,
    zone: types.Zone | CreateAgentOptions,
  ): Promise<types.AgentCreated> {
    const options = typeof zone === 'string' ? { zone } : zone
    const body = jsonText({ name, zone: options.zone, seed_hex: seedHex })
    return this.#transport.json(changeCall('/v1/agents', body, options))
  }

  /** Names of all agents or the first `limit`, fetched page by page; `total` is the number of all. */
  async listAgents(options: ListAgentsOptions = {}): Promise<types.AgentListResponse> {
    const wanted = options.limit ?? Infinity
    const agents: string[] = []
    let total = 0
    const read = (cursor?: string) => {
      const limit = Math.min(LIST_PAGE_NAMES, wanted - agents.length)
      const query = { limit, cursor, prefix: options.prefix, contains: options.contains }
      return this.#transport.json<types.AgentListResponse & { next_cursor?: string | null }>(
        readCall('/v1/agents', options, query),
      )
    }
    for await (const page of pagesOf(read)) {
      agents.push(...page.agents)
      total = page.total
      if (agents.length >= wanted) break
    }
    return { agents, total }
  }

  /**
   * One page of agents with their status, as reported by the service: only an export proves a count or a
   * head. A page can be shorter than `limit` and still have a `next_cursor`.
   */
  async agentStatuses(options: AgentStatusesOptions = {}): Promise<types.AgentStatusPage> {
    const { prefix, contains, cursor, limit } = options
    const page = await this.#transport.json<BareStatusPage>(
      readCall('/v1/agents', options, { include: 'status', prefix, contains, cursor, limit }),
    )
    return { ...page, statuses: page.statuses.map((status) => dated(status)) }
  }

  /**
   * The records of all agents that the credential may read and whose hash begins with the digits, newest
   * first: the whole hash, bare hex or with `sha256:`, or its first 8 or more digits. Errors: NotFoundError.
   */
  async findRecords(hash: string, options: types.CallOptions = {}): Promise<types.FoundRecord[]> {
    const path = `/v1/records/${pathSegment(hash)}`
    const { records } = await this.#transport.json<{ records: Bare<types.FoundRecord>[] }>(
      readCall(path, options),
    )
    return records.map((record) => dated(record))
  }

  /** Appends one record through the ingest route. */
  ingest(agent: string, data: object, options: types.ChangeOptions = {}): Promise<types.WriteResponse> {
    return ingestOne(this.#transport, agent, { data, options })
  }

  /** Appends many records through the ingest route, in the order of the source. */
  ingestMany(
    agent: string,
    source: RecordSource,
    options: IngestManyOptions = {},
  ): Promise<types.IngestSummary> {
    return ingestMany(this.#transport, agent, { source, options })
  }

  /**
   * Subscribes to the events of one agent: stored ones from `since` if given, then live ones. Close it with
   * `.close()`.
   */
  subscribeAgent<T = Record<string, unknown>>(
    agentId: string,
    onEvent: OnEvent<T>,
    options: SubscribeAgentOptions = {},
  ): Subscription<T> {
    const path = `/v1/agents/${pathSegment(agentId)}/stream`
    const query = { filter: options.filter, types: options.types?.join(',') }
    return new Subscription(this.#transport, { path, query, onEvent, options })
  }

  /**
   * Subscribes to the events of the named agents, or of all agents that the credential may read. Close it
   * with `.close()`.
   */
  subscribeGlobal<T = Record<string, unknown>>(
    onEvent: OnEvent<T>,
    options: SubscribeGlobalOptions = {},
  ): Subscription<T> {
    const { agents, filter, types } = options
    const query = { agents: agents?.join(','), filter, types: types?.join(',') }
    return new Subscription(this.#transport, { path: '/v1/stream', query, onEvent, options })
  }

  /**
   * A ticket for one stream, for a native EventSource, which cannot send headers: pass it as the `ticket`
   * parameter. It also admits reconnections from the same address. Subscriptions of this client need no
   * ticket.
   */
  streamTicket(options: types.CallOptions = {}): Promise<types.StreamTicket> {
    return this.#transport.json({ ...readCall('/v1/stream/tickets', options), method: 'POST' })
  }

  /** A strand as a stream of signed NDJSON; `verify` checks it. The time limit covers the headers only. */
  async exportStrand(options: ExportOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { response } = await this.#transport.open({
      ...readCall('/v1/strand/export', options, {
        agent: options.agent ?? this.#defaultAgent,
        from_seq: options.fromSeq,
        to_seq: options.toSeq,
      }),
      headers: { accept: 'application/x-ndjson' },
    })
    if (!response.body)
      throw new NetworkError('The answer of the service has no body', { code: 'invalid_response' })
    return response.body
  }

  /**
   * Checks the hashes, chain, signatures and key rotations of an export, with WebCrypto only and without a
   * request. Give the agent's public key in `options`: without it, an export of anyone passes.
   * @throws Error if WebCrypto has no Ed25519 on this platform
   */
  verify(strandExport: ExportSource, options: VerifyOptions = {}): Promise<VerifyResult> {
    return verifyExport(strandExport, options)
  }

  /** The checkpoint of an agent, a C2SP tlog-checkpoint signed note. */
  checkpoint(agent: string = this.#defaultAgent, options: types.CallOptions = {}): Promise<string> {
    return this.#transport.text({
      ...readCall('/v1/strand/checkpoint', options, { agent }),
      headers: { accept: 'text/plain' },
    })
  }

  /** Proof that a record is in the strand of an agent (RFC 6962 inclusion proof). */
  proof(agent: string, hash: string, options: types.CallOptions = {}): Promise<types.InclusionProof> {
    return this.#transport.json(readCall('/v1/strand/proof', options, { agent, hash }))
  }

  /**
   * Proof that the strand of an agent has only grown since it had `from` records; `verifyConsistency` checks
   * it.
   */
  consistency(
    agent: string,
    from: number,
    options: ConsistencyOptions = {},
  ): Promise<types.ConsistencyProof> {
    return this.#transport.json(readCall('/v1/strand/consistency', options, { agent, from, to: options.to }))
  }
}

function credentialOf(options: ServiceClientOptions): () => Promise<string | undefined> {
  const { getToken, token, apiKey } = options
  if (getToken) return async () => getToken()
  return async () => token ?? apiKey
}
