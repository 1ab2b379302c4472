import { changeCall, pagesOf, readCall } from './collection.js'
import { type SendJson, pathSegment } from './http.js'
import type {
  ApiKey,
  ApiKeyDeleted,
  ApiKeyMade,
  ApiKeyPage,
  CallOptions,
  ChangeOptions,
  ApiKeyCreateBody,
} from './types.js'
import { jsonText } from './json-text.js'

/** Selects the page of API keys to list. */
export interface ApiKeyListOptions extends CallOptions {
  /** Rows of one page, at most and by default 1,000. */
  limit?: number | undefined
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined
}

/**
 * Administration of scoped API keys. Needs a key with `admin:*` that is not limited to agents. Methods reject
 * as those of the client do.
 */
export class ApiKeysClient {
  readonly #send: SendJson

  constructor(send: SendJson) {
    this.#send = send
  }

  /** One page of keys in the order of their ids. The secrets are not included: only `create` returns them. */
  list(options: ApiKeyListOptions = {}): Promise<ApiKeyPage> {
    const { limit, cursor } = options
    return this.#send(readCall('/v1/admin/api-keys', options, { limit, cursor }))
  }

  /** All keys, fetched page by page. */
  async *listAll(options: Omit<ApiKeyListOptions, 'cursor'> = {}): AsyncGenerator<ApiKey, void> {
    const pages = pagesOf((cursor) => this.list({ ...options, cursor }))
    for await (const page of pages) yield* page.api_keys
  }

  /**
   * Creates a key. If two admin keys exist already, a key that may decide about proposals has a
   * `proposal_id`, and works after that proposal is approved (docs/ZONES.md).
   */
  async create(key: ApiKeyCreateBody, options: ChangeOptions = {}): Promise<ApiKeyMade> {
    return this.#send(changeCall('/v1/admin/api-keys', jsonText(key), options))
  }

  /**
   * Deletes a key: it is no longer accepted, and its open streams are closed.
   * @throws NotFoundError if the key does not exist
   */
  remove(keyId: string, options: ChangeOptions = {}): Promise<ApiKeyDeleted> {
    const path = `/v1/admin/api-keys/${pathSegment(keyId)}`
    return this.#send({ ...changeCall(path, undefined, options), method: 'DELETE' })
  }
}
