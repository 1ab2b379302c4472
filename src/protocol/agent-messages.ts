/* Messages about lists of agents. */

/** Lists the shard's agents by name, after `after`, with `prefix`. */
export interface AgentList {
  kind: 'agentList'
  prefix: string
  /** Only names that contain this text, ignoring case. */
  contains?: string
  after: string
  limit: number
  /** Whether the status of each agent is included. */
  statuses?: true
}

/**
 * Names of one shard, in order; `total` counts all that match or, with `contains`, those among the examined
 * names.
 */
export interface NamesOutcome {
  kind: 'names'
  names: string[]
  total: number
  /** The status of each name as wire JSON, if requested. */
  statuses?: string[]
  /** The last examined name, if names after it may match although the page is not full. */
  cut?: string
}

/**
 * Claims a public key for one agent, in the shard of the key. A repeated claim for the same agent succeeds.
 */
export interface KeyClaim {
  kind: 'keyClaim'
  publicKey: string
  agent: string
}
