import { changeCall, pagesOf, readCall } from './collection.js'
import { type Transport, pathSegment } from './http.js'
import type { CallOptions, ChangeOptions, ProposalView, ProposalPage, ProposalState } from './types.js'

/** Selects the page of proposals to list. */
export interface ProposalListOptions extends CallOptions {
  /** Only proposals about this agent. */
  agent?: string | undefined
  /** Only proposals in this state; `proposed` means open. */
  state?: ProposalState | undefined
  /** Rows of one page, at most 1,000; 100 by default. */
  limit?: number | undefined
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined
}

/**
 * Changes that wait for a delay or for approval, depending on the zone of their agent
 * (docs/adr/0014-proposals.md). All methods except `cancel` need the scope `proposals:decide`.
 */
export class ProposalsClient {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** One page of proposals, by agent and then in the order of their creation. */
  list(options: ProposalListOptions = {}): Promise<ProposalPage> {
    const { agent, state, limit, cursor } = options
    return this.#transport.json(readCall('/v1/proposals', options, { agent, state, limit, cursor }))
  }

  /** All matching proposals, fetched page by page. */
  async *listAll(options: Omit<ProposalListOptions, 'cursor'> = {}): AsyncGenerator<ProposalView, void> {
    const pages = pagesOf((cursor) => this.list({ ...options, cursor }))
    for await (const page of pages) yield* page.proposals
  }

  /**
   * Approves a proposal; with enough approvals, it is applied immediately. Errors: 404 `proposal_not_found`,
   * 409 `proposal_closed`, `already_voted`, 403 for the proposer
   */
  approve(proposalId: string, options: ChangeOptions = {}): Promise<ProposalView> {
    return this.#vote(proposalId, 'approve', options)
  }

  /** Rejects and closes a proposal. Errors: 404 `proposal_not_found`, 409 `proposal_closed`. */
  reject(proposalId: string, options: ChangeOptions = {}): Promise<ProposalView> {
    return this.#vote(proposalId, 'reject', options)
  }

  /** Withdraws a proposal; allowed for the proposer and for keys with `admin:*`. Errors as of `reject`. */
  cancel(proposalId: string, options: ChangeOptions = {}): Promise<ProposalView> {
    return this.#vote(proposalId, 'cancel', options)
  }

  #vote(proposalId: string, vote: string, options: ChangeOptions): Promise<ProposalView> {
    return this.#transport.json(
      changeCall(`/v1/proposals/${pathSegment(proposalId)}/${vote}`, undefined, options),
    )
  }
}
