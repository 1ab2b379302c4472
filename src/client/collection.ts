import { ServiceError } from './errors.js'
import { type Call, type QueryValue, type Transport, pathSegment } from './http.js'
import { newIdempotencyKey } from './webcrypto.js'
import type * as types from './types.js'
import { jsonText } from './json-text.js'

/** A record before this client adds `data` and `timestamp`; `P` is the type of its body. */
type BareRecord<P> = Omit<types.RecordView, 'payload' | 'data' | 'timestamp'> & { payload: P }

/** Options of asOf. */
export interface AsOfOptions extends types.CallOptions {
  /** Records of one page, at most 1,000; 100 by default. */
  limit?: number | undefined
  /** The `next_cursor` of the previous page, for the same moment. */
  cursor?: string | undefined
}

/** Options of queryAll. */
export interface QueryAllOptions extends types.CallOptions {
  /** Called once for each distinct warning in the pages. */
  onWarning?: ((warning: string) => void) | undefined
}

type BareAsOf<T> = Omit<types.AsOfResponse<T>, 'records'> & { records: BareRecord<T>[] }

/** The answer to a query: records, or a head. */
type BareQueryResult<T> = Partial<Bare<types.ChainHeadResponse>> & {
  records?: BareRecord<T>[]
  next_cursor?: string | null
  warnings?: string[]
}

/** Where writes go: a collection is created by its first write, an agent must exist. */
export type WritesTo = 'collections' | 'agents'

/** The strand behind a handle. */
export interface HandleTarget {
  writesTo: WritesTo
  name: string
}

/**
 * Records of one collection or agent; `T` is the type of their bodies. Methods reject with ServiceError,
 * NotFoundError or NetworkError, or with the reason of an aborted signal.
 */
export class CollectionHandle<T = Record<string, unknown>> {
  /** Name of the collection or agent. */
  readonly name: string
  readonly #transport: Transport
  readonly #writePath: string
  readonly #readPath: string

  constructor(transport: Transport, target: HandleTarget) {
    const segment = pathSegment(target.name)
    this.name = target.name
    this.#transport = transport
    this.#writePath = `/v1/${target.writesTo}/${segment}`
    this.#readPath = `/v1/agents/${segment}`
  }

  /** Appends a record. Errors: `agent_not_found`, `head_mismatch` (412, with `ifMatch`), `reserved_type`. */
  write(data: T, options?: types.WriteOptions): Promise<types.WriteResponse>
  /**
   * Appends a record that lacks members of `T`.
   * @deprecated Readers of the collection rely on complete bodies: write a `T`
   */
  write(data: Partial<T>, options?: types.WriteOptions): Promise<types.WriteResponse>
  async write(data: Partial<T>, options: types.WriteOptions = {}): Promise<types.WriteResponse> {
    const body = jsonText({ data, type: options.type })
    const call = changeCall(`${this.#writePath}/records`, body, options)
    return dated(await this.#transport.json<Bare<types.WriteResponse>>(call))
  }

  /**
   * Appends records in order, at most 1,000 and 8 MiB: all or none or, with `atomic: false`, all but the
   * refused ones, whose results contain their errors.
   */
  writeBatch(
    records: readonly T[],
    options: types.BatchOptions & { atomic: false },
  ): Promise<types.BatchItem[]>
  writeBatch(
    records: readonly T[],
    options?: types.BatchOptions & { atomic?: true | undefined },
  ): Promise<types.WriteResponse[]>
  async writeBatch(records: readonly T[], options: types.BatchOptions = {}): Promise<types.BatchItem[]> {
    const items = records.map((data) => ({ data, type: options.type }))
    const body = jsonText({ records: items, atomic: options.atomic })
    const call = changeCall(`${this.#writePath}/records/batch`, body, options)
    const { results } = await this.#transport.json<{
      results: (Bare<types.WriteResponse> | types.BatchFailure)[]
    }>(call)
    return results.map((item) => ('error' in item ? item : dated(item)))
  }

  /**
   * Reads the record with this content hash, bare hex or with `sha256:`. A deleted record is returned, marked
   * as deleted.
   * @throws NotFoundError if there is no such record
   */
  async get(contentHash: string, options: types.CallOptions = {}): Promise<types.RecordView<T>> {
    const path = `${this.#readPath}/records/${pathSegment(contentHash)}`
    return withData(await this.#transport.json<BareRecord<T | null>>(readCall(path, options)))
  }

  /** The most recent records, newest first, without deleted ones. */
  latest(limit = 20, options: types.CallOptions = {}): Promise<types.SaqlQueryResult<T>> {
    return this.query({ type: 'latest', limit }, options)
  }

  /** One page of a query. */
  async query(body: types.QueryBody<T>, options: types.CallOptions = {}): Promise<types.SaqlQueryResult<T>> {
    const {
      records = [],
      next_cursor = null,
      ...head
    } = await this.#transport.json<BareQueryResult<T>>({
      method: 'POST',
      path: `${this.#readPath}/query`,
      body: jsonText(body),
      repeatable: true,
      signal: options.signal,
    })
    const { timestamp_ms } = head
    return {
      ...(timestamp_ms === undefined ? head : dated({ ...head, timestamp_ms })),
      records: records.map((record) => withData(record)),
      next_cursor,
    }
  }

  /** All records of a query, fetched page by page; `limit` is the size of a page. */
  async *queryAll(
    body: types.PagedQueryBody<T>,
    options: QueryAllOptions = {},
  ): AsyncGenerator<types.NucleotideRecord<T>, void> {
    const warned = new Set<string>()
    const read = (cursor?: string) => this.query(cursor === undefined ? body : { ...body, cursor }, options)
    for await (const { warnings = [], records } of pagesOf(read)) {
      for (const warning of warnings) {
        if (!warned.has(warning)) options.onWarning?.(warning)
        warned.add(warning)
      }
      yield* records
    }
  }

  /**
   * One page of the strand as of a moment: its records, head, zone and signed checkpoint at that moment.
   * `verifyAsOf` checks the checkpoint.
   * @param ts Unix milliseconds, an HLC or ISO 8601 text, or a Date
   */
  async asOf(ts: types.Moment, options: AsOfOptions = {}): Promise<types.AsOfResponse<T>> {
    const { limit, cursor } = options
    const answer = await this.#transport.json<BareAsOf<T>>(
      readCall('/v1/strand/as-of', options, { ts: momentText(ts), agent: this.name, limit, cursor }),
    )
    return { ...answer, records: answer.records.map((record) => withData(record)) }
  }

  /** The head of the strand. */
  async head(options: types.CallOptions = {}): Promise<types.ChainHeadResponse> {
    const call = readCall(`${this.#readPath}/head`, options)
    return dated(await this.#transport.json<Bare<types.ChainHeadResponse>>(call))
  }

  /** The state of the agent. */
  async status(options: types.CallOptions = {}): Promise<types.AgentStatusResponse> {
    const call = readCall(`${this.#readPath}/status`, options)
    return dated(await this.#transport.json<Bare<types.AgentStatusResponse>>(call))
  }

  /**
   * Deletes a record softly: it stays in the strand. The agent's zone decides whether immediately or by a
   * proposal. Errors: `already_deleted` (409), `zone_immutable` (403).
   */
  deleteRecord(contentHash: string, options: types.ChangeOptions = {}): Promise<types.MutationResponse> {
    const path = `${this.#readPath}/records/${pathSegment(contentHash)}`
    return this.#transport.json({ ...changeCall(path, undefined, options), method: 'DELETE' })
  }

  /** Alias of `restoreRecord`. */
  restore(contentHash: string, options: types.ChangeOptions = {}): Promise<types.MutationResponse> {
    return this.restoreRecord(contentHash, options)
  }

  /** Undoes a deletion. Errors: `not_deleted` (409), `zone_immutable` (403). */
  restoreRecord(contentHash: string, options: types.ChangeOptions = {}): Promise<types.MutationResponse> {
    const path = `${this.#readPath}/records/${pathSegment(contentHash)}/restore`
    return this.#transport.json(changeCall(path, undefined, options))
  }

  /**
   * Permanently erases the body of a record; the chain, signatures and proofs stay valid. Errors:
   * `already_erased` (409), `zone_immutable` (403).
   */
  eraseRecord(contentHash: string, options: types.ChangeOptions = {}): Promise<types.MutationResponse> {
    const path = `${this.#readPath}/records/${pathSegment(contentHash)}/erase`
    return this.#transport.json(changeCall(path, undefined, options))
  }

  /**
   * The row policies of the agent: what users' tokens may do with its records. Needs the scope
   * `agents:admin`.
   */
  policies(options: types.CallOptions = {}): Promise<types.PoliciesShown> {
    return this.#transport.json(readCall(`${this.#readPath}/policies`, options))
  }

  /**
   * Replaces all row policies of the agent; its zone decides whether immediately or by a proposal. The answer
   * has warnings about policies that are probably mistakes. Errors: `proposal_open` (409)
   */
  async setPolicies(
    policies: readonly types.RowPolicy[],
    options: types.ChangeOptions = {},
  ): Promise<types.PoliciesReplaced | types.PoliciesProposed> {
    const body = jsonText({ policies })
    return this.#transport.json({ ...changeCall(`${this.#readPath}/policies`, body, options), method: 'PUT' })
  }

  /** Changes the agent's zone; the current zone decides whether immediately or by a proposal. */
  async setZone(
    zone: types.Zone,
    options: types.ChangeOptions = {},
  ): Promise<types.ZoneChanged | types.Proposed> {
    const body = jsonText({ zone })
    return this.#transport.json({ ...changeCall(`${this.#readPath}/zone`, body, options), method: 'PUT' })
  }

  /**
   * Rotates the agent's key, immediately or by a proposal. With `reason` `compromise`, the record states that
   * the old key may have leaked (docs/FORMAT.md, A key that leaked). Errors: 409 `key_in_use`
   * @param seedHex 64 hex characters, the seed of the new key pair; undefined lets the server choose
   */
  async rotateKey(
    seedHex?: string,
    { reason, ...options }: types.ChangeOptions & { reason?: 'compromise' | undefined } = {},
  ): Promise<types.KeyRotated | types.Proposed> {
    const body = jsonText({ seed_hex: seedHex, reason })
    return this.#transport.json(changeCall(`${this.#readPath}/rotate-key`, body, options))
  }
}

/** A GET of a path. */
export function readCall(
  path: string,
  options: types.CallOptions,
  query: Record<string, QueryValue> = {},
): Call {
  return { method: 'GET', path, query, repeatable: true, signal: options.signal }
}

/** Fetches pages until one has no `next_cursor`. @throws ServiceError if a page returns its own cursor */
export async function* pagesOf<Page extends { next_cursor?: string | null }>(
  read: (cursor: string | undefined) => Promise<Page>,
): AsyncGenerator<Page, void> {
  let cursor: string | undefined
  do {
    const page = await read(cursor)
    const next = page.next_cursor ?? undefined
    if (next !== undefined && next === cursor)
      throw new ServiceError(200, 'The service returned the same cursor twice', { code: 'invalid_response' })
    yield page
    cursor = next
  } while (cursor !== undefined)
}

/** A POST that is safe to repeat because of its idempotency key. */
export function changeCall(path: string, body: string | undefined, options: types.WriteOptions): Call {
  const call: Call = {
    method: 'POST',
    path,
    idempotencyKey: options.idempotencyKey ?? newIdempotencyKey(),
    repeatable: true,
    signal: options.signal,
  }
  if (body !== undefined) call.body = body
  if (options.ifMatch !== undefined)
    call.headers = { 'if-match': `"${options.ifMatch.replace(/^sha256:/, '')}"` }
  return call
}

/** An answer before this client adds `timestamp`. */
export type Bare<A extends types.Dated> = Omit<A, 'timestamp'>

/** Adds `timestamp` to an answer. */
export function dated<A extends { timestamp_ms: number }>(answer: A): A & types.Dated {
  return { ...answer, timestamp: new Date(answer.timestamp_ms) }
}

function withData<P>(record: BareRecord<P>): BareRecord<P> & types.Dated & { data: P } {
  return dated({ ...record, data: record.payload })
}

/** Formats a moment as a query parameter. @throws TypeError for an invalid date or number */
export function momentText(moment: types.Moment): string {
  if (typeof moment !== 'string' && !Number.isFinite(Number(moment)))
    throw new TypeError(`Expected a valid moment, got ${String(moment)}`)
  return moment instanceof Date ? moment.toISOString() : String(moment)
}
