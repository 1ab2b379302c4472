import { changeCall, pagesOf, readCall } from './collection.js'
import { type Transport, pathSegment } from './http.js'
import type { CallOptions, ChangeOptions, Proposal, ProposalPage, ProposalState } from './types.js'

/** Which proposals are listed. */
export interface ProposalListOptions extends CallOptions {
  /** Only those of this agent. */
  agent?: string | undefined
  /** Only those in this state; `proposed` are the open ones. */
  state?: ProposalState | undefined
  /** Rows of one page, at most 1,000; 100 unless given. */
  limit?: number | undefined
  /** The `next_cursor` of the page before. */
  cursor?: string | undefined
}

/**
 * Mutations that wait for their time or for approval, as the zone of their agent says (docs/adr/0014-proposals.md).
 * Needs the scope `proposals:decide`, except `cancel`.
 */
export class ProposalsClient {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** One page of proposals, by agent in the order they were made. */
  list(options: ProposalListOptions = {}): Promise<ProposalPage> {
    const { agent, state, limit, cursor } = options
    return this.#transport.json(readCall('/v1/proposals', options, { agent, state, limit, cursor }))
  }

  /** Every matching proposal, page after page. */
  async *listAll(options: Omit<ProposalListOptions, 'cursor'> = {}): AsyncGenerator<Proposal, void> {
    const pages = pagesOf((cursor) => this.list({ ...options, cursor }))
    for await (const page of pages) yield* page.proposals
  }

  /**
   * Approves somebody else's proposal; if that suffices, it is applied at once. Errors: 404 `proposal_not_found`, 409
   * `proposal_closed`, `already_voted`, 403 for the proposer itself
   */
  approve(proposalId: string, options: ChangeOptions = {}): Promise<Proposal> {
    return this.#vote(proposalId, 'approve', options)
  }

  /** Rejects a proposal, which ends it. Errors: 404 `proposal_not_found`, 409 `proposal_closed`. */
  reject(proposalId: string, options: ChangeOptions = {}): Promise<Proposal> {
    return this.#vote(proposalId, 'reject', options)
  }

  /** Withdraws a proposal: for its proposer, or a key with `admin:*`. Errors as of `reject`. */
  cancel(proposalId: string, options: ChangeOptions = {}): Promise<Proposal> {
    return this.#vote(proposalId, 'cancel', options)
  }

  #vote(proposalId: string, vote: string, options: ChangeOptions): Promise<Proposal> {
    return this.#transport.json(
      changeCall(`/v1/proposals/${pathSegment(proposalId)}/${vote}`, undefined, options),
    )
  }
}
