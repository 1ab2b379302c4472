import { changeCall, pagesOf, readCall } from './collection.js'
import { type SendJson, pathSegment } from './http.js'
import type {
  CallOptions,
  ChangeOptions,
  AgentCreated,
  NamespaceInitialised,
  OrganismCreateBody,
  OrganismListResponse,
  OrganismCreated,
  OrganismView,
  Zone,
} from './types.js'
import { jsonText } from './json-text.js'

/** A new member of an organism. */
export interface NewMember {
  /** The name without the organism's id. */
  name: string
  zone: Zone
  /** 64 hex characters, the seed of its key pair; chosen by the server by default. */
  seedHex?: string | undefined
}

const PAGE_ROWS = 1_000

/** Administration of organisms, with the API key of the client. Methods reject as those of the client do. */
export class OrganismsClient {
  readonly #send: SendJson

  constructor(send: SendJson) {
    this.#send = send
  }

  /**
   * Creates an organism and its agents; the server chooses an id if none is given. Errors: 409
   * `organism_exists`.
   */
  async create(organism: OrganismCreateBody, options: ChangeOptions = {}): Promise<OrganismCreated> {
    return this.#send(changeCall('/v1/organisms', jsonText(organism), options))
  }

  /**
   * Creates another agent, with the address `<organism_id>::<name>`. Errors: 409 `agent_exists`,
   * `key_in_use`.
   */
  async createAgent(
    organismId: string,
    { name, zone, seedHex }: NewMember,
    options: ChangeOptions = {},
  ): Promise<AgentCreated> {
    const body = jsonText({ name, zone, seed_hex: seedHex })
    return this.#send(changeCall(`${pathOf(organismId)}/agents`, body, options))
  }

  /**
   * Creates the auth namespace of an organism: separate users, keys and sessions. Errors: 409
   * `namespace_exists`. Not repeated.
   */
  initAuth(organismId: string, { signal }: CallOptions = {}): Promise<NamespaceInitialised> {
    const path = `${pathOf(organismId)}/auth/init`
    return this.#send({ method: 'POST', path, repeatable: false, signal })
  }

  /** An organism with its agents. Errors: NotFoundError. */
  get(organismId: string, options: CallOptions = {}): Promise<OrganismView> {
    return this.#send(readCall(pathOf(organismId), options))
  }

  /** All organisms in the order of their ids, fetched page by page; `total` is their number. */
  async list(options: CallOptions = {}): Promise<OrganismListResponse> {
    const organisms: OrganismListResponse['organisms'] = []
    let total = 0
    const read = (cursor?: string) =>
      this.#send<OrganismListResponse & { next_cursor: string | null }>(
        readCall('/v1/organisms', options, { limit: PAGE_ROWS, cursor }),
      )
    for await (const page of pagesOf(read)) {
      organisms.push(...page.organisms)
      total = page.total
    }
    return { organisms, total }
  }
}

/** The path of an organism. @throws TypeError for a text that cannot be an id */
export function pathOf(organismId: string): string {
  return `/v1/organisms/${pathSegment(organismId)}`
}
