import { changeCall, pagesOf, readCall } from './collection.js'
import { type Call, type CredentialSource, type Transport, pathSegment } from './http.js'
import type {
  ApiKey,
  ApiKeyDeletedResponse,
  ApiKeyMade,
  ApiKeyPageResponse,
  CallOptions,
  ChangeOptions,
  NewApiKey,
} from './types.js'

/** Which API keys are listed. */
export interface ApiKeyListOptions extends CallOptions {
  /** Rows of one page, at most 1,000, which it is unless given. */
  limit?: number | undefined
  /** The `next_cursor` of the page before. */
  cursor?: string | undefined
}

/**
 * Scoped API keys, for a key with `admin:*` that is not limited to agents. Methods reject as those of the client do.
 */
export class ApiKeysClient {
  readonly #transport: Transport
  readonly #apiKey: CredentialSource

  constructor(transport: Transport, apiKey: CredentialSource) {
    this.#transport = transport
    this.#apiKey = apiKey
  }

  /** One page of keys, by their ids; what they open with is shown when they are made, and never again. */
  list(options: ApiKeyListOptions = {}): Promise<ApiKeyPageResponse> {
    const { limit, cursor } = options
    return this.#send(readCall('/v1/admin/api-keys', options, { limit, cursor }))
  }

  /** Every key, page after page. */
  async *listAll(options: Omit<ApiKeyListOptions, 'cursor'> = {}): AsyncGenerator<ApiKey, void> {
    const pages = pagesOf((cursor) => this.list({ ...options, cursor }))
    for await (const page of pages) yield* page.api_keys
  }

  /**
   * Makes a key. One that may decide about proposals comes with a `proposal_id` where two admin keys are there already,
   * and works once that is approved (docs/OPERATIONS.md, Zones and proposals).
   */
  create(key: NewApiKey, options: ChangeOptions = {}): Promise<ApiKeyMade> {
    return this.#send(changeCall('/v1/admin/api-keys', JSON.stringify(key), options))
  }

  /** Deletes a key, which is refused from then on, on open streams too. @throws NotFoundError when there is none */
  remove(keyId: string, options: ChangeOptions = {}): Promise<ApiKeyDeletedResponse> {
    const path = `/v1/admin/api-keys/${pathSegment(keyId)}`
    return this.#send({ ...changeCall(path, undefined, options), method: 'DELETE' })
  }

  #send<R>(call: Call): Promise<R> {
    return this.#transport.json({ ...call, credential: this.#apiKey })
  }
}
