/* Messages about lists of agents. */

/** The shard's agents by name, after `after`, with `prefix`. */
export interface AgentList {
  kind: 'agentList'
  prefix: string
  after: string
  limit: number
  /** With the status of each. */
  statuses?: true
}

/** Names of one shard, in order, and how many it has in all that match. */
export interface NamesOutcome {
  kind: 'names'
  names: string[]
  total: number
  /** The status of each name as wire JSON, where it was asked for. */
  statuses?: string[]
  /** More names follow, though there are fewer than asked for: reading their status took enough for one call. */
  cut?: true
}
