/* Messages about lists of agents. */

/** Lists the shard's agents by name, after `after`, with `prefix`. */
export interface AgentList {
  kind: 'agentList'
  prefix: string
  after: string
  limit: number
  /** Whether the status of each agent is included. */
  statuses?: true
}

/** Names of one shard, in order; `total` counts all that match. */
export interface NamesOutcome {
  kind: 'names'
  names: string[]
  total: number
  /** The status of each name as wire JSON, if requested. */
  statuses?: string[]
  /** More names follow although the page is not full, because reading the statuses took long. */
  cut?: true
}
