import { Addresses } from './addresses.js'
import { ApiKeysClient } from './api-keys.js'
import { AuthClient, fixedSource, refreshCall } from './auth.js'
import { SessionKeeper } from './auth-session.js'
import { type Timing, systemTiming } from './backoff.js'
import { type Bare, CollectionHandle, changeCall, dated, pagesOf, readCall } from './collection.js'
import { NetworkError } from './errors.js'
import { GraphClient } from './graph.js'
import { Transport, pathSegment } from './http.js'
import { type IngestManyOptions, type RecordSource, ingestMany, ingestOne } from './ingest.js'
import { type ConsistencyOptions, LogClient } from './server-log.js'
import { OrganismsClient, pathOf } from './organisms.js'
import {
  type OnEvent,
  type SubscribeAgentOptions,
  type SubscribeGlobalOptions,
  Subscription,
} from './subscription.js'
import { ProposalsClient } from './proposals.js'
import type { Refreshed } from './auth-types.js'
import type {
  AgentListResponse,
  AgentResponse,
  AgentStatusPage,
  AgentStatusResponse,
  CallOptions,
  ChangeOptions,
  ConsistencyResponse,
  IngestSummary,
  MetricsResponse,
  ProofResponse,
  ServerInfoResponse,
  StreamTicket,
  WhoAmIResponse,
  WriteResponse,
  Zone,
} from './types.js'
import type { ExportSource } from './text-lines.js'
import { type VerifyOptions, type VerifyResult, verifyExport } from './verify-export.js'

/**
 * Options of a client. While somebody is signed in (`client.auth`), calls carry the session's token, whatever is given
 * here; otherwise `getToken` takes precedence over `token`, and `token` over `apiKey`. Administration of users always
 * uses `apiKey`, the graph if it is given. After a session that the service ended, calls carry no credential until a
 * sign-in, `auth.setSession` or `auth.logout`.
 */
export interface ServiceClientOptions {
  /**
   * The service's address, such as `https://records.example`; or those of the nodes of one cluster, of which calls go to
   * the one that answered last, and on to the next where that one is away or stands by.
   */
  url: string | readonly string[]
  /** Id of the organism whose users sign in here; without it, users outside organisms. */
  organism?: string | undefined
  /** Name of the default agent, as the server's SERVICE_AGENT_ID; `default` unless given. */
  agent?: string | undefined
  /** The root key or a scoped key. */
  apiKey?: string | undefined
  /** A user's JWT. */
  token?: string | undefined
  /** Gives the user's current JWT; called before every request. */
  getToken?: (() => string | undefined | Promise<string | undefined>) | undefined
  /** Used in place of the platform's fetch. */
  fetch?: typeof fetch | undefined
  /** Milliseconds for one call, repeats and waits included; 30,000 unless given, Infinity for none. */
  timeoutMs?: number | undefined
  /** Time and chance, for tests that move them; the platform's own unless given. */
  timing?: Timing | undefined
}

/** A new agent's zone, and the options of every change. */
export interface CreateAgentOptions extends ChangeOptions {
  zone: Zone
}

/** Options of listAgents. */
export interface ListAgentsOptions extends CallOptions {
  /** Stop after this many names; all unless given. */
  limit?: number | undefined
  /** Only names that begin with this. */
  prefix?: string | undefined
}

/** Options of agentStatuses. */
export interface AgentStatusesOptions extends CallOptions {
  /** Only names that begin with this. */
  prefix?: string | undefined
  /** The `next_cursor` of the page before. */
  cursor?: string | undefined
  /** Rows of the page, at most 100; 100 unless given. */
  limit?: number | undefined
}

/** Options of metrics. */
export interface MetricsOptions extends CallOptions {
  /** Only metrics of these names, at most 64; what is not there is left out. */
  names?: readonly string[] | undefined
}

/** Options of an export. */
export interface ExportOptions extends CallOptions {
  /** The default agent unless given. */
  agent?: string | undefined
  /** First record; the genesis record, 0, unless given. */
  fromSeq?: number | undefined
  /** Last record, included; the head unless given. */
  toSeq?: number | undefined
}

type BareStatusPage = Omit<AgentStatusPage, 'statuses'> & { statuses: Bare<AgentStatusResponse>[] }

const TIMEOUT_MS = 30_000
const AUTH_PREFIX = '/v1/auth'
const LIST_PAGE_NAMES = 1_000

/**
 * A client of one service. Methods reject with ServiceError, NotFoundError or NetworkError, and with the signal's
 * reason when aborted. Reads, and writes through their idempotency keys, are repeated while the network or the server
 * fails for a moment.
 */
export class ServiceClient {
  /** Sign-in, and the session whose token goes with all calls. */
  readonly auth: AuthClient
  /** Edges between agents. */
  readonly graph: GraphClient
  /** Changes that wait for their time or for approval. */
  readonly proposals: ProposalsClient
  /** The heads of all strands, for whoever keeps checkpoints. */
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

  /** @throws TypeError for a list of addresses that cannot be meant: empty, one of them twice, https beside http */
  constructor(options: ServiceClientOptions) {
    this.#options = options
    this.#addresses = new Addresses(options.url)
    this.#defaultAgent = options.agent ?? 'default'
    const prefix = options.organism === undefined ? AUTH_PREFIX : `${pathOf(options.organism)}/auth`
    const timing = options.timing ?? systemTiming
    const exchange = (refreshToken: string) => transport.json<Refreshed>(refreshCall(prefix, refreshToken))
    const keeper = new SessionKeeper({ timing, exchange })
    const transport = new Transport({
      addresses: this.#addresses,
      // Called on globalThis: browsers refuse a fetch that is called as a method of something else.
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
      credential: keeper.before(credentialOf(options)),
      timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
      timing,
    })
    this.#transport = transport
    this.log = new LogClient(transport)
    this.proposals = new ProposalsClient(transport)
    const apiKey = fixedSource(async () => options.apiKey)
    this.apiKeys = new ApiKeysClient(transport, apiKey)
    this.organisms = new OrganismsClient(transport, apiKey)
    this.graph = new GraphClient(transport, options.apiKey === undefined ? undefined : apiKey)
    this.auth = new AuthClient({
      transport,
      keeper,
      prefix,
      apiKey,
      // A key is not a user: without a token, users' routes are called without a credential.
      user: keeper.before(credentialOf({ ...options, apiKey: undefined })),
    })
  }

  /** Whether the service answers; one try at each address, never throws. */
  async ping(options: CallOptions = {}): Promise<boolean> {
    try {
      await this.#transport.text({ ...readCall('/healthz', options), repeatable: 'elsewhere' })
      return true
    } catch {
      return false
    }
  }

  /** Whose the credential of this client is, and what it may do. Errors: 401 `unauthorized` without one */
  whoAmI(options: CallOptions = {}): Promise<WhoAmIResponse> {
    return this.#transport.json(readCall('/v1/whoami', options))
  }

  /**
   * What the server is and how it is set, without secrets: what it says about itself, which nothing proves. Needs the
   * scope `admin:*`.
   */
  server(options: CallOptions = {}): Promise<ServerInfoResponse> {
    return this.#transport.json(readCall('/v1/server', options))
  }

  /**
   * What the server measures, as `/metrics` has it for Prometheus: all, or the metrics of these names. Needs the scope
   * `admin:*`.
   */
  metrics(options: MetricsOptions = {}): Promise<MetricsResponse> {
    return this.#transport.json(readCall('/v1/metrics', options, { names: options.names?.join(',') }))
  }

  /**
   * A client for the users of an organism, always the same one for an id: its `auth` signs in there, and its calls carry
   * that session's token. It has the API key of this one, but no token. Agents are `agent('<organism_id>::<name>')`.
   * @throws TypeError for text that cannot be an id
   */
  organism(organismId: string): ServiceClient {
    const known = this.#byOrganism.get(organismId)
    if (known) return known
    // It begins where this one is answered.
    const url = this.#addresses.areSeveral ? this.#addresses.inTurn : this.#options.url
    const mine = { organism: organismId, token: undefined, getToken: undefined }
    const made = new ServiceClient({ ...this.#options, url, ...mine })
    this.#byOrganism.set(organismId, made)
    return made
  }

  /** A collection: its agent is made at the first write. `T` is the type of its records' bodies. */
  collection<T = Record<string, unknown>>(name: string): CollectionHandle<T> {
    return new CollectionHandle<T>(this.#transport, { writesTo: 'collections', name })
  }

  /** An agent that exists; the default agent unless named. */
  agent<T = Record<string, unknown>>(name: string = this.#defaultAgent): CollectionHandle<T> {
    return new CollectionHandle<T>(this.#transport, { writesTo: 'agents', name })
  }

  /**
   * Creates an agent.
   * @param seedHex 64 hex characters, the seed of its key pair; undefined lets the server choose
   * @param zone a zone, or `{zone, signal, idempotencyKey}`
   * Errors: 409 `agent_exists`, 409 `key_in_use`
   */
  createAgent(
    name: string,
    seedHex: string | undefined,
    zone: Zone | CreateAgentOptions,
  ): Promise<AgentResponse> {
    const options = typeof zone === 'string' ? { zone } : zone
    const body = JSON.stringify({ name, zone: options.zone, seed_hex: seedHex })
    return this.#transport.json(changeCall('/v1/agents', body, options))
  }

  /** Names of the agents, page after page until all or `limit` of them; `total` counts all. */
  async listAgents(options: ListAgentsOptions = {}): Promise<AgentListResponse> {
    const wanted = options.limit ?? Infinity
    const agents: string[] = []
    let total = 0
    const read = (cursor?: string) => {
      const limit = Math.min(LIST_PAGE_NAMES, wanted - agents.length)
      const query = { limit, cursor, prefix: options.prefix }
      return this.#transport.json<AgentListResponse & { next_cursor?: string | null }>(
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
   * One page of agents with what a table shows of them, as the service says it: only an export proves a count or a head.
   * A page may be shorter than `limit` and still have a `next_cursor`.
   */
  async agentStatuses(options: AgentStatusesOptions = {}): Promise<AgentStatusPage> {
    const { prefix, cursor, limit } = options
    const page = await this.#transport.json<BareStatusPage>(
      readCall('/v1/agents', options, { include: 'status', prefix, cursor, limit }),
    )
    return { ...page, statuses: page.statuses.map((status) => dated(status)) }
  }

  /** Appends one record through the ingest route, which can also feed an external database. */
  ingest(agent: string, data: object, options: ChangeOptions = {}): Promise<WriteResponse> {
    return ingestOne(this.#transport, agent, { data, options })
  }

  /** Appends many records through the ingest route, in the source's order. */
  ingestMany(agent: string, source: RecordSource, options: IngestManyOptions = {}): Promise<IngestSummary> {
    return ingestMany(this.#transport, agent, { source, options })
  }

  /** Events of one agent: from `since`, when given, then live. Close it with `.close()`. */
  subscribeAgent<T = Record<string, unknown>>(
    agentId: string,
    onEvent: OnEvent<T>,
    options: SubscribeAgentOptions = {},
  ): Subscription<T> {
    const path = `/v1/agents/${pathSegment(agentId)}/stream`
    return new Subscription(this.#transport, { path, query: { filter: options.filter }, onEvent, options })
  }

  /** Events of all agents that the credential reaches, or of those named. Close it with `.close()`. */
  subscribeGlobal<T = Record<string, unknown>>(
    onEvent: OnEvent<T>,
    options: SubscribeGlobalOptions = {},
  ): Subscription<T> {
    const query = { agents: options.agents?.join(','), filter: options.filter }
    return new Subscription(this.#transport, { path: '/v1/stream', query, onEvent, options })
  }

  /**
   * A ticket that opens one stream as its `ticket` parameter, and opens it again from the same address whenever a native
   * EventSource, which cannot send headers, reconnects. Subscriptions of this client need none.
   */
  streamTicket(options: CallOptions = {}): Promise<StreamTicket> {
    return this.#transport.json({ ...readCall('/v1/stream/tickets', options), method: 'POST' })
  }

  /** A strand as signed NDJSON, streamed; `verify` checks it. The time limit ends with its first bytes. */
  async exportStrand(options: ExportOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { response } = await this.#transport.open({
      ...readCall('/v1/strand/export', options, {
        agent: options.agent ?? this.#defaultAgent,
        from_seq: options.fromSeq,
        to_seq: options.toSeq,
      }),
      headers: { accept: 'application/x-ndjson' },
    })
    if (!response.body) throw new NetworkError('Expected an answer with a body', { code: 'invalid_response' })
    return response.body
  }

  /**
   * Checks an export with the platform's WebCrypto alone, without asking the service: hashes, chain, signatures, key
   * rotations. Name the agent's public key in `options` to know whose strand it is.
   * @throws Error where the platform's WebCrypto has no Ed25519
   */
  verify(strandExport: ExportSource, options: VerifyOptions = {}): Promise<VerifyResult> {
    return verifyExport(strandExport, options)
  }

  /** The agent's checkpoint, a C2SP tlog-checkpoint signed note. */
  checkpoint(agent: string = this.#defaultAgent, options: CallOptions = {}): Promise<string> {
    return this.#transport.text({
      ...readCall('/v1/strand/checkpoint', options, { agent }),
      headers: { accept: 'text/plain' },
    })
  }

  /** Proof that a record is in the agent's strand (RFC 6962 inclusion proof). */
  proof(agent: string, hash: string, options: CallOptions = {}): Promise<ProofResponse> {
    return this.#transport.json(readCall('/v1/strand/proof', options, { agent, hash }))
  }

  /** Proof that the agent's strand has only grown since it had `from` records, which `verifyConsistency` checks. */
  consistency(agent: string, from: number, options: ConsistencyOptions = {}): Promise<ConsistencyResponse> {
    return this.#transport.json(readCall('/v1/strand/consistency', options, { agent, from, to: options.to }))
  }
}

function credentialOf(options: ServiceClientOptions): () => Promise<string | undefined> {
  const { getToken, token, apiKey } = options
  if (getToken) return async () => getToken()
  return async () => token ?? apiKey
}
