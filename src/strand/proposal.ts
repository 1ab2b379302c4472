/*
 * The words that describe proposals, on strands and over HTTP (docs/FORMAT.md, Proposals).
 */

/** The state of a proposal. Approving and applying are one transaction, so `approved` is never seen from outside. */
export const proposalStates = ['proposed', 'approved', 'applied', 'rejected', 'cancelled', 'expired'] as const

export type ProposalState = (typeof proposalStates)[number]

/** What can be done to a record once it is written. */
export const recordActions = ['delete', 'restore', 'erase'] as const

export type RecordAction = (typeof recordActions)[number]

/** What can be done to an edge once it is added. */
export const edgeActions = ['remove_edge'] as const

export type EdgeAction = (typeof edgeActions)[number]

/** What can be done to an agent once it is made. */
export const agentActions = ['zone', 'policies', 'rotate_key'] as const

/** What can be proposed about the server itself, on its audit strand (docs/adr/0033-lines-of-keys.md). */
export const keyActions = ['make_api_key'] as const

export type KeyAction = (typeof keyActions)[number]

/** The id of a proposal: the seq of its `sys/proposal` record, and its agent, so that it is found by its id alone. */
export function proposalId(agent: string, seq: number): string {
  return `p_${seq}_${agent}`
}

/**
 * What an id names; undefined when it is not an id. The seq has at most 14 digits, so that it fits into the store's 48
 * bits. The caller checks the agent's name.
 */
export function parseProposalId(text: string): { agent: string; seq: number } | undefined {
  const match = /^p_(0|[1-9]\d{0,13})_(.+)$/.exec(text)
  const [, seq, agent] = match ?? []
  return seq === undefined || agent === undefined ? undefined : { agent, seq: Number(seq) }
}
