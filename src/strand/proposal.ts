/* States, actions and ids of proposals, on strands and over HTTP (docs/FORMAT.md, Proposals). */

/**
 * The state of a proposal. Approving and applying are one transaction, so that clients never see `approved`.
 */
export const proposalStates = ['proposed', 'approved', 'applied', 'rejected', 'cancelled', 'expired'] as const

export type ProposalState = (typeof proposalStates)[number]

export const recordActions = ['delete', 'restore', 'erase'] as const

export type RecordAction = (typeof recordActions)[number]

export const edgeActions = ['remove_edge'] as const

export type EdgeAction = (typeof edgeActions)[number]

export const agentActions = ['zone', 'policies', 'rotate_key'] as const

/** Actions on the server, which are proposed on its audit strand (docs/adr/0033-lines-of-keys.md). */
export const keyActions = ['make_api_key'] as const

export type KeyAction = (typeof keyActions)[number]

/** The id of a proposal: the seq of its `sys/proposal` record, and its agent. */
export function proposalId(agent: string, seq: number): string {
  return `p_${seq}_${agent}`
}

/**
 * Parses the id of a proposal; undefined if it is invalid. The seq has at most 14 digits, so that it fits
 * into the 48 bits of the store. The caller checks the name of the agent.
 */
export function parseProposalId(text: string): { agent: string; seq: number } | undefined {
  const match = /^p_(0|[1-9]\d{0,13})_(.+)$/.exec(text)
  const [, seq, agent] = match ?? []
  return seq === undefined || agent === undefined ? undefined : { agent, seq: Number(seq) }
}
